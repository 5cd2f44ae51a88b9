"""Finished groups on disk: arrays as npz without pickle, the rest as JSON.

    DIR/store.json             says that this is a store
    DIR/groups/ID.json         specifications, provenance, name and SHA-256 of the arrays' file, and its own
    DIR/groups/ID-DIGEST.npz   the arrays
    DIR/aside/                 files that were damaged or not ours

Both files of a group are written under another name and renamed. The JSON comes last: a group is there when its
JSON is. Arrays are named by their content, so two runners that finish the same group cannot mix their files.
"""

import hashlib
import io
import json
import zipfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import MISSING, dataclass, fields
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from ..._files import write_atomically
from ..._locks import is_locked
from ..errors import LabError, StorageError
from .specs import Spec, as_json, content_hash

FORMAT = 2
_MARK = {"what": "gesmr study store", "format": FORMAT}
_MARKS = _MARK, {**_MARK, "format": 1}
_FORMAT_1 = {"format", "arrays", "sha256", "specs", "provenance"}  # a group's description, which had no checksum yet


@dataclass(frozen=True)
class StoredJob:
    specs: tuple[dict[str, Any], ...]
    provenance: dict[str, Any]
    arrays: dict[str, np.ndarray]  # first axis follows `specs`


S = TypeVar("S", bound=Spec)


def runs_of(jobs: Iterable[StoredJob], kind: type[S]) -> Iterator[tuple[S, dict[str, np.ndarray]]]:
    """Every stored run of a kind and of its present revision, with its own arrays.

    Fields that were not stored have their defaults. What this version cannot describe is passed over.
    """
    for job in jobs:
        for i, stored in enumerate(job.specs):
            spec = _typed(stored, kind)
            if spec is not None:
                yield spec, {name: array[i] for name, array in job.arrays.items()}


def _typed(stored: Mapping[str, Any], kind: type[S]) -> S | None:
    """A stored specification as the dataclass it was, if it still is one."""
    defaults = {field.name: field.default for field in fields(kind)}
    given = {name: tuple(value) if isinstance(value, list) else value for name, value in stored.items()}
    complete = {**defaults, **given}
    of_this_kind = complete.pop("kind", None) == kind.kind and complete.get("revision") == defaults.get("revision")
    if not of_this_kind or complete.keys() != defaults.keys() or MISSING in complete.values():
        return None
    return kind(**complete)


def check_home(directory: Path) -> None:
    """Refuse a directory that holds things other than stores of studies, before anything is put there."""
    with _used(directory, LabError):
        found = directory.is_dir() and not any(directory.glob("*/store.json"))
        if found and not all(_is_new(path) for path in directory.iterdir()):
            raise LabError(f"{directory} is not empty and holds no results of gesmr; choose another directory")


