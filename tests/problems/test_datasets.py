"""MNIST and Fashion-MNIST: found, checked, downloaded from a server that misbehaves, and what is said if they are not.

The server is a real one on this machine, with a certificate of its own; the files are the sample in tests/data.
"""

import gzip
import hashlib
import http.server
import ssl
import subprocess
import sys
import threading
import time
import tracemalloc
from contextlib import contextmanager
from dataclasses import replace
from typing import cast

import numpy as np
import pytest

from gesmr.problems import _download, datasets
from gesmr.problems.datasets import DatasetError
from helpers.samples import SAMPLE, sample_source, whole_sets

LABELS = "t10k-labels-idx1-ubyte.gz"
IMAGES = "t10k-images-idx3-ubyte.gz"


class Server(http.server.ThreadingHTTPServer):
    """Serves the sample. It ends the next `times` answers after `cut` bytes; `wrong` is sent in place of any file, over
    and over if it is `endless`, and `elsewhere` is where it says that everything has moved to.
    """

    def __init__(self, certificate=None):
        super().__init__(("127.0.0.1", 0), Handler)
        self.cut: int | None = None
        self.wrong: bytes | None = None
        self.elsewhere: str | None = None
        self.times, self.endless, self.delay = 0, False, 0.0
        self.asked, self.sent = [], 0
        self.lock = threading.Lock()
        if certificate:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(certificate)
            self.socket = context.wrap_socket(self.socket, server_side=True, do_handshake_on_connect=False)
        self.url = f"http{'s' if certificate else ''}://127.0.0.1:{self.server_address[1]}/"

    def handle_error(self, request, client_address):
        """Who does not like what they get, or from whom, ends the connection."""


class Handler(http.server.BaseHTTPRequestHandler):
    @property
    def ours(self) -> Server:
        return cast(Server, self.server)

    def do_GET(self):
        server = self.ours
        with server.lock:
            server.asked.append(self.path)
            cut = server.times > 0
            server.times -= cut
        time.sleep(server.delay)
        if server.elsewhere:
            self.send_response(302)
            self.send_header("Location", f"{server.elsewhere}{self.path.lstrip('/')}")
            return self.end_headers()
        file = SAMPLE / self.path.lstrip("/")
        if not file.is_file():
            return self.send_error(404)
        data = server.wrong or file.read_bytes()
        self.send_response(200)
        if not server.endless:
            self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.send(data[: server.cut] if cut else data)
        while server.endless and server.sent < ENDLESS:
            self.send(data)

    def send(self, data):
        self.wfile.write(data)
        self.ours.sent += len(data)

    def log_message(self, format, *args):
        pass


ENDLESS = 100_000_000  # bytes, in which the tests end


@contextmanager
def running(server):
    with server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield server
        server.shutdown()
        thread.join()


@pytest.fixture(scope="module")
def certificate(tmp_path_factory):
    """A key and its certificate for this machine, in one file."""
    path = tmp_path_factory.mktemp("certificate") / "both.pem"
    request = "openssl req -x509 -newkey rsa:2048 -nodes -subj /CN=gesmr -addext subjectAltName=IP:127.0.0.1"
    subprocess.run([*request.split(), "-keyout", path, "-out", f"{path}.public"], check=True, capture_output=True)
    with path.open("a") as both:
        both.write(path.with_name("both.pem.public").read_text())
    return path


