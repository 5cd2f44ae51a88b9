"""What is stored is read back whole or not at all."""

import json
import subprocess
import sys
import textwrap
import threading
from pathlib import Path

import numpy as np
import pytest

from gesmr.lab.errors import LabError, StorageError
from gesmr.lab.store import Store, check_home, write_text
from gesmr.studies import as_json, content_hash
from studies import made_up_group


@pytest.fixture
def warnings_said():
    return []


@pytest.fixture
def store(tmp_path, warnings_said):
    return Store(tmp_path / "store", create=True, warn=warnings_said.append)


def hashes(specs):
    return {content_hash(as_json(spec)) for spec in specs}


def only(directory: Path, pattern: str) -> Path:
    (path,) = directory.glob(pattern)
    return path


def test_a_group_is_read_back_as_it_was_written(store):
    specs, arrays = made_up_group()
    store.write(specs, arrays, {"device": "a machine"})
    (group,) = Store(store.directory).groups()
    assert group.specs == tuple(as_json(spec) for spec in specs)
    assert group.provenance == {"device": "a machine"}
    assert group.arrays.keys() == arrays.keys()
    for name, array in arrays.items():
        np.testing.assert_array_equal(group.arrays[name], array)
        assert group.arrays[name].dtype == array.dtype
    assert store.done() == hashes(specs)
    assert store.has(specs)


def test_the_same_group_is_the_same_bytes(store, tmp_path):
    other = Store(tmp_path / "other", create=True)
    for where in (store, other):
        where.write(*made_up_group(), {})
    files = [{path.name: path.read_bytes() for path in where.directory.glob("groups/*")} for where in (store, other)]
    assert files[0] == files[1]
    assert len(files[0]) == 2


def flip_a_byte(path):
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(data)


DAMAGE = {
    "arrays cut short": ("*.npz", lambda path: path.write_bytes(path.read_bytes()[:-10])),
    "a byte of the arrays changed": ("*.npz", flip_a_byte),
    "arrays missing": ("*.npz", lambda path: path.unlink()),
    "no JSON": ("*.json", lambda path: path.write_text("{")),
    "other JSON": ("*.json", lambda path: path.write_text("[1, 2]")),
    "a later format": ("*.json", lambda path: edit(path, format=99)),
    "another group's runs": ("*.json", lambda path: edit(path, specs=[{"kind": "run", "function": "ackley"}])),
    "a path out of the store": ("*.json", lambda path: edit(path, arrays="../../x.npz")),
}


def edit(path, **changes):
    path.write_text(json.dumps(json.loads(path.read_text()) | changes))


@pytest.mark.parametrize("damage", DAMAGE)
def test_a_damaged_group_is_named_set_aside_and_not_used(store, warnings_said, damage):
    intact = made_up_group(("SAMR",))
    store.write(*made_up_group(), {})
    pattern, spoil = DAMAGE[damage]
    spoil(only(store.directory / "groups", pattern))
    name = only(store.directory / "groups", "*.json").name
    store.write(*intact, {})
    assert store.done() == hashes(intact[0])
    assert any(name in line for line in warnings_said)
    assert (store.directory / "aside" / name).exists()
    store.write(*made_up_group(), {})  # computed again
    assert store.done() == hashes(intact[0]) | hashes(made_up_group()[0])


def test_arrays_of_another_number_of_runs_are_not_used(store, warnings_said):
    specs, arrays = made_up_group()
    store.write(specs, {name: array[:-1] for name, array in arrays.items()}, {})
    assert store.done() == set()
    assert "not of 3 runs" in warnings_said[0]


def test_pickles_are_never_loaded(store):
    specs, arrays = made_up_group()
    with pytest.raises(ValueError, match="allow_pickle=False"):
        store.write(specs, arrays | {"final": np.array([{}] * 3, dtype=object)}, {})


