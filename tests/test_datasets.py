"""MNIST and Fashion-MNIST: found, checked, downloaded from a server that misbehaves, and what is said if they are not.

The server is a real one on this machine; the files are the sample in tests/data.
"""

import gzip
import http.server
import subprocess
import sys
import threading
import time
from pathlib import Path

import numpy as np
import pytest

from gesmr.problems import _download, datasets
from gesmr.problems.datasets import DatasetError
from samples import SAMPLE, sample, sample_source, whole_sets  # noqa: F401 - a fixture

LABELS = "t10k-labels-idx1-ubyte.gz"
IMAGES = "t10k-images-idx3-ubyte.gz"


class Server(http.server.ThreadingHTTPServer):
    """Serves the sample. It ends the next `times` answers after `cut` bytes; `wrong` is sent in place of any file."""

    def __init__(self):
        super().__init__(("127.0.0.1", 0), Handler)
        self.cut, self.times, self.wrong, self.ranges, self.delay = None, 0, None, True, 0.0
        self.asked = []
        self.lock = threading.Lock()

    @property
    def url(self):
        return f"http://127.0.0.1:{self.server_address[1]}/"


class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        server = self.server
        with server.lock:
            server.asked.append((self.path, self.headers.get("Range")))
            cut = server.times > 0
            server.times -= cut
        time.sleep(server.delay)
        file = SAMPLE / self.path.lstrip("/")
        if not file.is_file():
            return self.send_error(404)
        data, start = server.wrong or file.read_bytes(), 0
        if (wanted := self.headers.get("Range")) and server.ranges:
            start = int(wanted.removeprefix("bytes=").removesuffix("-"))
            if start >= len(data):
                return self.send_error(416)
        self.send_response(206 if start else 200)
        self.send_header("Content-Length", str(len(data) - start))
        self.end_headers()
        self.wfile.write(data[start:][: server.cut] if cut else data[start:])

    def log_message(self, *_):
        pass