@pytest.fixture
def server(monkeypatch, tmp_path, certificate):
    """A mirror of the sample that is trusted, an empty cache, and no patience."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setenv("SSL_CERT_FILE", str(certificate))
    monkeypatch.delenv("GESMR_DATA", raising=False)
    monkeypatch.setattr(_download, "WAITS", (0.01, 0.01))
    with running(Server(certificate)) as server:
        use_mirrors(monkeypatch, f"{server.url}mnist/")
        yield server


def use_mirrors(monkeypatch, *mirrors):
    monkeypatch.setitem(datasets.SOURCES, "mnist", replace(sample_source("mnist"), mirrors=mirrors))


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


FILES = [file for source in datasets.SOURCES.values() for part in datasets.PARTS for file in source.files[part]]


def test_the_digests():
    """Their first digits, noted down independently."""
    assert [file.content.sha256[:16] for file in FILES] == [
        "ba891046e6505d7a", "65a50cbbf4e906d7", "0fa7898d509279e4", "ff7bcfd416de3373",
        "c59f468a2f672dc8", "bad3541b69d91243", "5b4141f0afbad91e", "0402a96d92fd2663",
    ]  # fmt: skip
    assert [file.packed.sha256[:16] for file in FILES] == [
        "440fcabf73cc546f", "3552534a0a558bbe", "8d422c7b0a1c1c79", "f7ae60f92e00ec6d",
        "3aede38d61863908", "a04f17134ac03560", "346e55b948d973a9", "67da17c76eaffca5",
    ]  # fmt: skip
    assert {len(known.sha256) for file in FILES for known in (file.packed, file.content)} == {64}


def test_mirrors_are_asked_over_https():
    assert {mirror.partition("://")[0] for source in datasets.SOURCES.values() for mirror in source.mirrors} == {
        "https"
    }
    assert all(mirror.endswith("/") for source in datasets.SOURCES.values() for mirror in source.mirrors)


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


def test_files_may_be_decompressed(sample, monkeypatch, tmp_path):
    whole = datasets.load("mnist", "test")
    for name in (IMAGES, LABELS):
        place(tmp_path, name.removesuffix(".gz"), gzip.decompress((SAMPLE / "mnist" / name).read_bytes()))
    monkeypatch.setenv("GESMR_DATA", str(tmp_path))
    np.testing.assert_array_equal(datasets.load("mnist", "test").images, whole.images)


@pytest.mark.parametrize(
    ("damage", "says"),
    [
        (lambda data: data[:-50], "it cannot be decompressed"),
        (lambda data: gzip.compress(gzip.decompress(data)[:-1]), "its content has 156,815 bytes and SHA-256 "),
        (lambda data: gzip.compress(b"x" + gzip.decompress(data)), "its content has more than 156,816 bytes"),
        (lambda data: b"<html>not found</html>", "its content has 22 bytes and SHA-256 "),
    ],
)
def test_a_damaged_file_is_named(sample, monkeypatch, tmp_path, damage, says):
    path = place(tmp_path, IMAGES, damage((SAMPLE / "mnist" / IMAGES).read_bytes()))
    monkeypatch.setenv("GESMR_DATA", str(tmp_path))
    with pytest.raises(DatasetError, match=f"{path} is damaged or not mnist's: {says}"):
        datasets.load("mnist", "test")


def test_a_file_may_be_compressed_otherwise(sample, monkeypatch, tmp_path):
    whole = datasets.load("mnist", "test")
    for name in (IMAGES, LABELS):
        place(tmp_path, name, gzip.compress(gzip.decompress((SAMPLE / "mnist" / name).read_bytes()), 1))
    monkeypatch.setenv("GESMR_DATA", str(tmp_path))
    np.testing.assert_array_equal(datasets.load("mnist", "test").images, whole.images)


def test_no_more_is_decompressed_than_there_should_be(sample, monkeypatch, tmp_path):
    place(tmp_path, IMAGES, gzip.compress(bytes(50_000_000)))
    monkeypatch.setenv("GESMR_DATA", str(tmp_path))
    tracemalloc.start()
    with pytest.raises(DatasetError, match="its content has more than 156,816 bytes"):
        datasets.load("mnist", "test")
    most = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert most < 5_000_000


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


def test_a_broken_connection_is_tried_again(server):
    server.cut, server.times = 10_000, 2
    assert len(datasets.load("mnist", "test").images) == 200
    assert server.asked == [f"/mnist/{IMAGES}"] * 3 + [f"/mnist/{LABELS}"]


def test_a_damaged_file_in_the_cache_is_replaced(server):
    cached(IMAGES).parent.mkdir(parents=True)
    cached(IMAGES).write_bytes(b"damaged")
    assert len(datasets.load("mnist", "test").images) == 200


def redated(data):
    """The same content in another file: gzip's header has a date."""
    return data[:4] + b"\1\2\3\4" + data[8:]


