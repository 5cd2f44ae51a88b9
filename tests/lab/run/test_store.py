"""What is stored is read back whole or not at all."""

import json
import subprocess
import sys
import textwrap
import threading
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import numpy as np
import pytest

from gesmr.lab.errors import LabError, StorageError
from gesmr.lab.run.store import Store, StoredJob, check_home, runs_of, write_text
from gesmr.lab.studies import as_json, content_hash
from helpers import TESTS
from helpers.studies import made_up_group


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
    (group,) = Store(store.directory).jobs()
    assert group.specs == tuple(as_json(spec) for spec in specs)
    assert group.provenance == {"device": "a machine"}
    assert group.arrays.keys() == arrays.keys()
    for name, array in arrays.items():
        np.testing.assert_array_equal(group.arrays[name], array)
        assert group.arrays[name].dtype == array.dtype
    assert store.done() == hashes(specs)
    assert store.has(specs)


@dataclass(frozen=True)
class Piece:
    kind: ClassVar[str] = "piece"
    name: str
    rates: tuple[float, ...] = (1.0,)
    revision: int = 2


def test_stored_runs_are_read_as_what_they_were():
    stored = {"kind": "piece", "name": "a", "revision": 2}
    passed_over = (
        {**stored, "kind": "other"},
        {**stored, "revision": 1},
        {**stored, "added_later": 1},
        {"kind": "piece", "revision": 2},
        {"name": "a", "revision": 2},
    )
    specs = ({**stored, "rates": [0.5, 2.0]}, *passed_over, stored)
    job = StoredJob(specs, {}, {"value": np.arange(7.0), "row": np.arange(14).reshape(7, 2)})
    (first, arrays), (last, others) = runs_of([job], Piece)
    assert (first, last) == (Piece("a", (0.5, 2.0)), Piece("a"))
    assert (arrays["value"], others["value"]) == (0.0, 6.0)
    assert others["row"].tolist() == [12, 13]


def test_runs_of_a_study_come_back_from_its_store(store):
    specs, arrays = made_up_group()
    store.write(specs, arrays, {})
    found = list(runs_of(store.jobs(), type(specs[0])))
    assert [spec for spec, _ in found] == list(specs)
    for i, (_, own) in enumerate(found):
        assert own.keys() == arrays.keys()
        assert all(np.array_equal(own[name], array[i]) for name, array in arrays.items())


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
    "another provenance": ("*.json", lambda path: edit(path, provenance={"device": "a better machine"})),
    "a changed word": ("*.json", lambda path: path.write_text(path.read_text().replace('"sphere"', '"ackley"'))),
    "the format before, which had no checksum": ("*.json", lambda path: edit(path, format=1)),
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


def test_every_changed_byte_of_a_description_is_found(store):
    """Or it changes nothing that is read, as white space."""
    specs, arrays = made_up_group(seeds=1)
    store.write(specs, arrays, {"device": "a machine", "seconds": 1.5, "devices": 2})
    (written,) = store.jobs()
    path = only(store.directory / "groups", "*.json")
    data, found = path.read_bytes(), 0
    for place in range(len(data)):
        changed = bytearray(data)
        changed[place] ^= 1
        path.write_bytes(changed)
        used = list(store.jobs())
        found += not used
        assert all((group.specs, group.provenance) == (written.specs, written.provenance) for group in used)
    assert found > 0.9 * len(data.translate(None, b" \n"))
    path.write_bytes(data)
    assert store.done() == hashes(specs)  # a damaged description does not cost the arrays


def without_checksum(path):
    """As a description was before there was one."""
    entry = json.loads(path.read_text())
    del entry["checksum"]
    path.write_text(json.dumps(entry | {"format": 1}))