@pytest.fixture
def server(monkeypatch, tmp_path):
    """A mirror of the sample, an empty cache, and no patience."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.delenv("GESMR_DATA", raising=False)
    monkeypatch.setattr(_download, "WAITS", (0.01, 0.01))
    with Server() as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        source = sample_source("mnist")
        monkeypatch.setitem(datasets.SOURCES, "mnist", replace_mirrors(source, f"{server.url}mnist/"))
        yield server
        server.shutdown()
        thread.join()


def replace_mirrors(source, *mirrors):
    return datasets.Source(source.name, mirrors, source.files)


def cached(name):
    return datasets.cache_directory() / "mnist" / name


def files_in_cache():
    return sorted(path.name for path in cached(IMAGES).parent.iterdir() if path.suffix != ".lock")


# The sets


def test_the_whole_sets_and_their_samples():
    whole_sets()
    for name, source in datasets.SOURCES.items():
        for part, size in (("train", 60_000), ("test", 10_000)):
            data = datasets.load(name, part)
            assert data.images.shape == (size, 28, 28)
            assert data.images.dtype == data.labels.dtype == np.uint8
            assert set(np.unique(data.labels)) == set(range(10))
            for file, whole in zip(source.files[part], data, strict=True):
                few = datasets.parse_idx(gzip.decompress((SAMPLE / name / file.name).read_bytes()))
                np.testing.assert_array_equal(few, whole[: len(few)])


def test_the_digests():
    """Their first digits, noted down independently."""
    first = [file.sha256[:16] for source in datasets.SOURCES.values() for part in datasets.PARTS
             for file in source.files[part]]  # fmt: skip
    assert first == [
        "ba891046e6505d7a", "65a50cbbf4e906d7", "0fa7898d509279e4", "ff7bcfd416de3373",
        "c59f468a2f672dc8", "bad3541b69d91243", "5b4141f0afbad91e", "0402a96d92fd2663",
    ]  # fmt: skip
    assert {len(file.sha256) for s in datasets.SOURCES.values() for files in s.files.values() for file in files} == {64}


def test_the_sample_is_small():
    assert sum(path.stat().st_size for name in datasets.SOURCES for path in (SAMPLE / name).iterdir()) <= 300_000


def test_unknown_sets_and_parts():
    with pytest.raises(ValueError, match="name must be one of 'mnist', 'fashion-mnist', got 'cifar'"):
        datasets.load("cifar")
    with pytest.raises(ValueError, match="part must be one of 'train', 'test', got 'valid'"):
        datasets.load("mnist", "valid")


# Files that are there


def place(directory, name, data):
    path = directory / "mnist" / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)
    return path


def test_files_may_be_decompressed(sample, monkeypatch, tmp_path):  # noqa: F811
    whole = datasets.load("mnist", "test")
    for name in (IMAGES, LABELS):
        place(tmp_path, name.removesuffix(".gz"), gzip.decompress((SAMPLE / "mnist" / name).read_bytes()))
    monkeypatch.setenv("GESMR_DATA", str(tmp_path))
    np.testing.assert_array_equal(datasets.load("mnist", "test").images, whole.images)


@pytest.mark.parametrize(
    ("damage", "says"),
    [
        (lambda data: data[:-50], "it cannot be decompressed"),
        (lambda data: gzip.compress(gzip.decompress(data)[:-1]), "its content has SHA-256 "),
        (lambda data: b"<html>not found</html>", "its content has SHA-256 "),
    ],
)
def test_a_damaged_file_is_named(sample, monkeypatch, tmp_path, damage, says):  # noqa: F811
    path = place(tmp_path, IMAGES, damage((SAMPLE / "mnist" / IMAGES).read_bytes()))
    monkeypatch.setenv("GESMR_DATA", str(tmp_path))
    with pytest.raises(DatasetError, match=f"{path} is damaged or not mnist's: {says}"):
        datasets.load("mnist", "test")


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (b"", "it is not an IDX file"),
        (b"\0\0\x0d\x01\0\0\0\0", "it is not an IDX file"),
        (b"\0\0\x08\x03\0\0", "it is truncated"),
        (b"\0\0\x08\x01\0\0\0\x05abc", "it is truncated: it holds 11 bytes where its header says 13"),
        (b"\0\0\x08\x01\0\0\0\x02abc", "it is too long: it holds 11 bytes where its header says 10"),
    ],
)
def test_what_is_no_idx_file(content, says):
    with pytest.raises(DatasetError, match=says):
        datasets.parse_idx(content)


# Downloads


def test_a_download_is_kept(server, capsys):
    data = datasets.load("mnist", "test")
    assert data.images.shape == (200, 28, 28)
    assert len(server.asked) == 2
    assert f"downloading {server.url}mnist/{IMAGES} (0.0 MB)" in capsys.readouterr().err
    datasets.load("mnist", "test")
    assert len(server.asked) == 2
    assert files_in_cache() == [IMAGES, LABELS]


def test_a_broken_connection_is_continued(server):
    server.cut, server.times = 10_000, 2
    datasets.load("mnist", "test")
    assert [wanted for path, wanted in server.asked if path.endswith(IMAGES)] == [None, "bytes=10000-", "bytes=20000-"]


def test_what_another_process_left_is_continued(server):
    whole = (SAMPLE / "mnist" / IMAGES).read_bytes()
    cached(IMAGES).parent.mkdir(parents=True)
    cached(f"{IMAGES}.partial").write_bytes(whole[:5000])
    cached(f"{LABELS}.partial").write_bytes((SAMPLE / "mnist" / LABELS).read_bytes())  # all of it: the server says 416
    assert len(datasets.load("mnist", "test").images) == 200
    assert [wanted for _, wanted in server.asked] == [
        "bytes=5000-",
        f"bytes={(SAMPLE / 'mnist' / LABELS).stat().st_size}-",
    ]
    assert files_in_cache() == [IMAGES, LABELS]


def test_a_server_without_ranges_starts_again(server):
    server.ranges, server.cut, server.times = False, 10_000, 1
    assert len(datasets.load("mnist", "test").images) == 200


def test_a_partial_file_of_something_else_is_thrown_away(server):
    cached(IMAGES).parent.mkdir(parents=True)
    cached(f"{IMAGES}.partial").write_bytes(b"x" * 100)
    assert len(datasets.load("mnist", "test").images) == 200


def test_a_damaged_file_in_the_cache_is_replaced(server):
    cached(IMAGES).parent.mkdir(parents=True)
    cached(IMAGES).write_bytes(b"damaged")
    assert len(datasets.load("mnist", "test").images) == 200


def test_wrong_content_is_never_used(server):
    server.wrong = gzip.compress(b"something else")
    with pytest.raises(DatasetError, match="its content has SHA-256"):
        datasets.load("mnist", "test")
    assert files_in_cache() == []


def test_the_next_mirror_is_tried(server, monkeypatch):
    source = replace_mirrors(datasets.SOURCES["mnist"], f"{server.url}nothing/", f"{server.url}mnist/")
    monkeypatch.setitem(datasets.SOURCES, "mnist", source)
    assert len(datasets.load("mnist", "test").images) == 200


def test_what_to_do_without_a_connection(server, monkeypatch):
    monkeypatch.setitem(datasets.SOURCES, "mnist", replace_mirrors(sample_source("mnist"), "http://127.0.0.1:9/"))
    with pytest.raises(DatasetError) as error:
        datasets.load("mnist")
    message = str(error.value)
    assert message.startswith("mnist is not on this machine and cannot be downloaded (http://127.0.0.1:9/train-images")
    assert "Connection refused" in message
    for name in ("train-images-idx3-ubyte.gz", "train-labels-idx1-ubyte.gz", IMAGES, LABELS):
        assert name in message
    assert f"into {datasets.cache_directory() / 'mnist'}, or into a folder mnist of the directory" in message


def test_a_cache_that_cannot_be_written(server, monkeypatch, tmp_path):
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    with pytest.raises(DatasetError, match="mnist is not on this machine and cannot be downloaded"):
        datasets.load("mnist", "test")


DOWNLOAD = """
import sys
sys.path.insert(0, {tests!r})
from pathlib import Path
from gesmr.problems._download import download
print(len(download([{url!r}], Path({target!r}), lambda path: path.read_bytes())))
"""


def test_two_processes_download_once(server, tmp_path):
    size = (SAMPLE / "mnist" / IMAGES).stat().st_size
    code = DOWNLOAD.format(
        tests=str(Path(__file__).parent), url=f"{server.url}mnist/{IMAGES}", target=str(tmp_path / "both" / IMAGES)
    )
    server.delay = 1.0  # so that both want it at the same time
    command = [sys.executable, "-c", code]
    processes = [subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) for _ in range(2)]
    said = [process.communicate(timeout=120)[0].strip() for process in processes]
    assert said == [str(size)] * 2
    assert len(server.asked) == 1