class Store:
    """The store in `directory`, made there if `create` and the directory is absent or empty."""

    def __init__(self, directory: Path | str, *, create: bool = False, warn: Callable[[str], None] = print):
        self.directory = Path(directory)
        self._warn = warn
        self._groups = self.directory / "groups"
        self._writes = create
        mark = self.directory / "store.json"
        with _used(self.directory, LabError):
            if mark.is_file():
                _check_mark(mark)
            elif not create:
                raise LabError(f"{self.directory} holds no results; `gesmr study run` makes some")
            elif self.directory.exists() and not self.directory.is_dir():
                raise LabError(f"{self.directory} must be a directory, got a file")
            elif self.directory.is_dir() and not _is_new(self.directory):
                raise LabError(f"{self.directory} is not empty and holds no results of gesmr; choose another directory")
            if create:
                self._groups.mkdir(parents=True, exist_ok=True)
                write_atomically(mark, _json_bytes(_MARK))  # every time: it shows that the directory can be written

    def write(self, specs: Sequence[Spec], arrays: Mapping[str, np.ndarray], provenance: Mapping[str, Any]) -> None:
        """Store a finished group, or raise StorageError and leave no trace."""
        described = [as_json(spec) for spec in specs]
        name = _group_id(described)
        payload = io.BytesIO()
        np.savez(payload, allow_pickle=False, **arrays)
        data = payload.getvalue()
        digest = hashlib.sha256(data).hexdigest()
        file = f"{name}-{digest[:16]}.npz"
        entry = {"format": FORMAT, "arrays": file, "sha256": digest, "specs": described, "provenance": dict(provenance)}
        with _used(self._groups):
            write_atomically(self._groups / file, data)
            write_atomically(self._groups / f"{name}.json", _json_bytes({**entry, "checksum": content_hash(entry)}))

    def jobs(self) -> Iterator[StoredJob]:
        """Every group that is whole. What is not is named, set aside, and so counts as not yet computed."""
        with _used(self._groups):
            for path in sorted(self._groups.iterdir()):
                if path.suffix == ".json":
                    try:
                        yield self._read(path)
                    except FileNotFoundError:
                        continue  # another process set it aside or replaced it meanwhile
                    except _DamagedError as damage:
                        self._set_aside(path, str(damage))
                elif path.suffix not in (".npz", ".lock", ".partial"):
                    self._set_aside(path, "not a file of this store")
            self._groups.stat()  # or the directory went meanwhile, and these were not all

    def done(self) -> set[str]:
        """Content hashes of the specifications that have been computed."""
        return {content_hash(spec) for group in self.jobs() for spec in group.specs}

    @contextmanager
    def claim(self, specs: Sequence[Spec]) -> Iterator[bool]:
        """Whether this process may compute the group now: false while another one holds it. A dead one holds none."""
        lock = self._groups / f"{_group_id([as_json(spec) for spec in specs])}.lock"
        with _used(self._groups):
            file = lock.open("w")
        with file:
            with _used(self._groups):
                mine = is_locked(file)
            try:
                yield mine
            finally:
                if mine:
                    with suppress(OSError):  # gone with its directory, or in nobody's way
                        lock.unlink()

    def has(self, specs: Sequence[Spec]) -> bool:
        """Whether exactly this group is there, by its name alone."""
        with _used(self._groups):
            return (self._groups / f"{_group_id([as_json(spec) for spec in specs])}.json").exists()

    def log(self, session: Mapping[str, Any]) -> None:
        """Add a line about a runner's work."""
        with _used(self.directory), (self.directory / "sessions.jsonl").open("a", encoding="utf-8") as file:
            file.write(json.dumps(session, allow_nan=False) + "\n")

    def sessions(self) -> list[dict[str, Any]]:
        """What runners have logged, oldest first."""
        path = self.directory / "sessions.jsonl"
        with _used(self.directory):
            lines = path.read_text(encoding="utf-8", errors="replace").splitlines() if path.is_file() else []
        found: list[dict[str, Any]] = []
        for line in lines:
            with suppress(json.JSONDecodeError):  # a line cut short when a runner was killed
                found.append(json.loads(line))
        return [session for session in found if isinstance(session, dict)]

    def commands(self) -> list[str]:
        """The commands that computed what is here, each once; none if not all are known."""
        given = [session.get("command") for session in self.sessions()]
        return list(dict.fromkeys(map(str, given))) if all(given) else []

    def _read(self, path: Path) -> StoredJob:
        entry = _read_json(path)
        try:
            if entry["format"] not in (1, FORMAT):
                raise _DamagedError(f"format {entry['format']!r}, not {FORMAT}")
            if not _is_as_written(entry):
                raise _DamagedError("its content is not what was written")
            specs, name, digest = tuple(entry["specs"]), str(entry["arrays"]), entry["sha256"]
            provenance = dict(entry["provenance"])
            right_name = path.stem == _group_id(specs) and Path(name).name == name
        except (KeyError, TypeError, ValueError) as error:
            raise _DamagedError("not a description of a group") from error
        if not right_name:
            raise _DamagedError("its name does not fit its content")
        try:
            data = (path.parent / name).read_bytes()
        except FileNotFoundError as error:
            raise _DamagedError(f"its arrays {name} are missing") from error
        if hashlib.sha256(data).hexdigest() != digest:
            self._set_aside(path.parent / name, "its content is not what was written")
            raise _DamagedError(f"its arrays {name} are damaged")
        try:
            with np.load(io.BytesIO(data), allow_pickle=False) as archive:
                arrays = {key: archive[key] for key in archive.files}
        except (ValueError, OSError, zipfile.BadZipFile) as error:
            raise _DamagedError(f"its arrays {name} cannot be read") from error
        if any(len(array) != len(specs) for array in arrays.values()):
            raise _DamagedError(f"its arrays {name} are not of {len(specs)} runs")
        return StoredJob(specs, provenance, arrays)

    def _set_aside(self, path: Path, why: str) -> None:
        aside = self.directory / "aside"
        target, number = aside / path.name, 1
        try:
            aside.mkdir(exist_ok=True)
            while target.exists():
                target, number = aside / f"{path.name}.{number}", number + 1
            path.rename(target)
        except FileNotFoundError:
            return
        except OSError as error:
            said = f"{path} cannot be used: {why}; nor set aside: {error.strerror}"
            if self._writes:  # it would stand where what is computed again has to be
                raise StorageError(said) from error
            self._warn(said)
            return
        self._warn(f"set aside {path.name}: {why} (now {target}); what it held counts as not computed")


@contextmanager
def _used(directory: Path, kind: type[LabError] = StorageError) -> Iterator[None]:
    """What goes wrong with a directory that vanishes, is full or may not be written ends in a sentence."""
    try:
        yield
    except OSError as error:
        go_on = "; what was stored before is left as it was, and the same command continues once this is repaired"
        raise kind(f"{directory} cannot be used: {error.strerror}{go_on if kind is StorageError else ''}") from error


class _DamagedError(Exception):
    """A file of the store that must not be used."""


def _is_new(directory: Path) -> bool:
    """Whether nothing is there but what a store begins with, which another runner may be making just now."""
    begins = ("groups", "store.json")
    return directory.is_dir() and all(path.name.startswith(begins) for path in directory.iterdir())


def _check_mark(mark: Path) -> None:
    try:
        known = _read_json(mark) in _MARKS
    except _DamagedError:
        known = False
    if not known:
        raise LabError(f"{mark} is not of a store that this version reads (format {FORMAT})")


def _is_as_written(entry: dict[str, Any]) -> bool:
    if entry["format"] == 1:
        return entry.keys() == _FORMAT_1
    return entry["checksum"] == content_hash({name: part for name, part in entry.items() if name != "checksum"})


def _group_id(specs: Sequence[Mapping[str, Any]]) -> str:
    return content_hash(list(specs))[:24]


def _read_json(path: Path) -> Any:
    try:
        return json.loads(path.read_bytes())
    except ValueError as error:
        raise _DamagedError("not JSON") from error


def _json_bytes(data: Any) -> bytes:
    return (json.dumps(data, indent=1, allow_nan=False) + "\n").encode()


def write_text(path: Path, text: str) -> None:
    """A document for people, and the directories above it; or StorageError."""
    write_bytes(path, text.encode())


def write_bytes(path: Path, data: bytes) -> None:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        write_atomically(path, data)
    except OSError as error:
        raise StorageError(f"{path} cannot be written: {error.strerror}") from error