def test_a_store_of_the_format_before_is_read_and_added_to(store, warnings_said):
    store.write(*made_up_group(), {"device": "a machine"})
    without_checksum(only(store.directory / "groups", "*.json"))
    (store.directory / "store.json").write_text('{"what": "gesmr study store", "format": 1}')
    (group,) = Store(store.directory).jobs()
    assert group.provenance == {"device": "a machine"}
    again = Store(store.directory, create=True, warn=warnings_said.append)
    again.write(*made_up_group(("SAMR",)), {})
    assert again.done() == hashes(made_up_group()[0] + made_up_group(("SAMR",))[0])
    assert not warnings_said


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
        from gesmr.lab.run.store import Store
        from helpers.studies import made_up_group
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
                          cwd=TESTS, timeout=120)  # fmt: skip
    assert done.returncode == 1
    assert "File too large" in done.stderr
    assert "what was stored before is left as it was" in done.stderr
    said = []
    assert Store(directory, warn=said.append).done() == hashes(made_up_group(("SAMR",))[0])
    assert not said
    assert not list(directory.glob("groups/*.partial"))


def test_sessions_are_kept_and_a_line_cut_short_is_skipped(store):
    store.log({"runs": 1})
    with (store.directory / "sessions.jsonl").open("a") as file:
        file.write('{"runs": 2, "wall')
    assert store.sessions() == [{"runs": 1}]


def test_sessions_with_a_changed_byte_are_skipped(store):
    store.log({"runs": 1})
    store.log({"runs": 2})
    path = store.directory / "sessions.jsonl"
    path.write_bytes(b"\xff" + path.read_bytes()[1:])
    assert store.sessions() == [{"runs": 2}]


# Directories that vanish or cannot be written. Modes mean nothing to root: other things stand in the way.


def replaced_by_a_file(path):
    if path.exists():
        path.rename(path.with_name(f"{path.name}.away"))
    path.touch()


def claimed(store):
    with store.claim(made_up_group()[0]):
        pass


IN_THE_WAY = {
    "groups are gone": ("groups", lambda path: path.rename(path.with_name("away")), "No such file"),
    "groups are a file": ("groups", replaced_by_a_file, "Not a directory"),
}
USES = {
    "write": lambda store: store.write(*made_up_group(), {}),
    "read": lambda store: list(store.jobs()),
    "claim": claimed,
}


@pytest.mark.parametrize("use", USES)
@pytest.mark.parametrize("what", IN_THE_WAY)
def test_a_directory_that_cannot_be_used_any_more(store, use, what):
    name, spoil, words = IN_THE_WAY[what]
    spoil(store.directory / name)
    with pytest.raises(StorageError, match=f"groups cannot be used: {words}.*; what was stored before is left"):
        USES[use](store)


def test_a_directory_that_vanishes_while_it_is_read(store):
    """Half of the results must not pass for all of them."""
    store.write(*made_up_group(), {})
    store.write(*made_up_group(("SAMR",)), {})
    groups = store.jobs()
    next(groups)
    (store.directory / "groups").rename(store.directory / "away")
    with pytest.raises(StorageError, match="groups cannot be used: No such file"):
        list(groups)


def test_a_directory_that_vanishes_while_a_group_is_claimed(store):
    specs, arrays = made_up_group()
    with store.claim(specs) as mine:
        assert mine
        replaced_by_a_file(store.directory / "groups")
        with pytest.raises(StorageError, match="cannot be used: Not a directory"):
            store.write(specs, arrays, {})


def test_a_log_that_cannot_be_written_or_read(store):
    (store.directory / "sessions.jsonl").mkdir()
    with pytest.raises(StorageError, match="cannot be used: Is a directory"):
        store.log({"runs": 1})


def test_a_damaged_group_that_cannot_be_set_aside(store, warnings_said):
    """Who reads goes on without it; who computes would find it in the way."""
    store.write(*made_up_group(), {})
    store.write(*made_up_group(("SAMR",)), {})
    flip_a_byte(next((store.directory / "groups").glob("*.json")))
    (store.directory / "aside").touch()
    assert len(Store(store.directory, warn=warnings_said.append).done()) == 3
    assert "nor set aside: File exists" in warnings_said[0]
    with pytest.raises(StorageError, match="nor set aside: File exists"):
        store.done()


def test_documents_that_cannot_be_written(tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(StorageError, match="cannot be written"):
        write_text(tmp_path / "file" / "table.csv", "x")
