"""MNIST and Fashion-MNIST from their IDX files.

Looked for in `$GESMR_DATA/NAME`, then in the user's cache, then downloaded there. Nothing is used before its SHA-256
is the right one: results of different machines are of the same images. What is downloaded has the right one before it
is decompressed; files that are there may be compressed otherwise, or not at all.
"""

import gzip
import os
import zlib
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np

from .. import _checks
from ._download import Known, download

PARTS = ("train", "test")
_GZIP = b"\x1f\x8b"
_UNSIGNED_BYTES = 0x08


class DatasetError(Exception):
    """Data that is missing, damaged or not what it should be: which file, and what to do."""


class Labelled(NamedTuple):
    images: np.ndarray  # u8[n, 28, 28]
    labels: np.ndarray  # u8[n], 0 … 9


class File(NamedTuple):
    name: str
    packed: Known  # as it is downloaded
    content: Known  # decompressed


@dataclass(frozen=True)
class Source:
    """Where a set comes from. Its name is that of its folder."""

    name: str
    mirrors: tuple[str, ...]  # each ends with a slash
    files: dict[str, tuple[File, File]]  # images and labels of each part


_SIZES = {  # of the content
    "train-images-idx3-ubyte.gz": 16 + 60_000 * 28 * 28,
    "train-labels-idx1-ubyte.gz": 8 + 60_000,
    "t10k-images-idx3-ubyte.gz": 16 + 10_000 * 28 * 28,
    "t10k-labels-idx1-ubyte.gz": 8 + 10_000,
}


def _files(packed: Sequence[Known], content: Sequence[str]) -> dict[str, tuple[File, File]]:
    rows = zip(_SIZES.items(), packed, content, strict=True)
    files = [File(name, known, Known(size, sha256)) for (name, size), known, sha256 in rows]
    return {"train": (files[0], files[1]), "test": (files[2], files[3])}


SOURCES = {
    "mnist": Source(
        "mnist",
        (
            "https://ossci-datasets.s3.amazonaws.com/mnist/",
            "https://storage.googleapis.com/cvdf-datasets/mnist/",
        ),
        _files(
            packed=(
                Known(9_912_422, "440fcabf73cc546fa21475e81ea370265605f56be210a4024d2ca8f203523609"),
                Known(28_881, "3552534a0a558bbed6aed32b30c495cca23d567ec52cac8be1a0730e8010255c"),
                Known(1_648_877, "8d422c7b0a1c1c79245a5bcf07fe86e33eeafee792b84584aec276f5a2dbc4e6"),
                Known(4_542, "f7ae60f92e00ec6debd23a6088c31dbd2371eca3ffa0defaefb259924204aec6"),
            ),
            content=(
                "ba891046e6505d7aadcbbe25680a0738ad16aec93bde7f9b65e87a2fc25776db",
                "65a50cbbf4e906d70832878ad85ccda5333a97f0f4c3dd2ef09a8a9eef7101c5",
                "0fa7898d509279e482958e8ce81c8e77db3f2f8254e26661ceb7762c4d494ce7",
                "ff7bcfd416de33731a308c3f266cc351222c34898ecbeaf847f06e48f7ec33f2",
            ),
        ),
    ),
    "fashion-mnist": Source(
        "fashion-mnist",
        (
            "https://github.com/zalandoresearch/fashion-mnist/raw/master/data/fashion/",
            "https://fashion-mnist.s3.eu-central-1.amazonaws.com/",
        ),
        _files(
            packed=(
                Known(26_421_880, "3aede38d61863908ad78613f6a32ed271626dd12800ba2636569512369268a84"),
                Known(29_515, "a04f17134ac03560a47e3764e11b92fc97de4d1bfaf8ba1a3aa29af54cc90845"),
                Known(4_422_102, "346e55b948d973a97e58d2351dde16a484bd415d4595297633bb08f03db6a073"),
                Known(5_148, "67da17c76eaffca5446c3361aaab5c3cd6d1c2608764d35dfb1850b086bf8dd5"),
            ),
            content=(
                "c59f468a2f672dc815687fe0f83887768d799fd8a3f3276145d20f83aa44d888",
                "bad3541b69d912435c50bb6ba87bec294ff4f6a2e1246121d8633921760443d9",
                "5b4141f0afbad91edebe8549f8fcffe087ea10ca49f1dbef5c9a5cd8815ce37b",
                "0402a96d92fd2663957122ceb108a494c5af83dab82d92729df917d7dec38c34",
            ),
        ),
    ),
}


def load(name: str, part: str = "train") -> Labelled:
    """The images and labels of a part ("train", "test") of a set, one of `SOURCES`."""
    _checks.choice("name", name, tuple(SOURCES))
    _checks.choice("part", part, PARTS)
    source = SOURCES[name]
    return Labelled(*(parse_idx(_content(source, file), file.name) for file in source.files[part]))


def cache_directory() -> Path:
    """Where downloads are kept, a folder for each set."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "gesmr" / "data"


def parse_idx(content: bytes, name: str = "it") -> np.ndarray:
    """The array in an IDX file of unsigned bytes."""
    if not isinstance(content, bytes):
        raise TypeError(f"content must be bytes, got {type(content).__name__}")
    if len(content) < 4 or content[:2] != b"\0\0" or content[2] != _UNSIGNED_BYTES:
        raise DatasetError(f"{name} is not an IDX file of unsigned bytes")
    start = 4 + 4 * content[3]
    shape = tuple(np.frombuffer(content[4:start], ">u4").tolist()) if len(content) >= start else (0,)
    expected = start + int(np.prod(shape, dtype=object))
    if len(content) != expected:
        kind = "truncated" if len(content) < expected else "too long"
        raise DatasetError(f"{name} is {kind}: it holds {len(content)} bytes where its header says {expected}")
    return np.frombuffer(content, np.uint8, offset=start).reshape(shape)


def _content(source: Source, file: File) -> bytes:
    """The file's decompressed content, from the first place that has it."""
    if given := os.environ.get("GESMR_DATA"):
        for path in (Path(given) / source.name / file.name, Path(given) / source.name / Path(file.name).stem):
            if path.is_file():
                try:
                    return _decompressed(path, file.content)
                except ValueError as error:
                    raise DatasetError(f"{path} is damaged or not {source.name}'s: {error}") from error
    cached = cache_directory() / source.name / file.name
    with suppress(OSError, ValueError):  # absent, or damaged: downloaded in its place
        return _decompressed(cached, file.content)
    try:
        download([f"{mirror}{file.name}" for mirror in source.mirrors], cached, file.packed)
        return _decompressed(cached, file.content)
    except (OSError, ValueError) as error:
        *names, last = (file.name for part in PARTS for file in source.files[part])
        raise DatasetError(
            f"{source.name} is not on this machine and cannot be downloaded ({error}): put {', '.join(names)} and "
            f"{last} into {cached.parent}, or into a folder {source.name} of the directory that the environment "
            "variable GESMR_DATA names"
        ) from error


def _decompressed(path: Path, content: Known) -> bytes:
    """ValueError if it is not the content that is wanted."""
    with path.open("rb") as file:
        packed = file.peek(2).startswith(_GZIP)
        try:
            return content.read(gzip.GzipFile(fileobj=file) if packed else file, "its content")
        except (EOFError, OSError, zlib.error) as error:
            raise ValueError(f"it cannot be decompressed ({str(error) or type(error).__name__})") from error