@pytest.mark.parametrize("damage", [lambda data: gzip.compress(b"something else"), redated])
def test_another_file_is_refused_before_it_is_decompressed(server, damage):
    server.wrong = damage((SAMPLE / "mnist" / IMAGES).read_bytes())
    found = hashlib.sha256(server.wrong).hexdigest()[:16]
    with pytest.raises(DatasetError, match=f"{IMAGES}: it has {len(server.wrong):,} bytes and SHA-256 {found}…, not "):
        datasets.load("mnist", "test")
    assert files_in_cache() == []


def test_a_download_ends_where_the_file_should(server):
    server.wrong, server.endless = bytes(1_000_000), True
    size = (SAMPLE / "mnist" / IMAGES).stat().st_size
    with pytest.raises(DatasetError, match=f"{IMAGES}: it has more than {size:,} bytes"):
        datasets.load("mnist", "test")
    assert len(server.asked) == 3
    assert server.sent < ENDLESS // 2  # what the network had room for, three times
    assert files_in_cache() == []


def test_http_is_refused(server, monkeypatch):
    with running(Server()) as plain:
        use_mirrors(monkeypatch, f"{plain.url}mnist/")
        with pytest.raises(DatasetError, match=f"only https is accepted, not {plain.url}mnist/{IMAGES}"):
            datasets.load("mnist", "test")
    assert plain.asked == []


def test_http_is_refused_where_a_redirect_leads(server):
    with running(Server()) as plain:
        server.elsewhere = plain.url
        with pytest.raises(DatasetError, match=f"only https is accepted, not {plain.url}mnist/{IMAGES}"):
            datasets.load("mnist", "test")
    assert plain.asked == []
    assert len(server.asked) == 3


def test_redirects_to_https_are_followed(server, certificate):
    with running(Server(certificate)) as other:
        server.elsewhere = other.url
        assert len(datasets.load("mnist", "test").images) == 200
    assert other.asked == [f"/mnist/{IMAGES}", f"/mnist/{LABELS}"]


def test_a_server_that_nobody_vouches_for_is_refused(server, monkeypatch):
    monkeypatch.delenv("SSL_CERT_FILE")
    with pytest.raises(DatasetError, match="CERTIFICATE_VERIFY_FAILED"):
        datasets.load("mnist", "test")
    assert server.asked == []


def test_the_next_mirror_is_tried(server, monkeypatch):
    use_mirrors(monkeypatch, f"{server.url}nothing/", f"{server.url}mnist/")
    assert len(datasets.load("mnist", "test").images) == 200


def test_what_to_do_without_a_connection(server, monkeypatch):
    use_mirrors(monkeypatch, "https://127.0.0.1:9/")
    with pytest.raises(DatasetError) as error:
        datasets.load("mnist")
    message = str(error.value)
    assert message.startswith("mnist is not on this machine and cannot be downloaded (https://127.0.0.1:9/train-images")
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
from pathlib import Path
from gesmr.problems._download import Known, download
download([{url!r}], Path({target!r}), {known!r})
"""


def test_two_processes_download_once(server, tmp_path):
    file, target = datasets.SOURCES["mnist"].files["test"][0], tmp_path / "both" / IMAGES
    code = DOWNLOAD.format(url=f"{server.url}mnist/{IMAGES}", target=str(target), known=file.packed)
    server.delay = 1.0  # so that both want it at the same time
    processes = [subprocess.Popen([sys.executable, "-c", code]) for _ in range(2)]
    assert [process.wait(timeout=120) for process in processes] == [0, 0]
    assert target.read_bytes() == (SAMPLE / "mnist" / IMAGES).read_bytes()
    assert len(server.asked) == 1
