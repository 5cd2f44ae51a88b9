"""A file from one of several mirrors: over https alone, never longer than it should be, checked before it is there.

Not with pooch: it has no mirrors, no limit on the size, follows redirects to http, and lets two processes download the
same. What it would do here, comparing a hash and renaming a file, are three lines.
"""

import hashlib
import http.client
import io
import sys
import time
import urllib.request
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from .._files import write_atomically
from .._locks import is_locked

WAITS = (0.5, 2.0, 5.0)  # seconds between rounds of all mirrors
TIMEOUT = 30.0  # seconds without a byte


class Known(NamedTuple):
    """What is known of some bytes before they are there."""

    size: int
    sha256: str

    def read(self, stream: io.BufferedIOBase, what: str = "it") -> bytes:
        """All of `stream`. ValueError if it is not what is known, as soon as it is longer."""
        data = stream.read(self.size + 1)
        if len(data) > self.size:
            raise ValueError(f"{what} has more than {self.size:,} bytes")
        if (found := hashlib.sha256(data).hexdigest()) != self.sha256:
            raise ValueError(
                f"{what} has {len(data):,} bytes and SHA-256 {found[:16]}…, not {self.size:,} and {self.sha256[:16]}…"
            )
        return data


def download(urls: Sequence[str], target: Path, known: Known) -> None:
    """Download to `target` unless it is there. OSError if every mirror fails; says why, one after the other."""
    target.parent.mkdir(parents=True, exist_ok=True)
    with target.with_name(f"{target.name}.lock").open("w") as lock:
        is_locked(lock, wait=True)
        try:
            with target.open("rb") as file:
                known.read(file)  # another process was first
        except (FileNotFoundError, ValueError):
            write_atomically(target, _from_any(urls, known))


def _from_any(urls: Sequence[str], known: Known) -> bytes:
    reasons: dict[str, str] = {}
    for wait in (0.0, *WAITS):
        time.sleep(wait)
        for url in urls:
            try:
                return _fetch(url, known)
            except (OSError, http.client.HTTPException, ValueError) as error:
                reasons[url] = str(error).strip("<>") or type(error).__name__
    raise OSError("; ".join(f"{url}: {reason}" for url, reason in reasons.items()))


def _fetch(url: str, known: Known) -> bytes:
    with urllib.request.build_opener(_OnlyHttps).open(url, timeout=TIMEOUT) as response:
        print(f"downloading {url} ({known.size / 1e6:.1f} MB)", file=sys.stderr, flush=True)
        return known.read(response)


class _OnlyHttps(urllib.request.BaseHandler):
    """Asked before any other, also about where a redirect leads."""

    def default_open(self, request: urllib.request.Request) -> None:
        if request.type != "https":
            raise ValueError(f"only https is accepted, not {request.full_url}")