def test_a_foreign_file_is_set_aside(store, warnings_said):
    store.write(*made_up_group(), {})
    (store.directory / "groups" / "notes.txt").write_text("mine")
    assert len(store.done()) == 3
    assert (store.directory / "aside" / "notes.txt").read_text() == "mine"
    assert "notes.txt" in warnings_said[0]


def test_leftovers_of_a_killed_runner_are_ignored(store, warnings_said):
    store.write(*made_up_group(), {})
    (store.directory / "groups" / "x.json.1-2.partial").write_text("{")
    (store.directory / "groups" / "x-0.npz").write_bytes(b"never finished")
    assert len(store.done()) == 3
    assert not warnings_said


def test_a_group_is_claimed_by_one_process_at_a_time(store):
    specs, _ = made_up_group()
    with store.claim(specs) as mine, Store(store.directory).claim(specs) as theirs:
        assert (mine, theirs) == (True, False)
    with Store(store.directory).claim(specs) as free_again:
        assert free_again


def test_a_store_must_be_one(tmp_path):
    with pytest.raises(LabError, match="holds no results"):
        Store(tmp_path / "absent")
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "thesis.tex").touch()
    with pytest.raises(LabError, match="not empty"):
        Store(tmp_path / "full", create=True)
    with pytest.raises(LabError, match="not empty"):
        check_home(tmp_path / "full")
    with pytest.raises(LabError, match="must be a directory"):
        Store(tmp_path / "full" / "thesis.tex", create=True)
    Store(tmp_path / "mine", create=True)
    (tmp_path / "mine" / "store.json").write_text('{"format": 2}')
    with pytest.raises(LabError, match=r"store\.json is not of a store"):
        Store(tmp_path / "mine", create=True)


def test_a_home_of_studies_can_be_used_again(tmp_path):
    check_home(tmp_path / "absent")
    check_home(tmp_path)
    Store(tmp_path / "functions", create=True)
    check_home(tmp_path)


def test_runners_that_start_together_make_one_store(tmp_path):
    errors = []

    def start(home, together):
        together.wait()
        try:
            check_home(home)
            Store(home / "functions", create=True)
        except LabError as error:
            errors.append(error)

    for i in range(20):
        arguments = tmp_path / str(i), threading.Barrier(4)
        threads = [threading.Thread(target=start, args=arguments) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert not errors


def test_when_the_disk_is_full_finished_groups_are_intact(tmp_path):
    """A process whose files may have 100 kB at most, which for a single file is what a full disk is."""
    script = textwrap.dedent("""
        import resource, sys
        from gesmr.lab.errors import StorageError
        from gesmr.lab.store import Store
        from studies import made_up_group
        import numpy as np
        store = Store(sys.argv[1], create=True)
        store.write(*made_up_group(("SAMR",)), {})
        resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000))
        specs, arrays = made_up_group()
        try:
            store.write(specs, arrays | {"large": np.zeros((3, 100_000))}, {})
        except StorageError as error:
            sys.exit(str(error))
    """)
    directory = tmp_path / "store"
    done = subprocess.run([sys.executable, "-c", script, directory], capture_output=True, text=True, check=False,
                          cwd=Path(__file__).parent, timeout=120)  # fmt: skip
    assert done.returncode == 1
    assert "File too large" in done.stderr
    assert "intact" in done.stderr
    said = []
    assert Store(directory, warn=said.append).done() == hashes(made_up_group(("SAMR",))[0])
    assert not said
    assert not list(directory.glob("groups/*.partial"))


def test_sessions_are_kept_and_a_line_cut_short_is_skipped(store):
    store.log({"runs": 1})
    with (store.directory / "sessions.jsonl").open("a") as file:
        file.write('{"runs": 2, "wall')
    assert store.sessions() == [{"runs": 1}]


def test_documents_that_cannot_be_written(tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(StorageError, match="cannot be written"):
        write_text(tmp_path / "file" / "table.csv", "x")
