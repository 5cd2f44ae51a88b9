"""A study on several devices: all of them compute, and the store is the one that a single device makes."""

import json
import os
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

HERE = Path(__file__).parents[2]


def python(devices: int, *arguments: str):
    """Python in a process that has so many devices of its own."""
    environment = {**os.environ, "XLA_FLAGS": f"--xla_force_host_platform_device_count={devices}"}
    return subprocess.run([sys.executable, *arguments], env=environment, capture_output=True, text=True, cwd=HERE,
                          timeout=600, check=False)  # fmt: skip


def arrays(store: Path) -> dict[str, bytes]:
    """Files of arrays by name; the name has the group and a digest of the content in it."""
    return {path.name: path.read_bytes() for path in store.glob("groups/*.npz")}


def devices_of(store: Path) -> list[str]:
    return [json.loads(path.read_text())["provenance"]["on"] for path in store.glob("groups/*.json")]


def test_all_devices_compute_and_the_store_is_the_same(tmp_path):
    """Eight groups that share a program: the device that has been free for longest takes the next one."""
    script = textwrap.dedent("""
        import sys
        from gesmr.lab.runner import run
        from gesmr.lab.store import Store
        from small_study import SmallStudy
        study = SmallStudy()
        for devices, threads, name in ((1, 1, "one"), (None, None, "all"), (3, 2, "three")):
            store = Store(sys.argv[1] + "/" + name, create=True)
            assert run(study, study.specs(), store, devices=devices, threads=threads) == 8
    """)
    done = python(4, "-c", script, str(tmp_path))
    assert done.returncode == 0, done.stderr
    assert len(arrays(tmp_path / "one")) == 8
    assert arrays(tmp_path / "one") == arrays(tmp_path / "all") == arrays(tmp_path / "three")
    assert set(devices_of(tmp_path / "one")) == {"cpu:0"}
    assert set(devices_of(tmp_path / "all")) == {"cpu:0", "cpu:1", "cpu:2", "cpu:3"}
    assert set(devices_of(tmp_path / "three")) == {"cpu:0", "cpu:1", "cpu:2"}


STUDIES = {
    "functions": ["--dims", "2", "--seeds", "1", "--functions", "sphere,ackley", "--methods", "GESMR,OFMR,LAMR-100"],
    "control": ["--tasks", "cartpole,mountaincar", "--methods", "GESMR,SAMR", "--seeds", "1"],
}


@pytest.mark.slow
@pytest.mark.parametrize("name", STUDIES)
def test_studies_of_the_paper_do_not_depend_on_the_devices(name, tmp_path):
    for devices in (1, 3):
        out = tmp_path / str(devices)
        done = python(devices, "-m", "gesmr.lab.cli", "study", "run", name, *STUDIES[name], "--out", str(out))
        assert done.returncode == 0, done.stderr
    assert arrays(tmp_path / "1" / name) == arrays(tmp_path / "3" / name) != {}
    assert set(devices_of(tmp_path / "1" / name)) == {"cpu:0"}
    assert len(set(devices_of(tmp_path / "3" / name))) > 1
