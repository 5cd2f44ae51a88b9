"""A file from one of several mirrors: retried, resumed, checked before it is there, fetched once by two processes."""

import http.client
import os
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TypeVar

try:
    import fcntl
except ImportError:  # not a Unix: two processes then both download, and no harm
    fcntl = None

WAITS = (0.5, 2.0, 5.0)  # seconds between rounds of all mirrors
TIMEOUT = 30.0  # seconds without a byte
_BLOCK = 2**18

T = TypeVar("T")


class DownloadError(Exception):
    """Every mirror failed; says why, one after the other."""


def download(urls: Sequence[str], target: Path, read: Callable[[Path], T]) -> T:
    """What `read` makes of `target`, which is downloaded first unless it can be read already.

    `read` raises ValueError for a file that is not as it should be. What a broken connection left behind is kept
    beside the target and continued, by whichever process comes next.
    """
    target.parent.mkdir(parents=True, exist_ok=True)
    with _claim(target):
        try:
            return read(target)  # another process may have been first
        except (FileNotFoundError, ValueError):
            pass
        return _from_any(urls, target, read)


def _from_any(urls: Sequence[str], target: Path, read: Callable[[Path], T]) -> T:
    partial = target.with_name(f"{target.name}.partial" if fcntl else f"{target.name}.{os.getpid()}.partial")
    reasons: dict[str, str] = {}
    for wait in (*WAITS, None):
        for url in urls:
            try:
                _fetch(url, partial)
                content = read(partial)
            except ValueError as error:
                partial.unlink(missing_ok=True)  # wrong from the start, or two files pieced together
                reasons[url] = str(error)
            except (OSError, http.client.HTTPException) as error:
                reasons[url] = _reason(error)
            else:
                partial.replace(target)
                return content
        if wait is not None:
            time.sleep(wait)
    raise DownloadError("; ".join(f"{url}: {reason}" for url, reason in reasons.items()))


def _fetch(url: str, partial: Path) -> None:
    """Download to `partial`, after what it holds already. OSError if the connection ends early."""
    have = partial.stat().st_size if partial.exists() else 0
    request = urllib.request.Request(url, headers={"Range": f"bytes={have}-"} if have else {})
    try:
        response = urllib.request.urlopen(request, timeout=TIMEOUT)
    except urllib.error.HTTPError as error:
        if error.code == http.HTTPStatus.REQUESTED_RANGE_NOT_SATISFIABLE:
            return  # nothing is left to fetch, or what is there is too long: reading it will tell
        raise
    with response:
        continues = response.status == http.HTTPStatus.PARTIAL_CONTENT
        have = have if continues else 0
        length = response.headers.get("Content-Length")
        total = have + int(length) if length else None
        with partial.open("ab" if continues else "wb") as file, _progress(url, total) as show:
            while block := response.read(_BLOCK):
                file.write(block)
                have += len(block)
                show(have)
            file.flush()
            os.fsync(file.fileno())
    if total is not None and have < total:
        raise OSError(f"the connection ended after {have} of {total} bytes")


@contextmanager
def _progress(url: str, total: int | None) -> Iterator[Callable[[int], None]]:
    """How far it is, on a terminal; elsewhere a line that says what is being done."""
    size = f" ({total / 1e6:.1f} MB)" if total else ""
    print(f"downloading {url}{size}", file=sys.stderr, flush=True)
    if not sys.stderr.isatty():
        yield lambda have: None
        return

    def show(have: int) -> None:
        part = f"{100 * have / total:3.0f}%" if total else f"{have / 1e6:.1f} MB"
        print(f"\r{part}", end="", file=sys.stderr, flush=True)

    try:
        yield show
    finally:
        print(file=sys.stderr)


@contextmanager
def _claim(target: Path) -> Iterator[None]:
    """Wait until no other process downloads `target`. A dead one holds nothing."""
    if fcntl is None:
        yield
        return
    with target.with_name(f"{target.name}.lock").open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def _reason(error: Exception) -> str:
    if isinstance(error, urllib.error.HTTPError):
        return f"HTTP {error.code} {error.reason}"
    if isinstance(error, urllib.error.URLError):
        return str(error.reason)
    return str(error) or type(error).__name__
