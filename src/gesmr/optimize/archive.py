"""A checkpoint as a file: whole, checked, and without pickle.

It is an npz file that `numpy.load` opens too: the arrays, and under `meta` everything else as JSON. The comment at the
end of the zip archive holds the SHA-256 of all bytes before it.
"""

import hashlib
import json
import math
import os
import re
import warnings
import zipfile
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from .._files import PARTIAL, whole_file

FORMAT = 2
Content = tuple[dict[str, Any], dict[str, Any]]  # of a checkpoint: JSON, and arrays by name
_MARK = b"gesmr checkpoint sha256 "
_DIGEST = 64  # hexadecimal digits


class CheckpointError(ValueError):
    """A checkpoint that cannot be used, and why."""


class _DamagedError(CheckpointError):
    """Not what was written. An older one may do."""


def previous(path: str | Path) -> Path:
    path = Path(path)
    return path.with_name(f"{path.name}.previous")


def exists(path: str | Path) -> bool:
    return Path(path).exists() or previous(path).exists()


def write(path: str | Path, meta: dict[str, Any], arrays: dict[str, np.ndarray]) -> None:
    """Write a checkpoint; the one that was there becomes the previous one."""
    path = Path(path)
    text = np.frombuffer(json.dumps({"format": FORMAT, **meta}).encode(), np.uint8)
    try:
        with whole_file(path, previous(path)) as file:
            with zipfile.ZipFile(file, "w") as archive:
                for name, array in {"meta": text, **arrays}.items():
                    with archive.open(f"{name}.npy", "w", force_zip64=True) as member:
                        np.lib.format.write_array(member, np.asanyarray(array), allow_pickle=False)
                archive.comment = _MARK + b"0" * _DIGEST
            size = file.seek(0, os.SEEK_END)
            digest = _digest(file, size - _DIGEST)
            file.seek(size - _DIGEST)
            file.write(digest)
    except OSError as error:
        raise OSError(error.errno, f"the checkpoint {path} cannot be written: {error.strerror}") from error


def _digest(file: BinaryIO, size: int) -> bytes:
    """SHA-256 of the first `size` bytes, in hexadecimal, read in pieces: populations can be large."""
    file.seek(0)
    hashed = hashlib.sha256()
    while size > 0 and (piece := file.read(min(size, 2**20))):
        hashed.update(piece)
        size -= len(piece)
    return hashed.hexdigest().encode()


def tidy(path: str | Path) -> None:
    """Remove what a process that was killed while writing left behind, by the names that `write` gives."""
    path = Path(path)
    ours = re.compile(re.escape(path.name) + PARTIAL)
    for left in path.parent.iterdir():
        if ours.fullmatch(left.name):
            left.unlink(missing_ok=True)


def read(path: str | Path) -> Content:
    """The checkpoint at `path`, or the one before if that is damaged or gone; CheckpointError if neither will do."""
    path = Path(path)
    if not exists(path):
        raise FileNotFoundError(f"there is no checkpoint {path}")
    try:
        return _read(path)
    except (_DamagedError, OSError) as damage:
        try:
            found = _read(previous(path))
        except (_DamagedError, OSError) as worse:
            raise CheckpointError(f"{path} cannot be used: {_why(damage)}; the one before: {_why(worse)}") from damage
        warnings.warn(f"{path} cannot be used: {_why(damage)}; going on from {previous(path)}", stacklevel=2)
        return found


def _read(path: Path) -> Content:
    with path.open("rb") as file:
        size = file.seek(0, os.SEEK_END)
        file.seek(max(0, size - _DIGEST - len(_MARK)))
        mark, digest = file.read(len(_MARK)), file.read()
        if mark != _MARK:
            raise _DamagedError("it is not a whole checkpoint of gesmr")
        if _digest(file, size - _DIGEST) != digest:
            raise _DamagedError("its content is not what was written")
        file.seek(0)
        try:
            with zipfile.ZipFile(file) as archive:
                arrays = {
                    member.filename.removesuffix(".npy"): _array(archive, member) for member in archive.infolist()
                }
            meta = json.loads(arrays.pop("meta").tobytes())
        except (zipfile.BadZipFile, KeyError, ValueError, RecursionError, NotImplementedError, RuntimeError) as error:
            raise _DamagedError(f"it cannot be read ({error})") from error
    if not isinstance(meta, dict):
        raise _DamagedError("its description is not a table")
    if meta.get("format") != FORMAT:
        raise CheckpointError(f"{path} has format {meta.get('format')!r}, this version reads {FORMAT}")
    return meta, arrays


def _array(archive: zipfile.ZipFile, member: zipfile.ZipInfo) -> np.ndarray:
    """An array that takes no more memory than it has bytes in the file; ValueError if it is not as `write` makes it."""
    if member.compress_type != zipfile.ZIP_STORED or member.file_size != member.compress_size:
        raise ValueError(f"{member.filename} is compressed")
    with archive.open(member) as file:
        version = np.lib.format.read_magic(file)
        if version != (1, 0):
            raise ValueError(f"{member.filename} has another format of arrays")
        shape, in_columns, dtype = np.lib.format.read_array_header_1_0(file)
        if dtype.hasobject or member.file_size - file.tell() != math.prod(shape) * dtype.itemsize:
            raise ValueError(f"{member.filename} does not hold what it says")
        return np.frombuffer(file.read(), dtype).reshape(shape, order="F" if in_columns else "C").copy()


def _why(error: Exception) -> str:
    return "there is none" if isinstance(error, FileNotFoundError) else str(error)
