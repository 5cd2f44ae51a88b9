"""The examples run as a reader would run them, in reduced form, and end in what they promise."""

import os
import re
import subprocess
import sys

import pytest

from helpers import ROOT

EXAMPLES = {path.name: path for path in (ROOT / "examples").glob("*.py")}
DRAWN = {"own_function.py", "own_controller.py", "comparing_methods.py"}  # with --out, as a picture
WARNS = {"external_simulator.py": "no answer within 2 s"}  # of the candidate that hangs


@pytest.fixture
def printed(tmp_path):
    """What an example prints, which is left to itself in a directory of its own."""

    def run(name, *options):
        strict = [] if name in WARNS else ["-W", "error"]
        out = ["--out", "pictures"] if name in DRAWN else []
        done = subprocess.run(
            [sys.executable, *strict, str(EXAMPLES[name]), "--quick", *out, *options],
            cwd=tmp_path,
            env={**os.environ, "OMP_NUM_THREADS": "1"},  # tests run side by side
            capture_output=True,
            text=True,
            check=False,
            timeout=300,
        )
        assert done.returncode == 0, done.stderr
        assert WARNS.get(name, "") in done.stderr
        pictures = {path.name for path in tmp_path.rglob("*.png")}
        assert pictures == ({name.replace(".py", ".png")} if name in DRAWN else set())
        assert max(map(len, done.stdout.splitlines())) <= 80
        return done.stdout

    return run


def number(pattern, text):
    """The number at the place of N."""
    before, after = map(re.escape, pattern.split("N"))
    return float(re.search(rf"{before} *([-+.\de]+){after}", text).group(1))


def test_each_is_short_documented_and_tested():
    here = (ROOT / "tests/project/test_examples.py").read_text("utf-8")
    page = (ROOT / "docs/examples.md").read_text("utf-8")
    for name, path in EXAMPLES.items():
        assert len(path.read_text("utf-8").splitlines()) <= 80
        assert f'printed("{name}"' in here
        assert f"python examples/{name}" in page


def test_own_function(printed):
    text = printed("own_function.py")
    assert number("value N after", text) < 0.2 * number("it began at N\n", text)


def test_mixed_space(printed):
    text = printed("mixed_space.py")
    errors = [float(line.split()[0]) for line in text.splitlines()[1:11]]
    assert errors == sorted(errors)
    assert number("error N\n", text) == errors[0] < 0.5


def test_external_simulator(printed):
    text = printed("external_simulator.py")
    assert number("hung and were ended: N\n", text) == 1
    assert number("runs of the program: N,", text) == 22
    assert float(text.split()[5]) > 40  # metres


def test_flax_nnx(printed):
    text = printed("flax_nnx.py")
    after, points = number("before, N% after", text) / 100, number("of N points", text)
    assert after < 0.1
    assert 0 < text.count("X") <= after * points  # drawn one over another, where they are close


def test_equinox_network(printed):
    text = printed("equinox_network.py")
    assert number("before, N after", text) < 0.1 * number("error: N before", text)
    assert "gradients that are zero: 96 of 96" in text


def test_gymnasium_pool(printed):
    text = printed("gymnasium_pool.py")
    best = [float(line.split()[1]) for line in text.splitlines()[2:6]]
    assert best == sorted(best)
    assert best[-1] > 2 * best[0]
    assert number("mean N,", text) > 2 * best[0]  # on unseen episodes


@pytest.mark.slow  # Ray starts; tests/workers has it in every run
def test_ray_cluster(printed):
    pytest.importorskip("ray")
    loop, ray, verdict = printed("ray_cluster.py").splitlines()[1:]
    assert loop.split()[3:] == ray.split()[3:]  # evaluations, value, solution
    assert verdict == "the last populations are the same, bit for bit"


def test_resuming(printed):
    text = printed("resuming.py")
    rows = [line.split() for line in text.splitlines()[1:7]]
    assert all(resumed == undisturbed for _, resumed, undisturbed in rows)
    assert 0 < number("went on after generation N\n", text) <= number("killed after generation N,", text) < 24
    assert text.endswith("the last populations are the same, bit for bit\n")


def test_own_controller(printed):
    values = {line[:12].strip(): float(line[12:].split()[0]) for line in printed("own_controller.py").splitlines()[1:5]}
    assert set(values) == {"a centre", "GESMR", "SAMR", "fixed at 0.1"}
    assert values["a centre"] < values["fixed at 0.1"]


def test_comparing_methods(printed):
    text = printed("comparing_methods.py")
    for method in ("gesmr", "GESMR", "CMA-ES", "DE", "random"):
        assert re.search(rf"^{method} +0\.\d+ .* 300 ", text, re.M)  # its median, and evaluations
    assert number("the truth has N,", text) < number("best of all: N by", text)


def test_coco_suite(printed, tmp_path):
    pytest.importorskip("cocoex")
    text = printed("coco_suite.py", "--out", "exdata")
    assert number("on N of 24", text) >= 12
    records = "".join(path.read_text() for path in (tmp_path / "exdata/gesmr").glob("*.info"))
    assert sorted(map(int, re.findall(r"funcId = (\d+)", records))) == list(range(1, 25))
