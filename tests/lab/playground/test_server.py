"""Who is refused, on a real socket: and that the server goes on."""

import contextlib
import http.client
import json
import socket
import subprocess
import threading
import time

import pytest

from gesmr.lab.playground import Playground, server
from gesmr.lab.playground.simulation import run_json
from helpers.command_line import gesmr
from helpers.processes import heeding

GOOD = {"method": "GESMR", "function": "sphere", "children": 8, "groups": 2, "generations": 3}


@pytest.fixture(scope="module")
def playground():
    with Playground() as playground:
        threading.Thread(target=playground.serve_forever, daemon=True).start()
        yield playground
        playground.shutdown()


@pytest.fixture
def ask(playground):
    """Status and content of a request. After all of them a good one must still be answered."""

    def ask(path="run", body=GOOD, *, method="POST", token=None, headers=None):
        token = playground.token if token is None else token
        connection = http.client.HTTPConnection("127.0.0.1", playground.port, timeout=60)
        sent = body if isinstance(body, bytes) else json.dumps(body).encode()
        try:
            connection.request(method, f"/{token}/{path}", sent, {"Content-Type": "application/json"} | (headers or {}))
            answer = connection.getresponse()
            return answer.status, answer.read(), answer.headers
        finally:
            connection.close()

    yield ask
    status, body, _ = ask()
    assert status == 200
    assert json.loads(body)["shape"] == [4, 9, 2]


def test_the_page_comes_with_a_policy(ask):
    status, body, headers = ask("", b"", method="GET")
    assert status == 200
    assert b"GESMR" in body
    assert headers["Content-Security-Policy"].startswith("default-src 'none'; script-src 'sha256-")
    assert "connect-src 'self'" in headers["Content-Security-Policy"]
    assert headers["Referrer-Policy"] == "no-referrer"
    assert headers["Cache-Control"] == "no-store"


@pytest.mark.parametrize("token", ["", "x", "x" * 32, "%00", "../.."])
@pytest.mark.parametrize("method", ["GET", "POST"])
def test_without_the_token_nothing_is_answered(ask, token, method):
    assert ask("", method=method, token=token)[0] == 403


@pytest.mark.parametrize("host", ["evil.example", "evil.example:{port}", "127.0.0.1", "127.0.0.1:1", ""])
def test_a_foreign_host_is_refused(ask, playground, host):
    status, body, _ = ask(headers={"Host": host.format(port=playground.port)})
    assert status == 403
    assert "this machine" in json.loads(body)["error"]


@pytest.mark.parametrize("origin", ["http://evil.example", "null", "https://127.0.0.1:{port}", "http://127.0.0.1"])
def test_a_foreign_origin_is_refused(ask, playground, origin):
    assert ask(headers={"Origin": origin.format(port=playground.port)})[0] == 403


def test_our_own_names_and_origin_are_accepted(ask, playground):
    for name in ("127.0.0.1", "localhost"):
        here = f"{name}:{playground.port}"
        assert ask(headers={"Host": here, "Origin": f"http://{here}"})[0] == 200


@pytest.mark.parametrize(
    ("request_", "status", "message"),
    [
        ({"body": b"{"}, 400, "must be JSON"),
        ({"body": b"\xff\xfe"}, 400, "must be JSON"),
        ({"body": b"[" * 15_000}, 400, "must be JSON"),
        ({"body": b"[]"}, 400, "must be a JSON object"),
        ({"body": b'{"std": NaN}'}, 400, "std must be a number from 0.01 to 100, got nan"),
        ({"body": GOOD | {"dim": 1000}}, 400, "dim must be an integer from 2 to 100, got 1000"),
        ({"path": "landscape", "body": {"zoom": 2}}, 400, "zoom must be one of 1, 4, 16, got 2"),
        ({"path": "export", "body": {}}, 400, "an export must have runs, place, frame and theme"),
        ({"body": b" " * (server.LONGEST_BODY + 1)}, 413, "at most 16384 bytes"),
        ({"body": b" " * 2_000_000}, 413, "at most 16384 bytes"),
        ({"headers": {"Content-Length": "-1"}}, 400, "Content-Length"),
        ({"headers": {"Content-Length": "5, 5"}}, 400, "Content-Length"),
        ({"headers": {"Content-Length": "9" * 5000}}, 413, "at most 16384 bytes"),
        ({"headers": {"Content-Type": "text/plain"}}, 415, "application/json"),
        ({"headers": {"Transfer-Encoding": "chunked"}}, 411, "Content-Length"),
        ({"path": "../run"}, 404, "nothing here"),
        ({"path": "run", "method": "GET"}, 404, "nothing here"),
        ({"path": "etc/passwd", "method": "GET"}, 404, "nothing here"),
        ({"method": "PUT"}, 405, "method not allowed"),
        ({"method": "OPTIONS"}, 405, "method not allowed"),
        ({"headers": {"X-Long": "x" * 70_000}}, 431, ""),
        ({"headers": {f"X-{i}": "x" for i in range(150)}}, 431, ""),
        ({"path": "x" * 70_000}, 414, ""),
    ],
)
def test_what_is_malformed_gets_a_reason(ask, request_, status, message):
    found, body, headers = ask(**request_)
    assert found == status
    assert headers["Content-Type"] == "application/json"
    assert message in json.loads(body)["error"]
    assert b"Traceback" not in body


@pytest.mark.parametrize(
    ("sent", "status"),
    [
        (b"\x00\x01\x02\r\n\r\n", b"HTTP/1.0 400 Bad Request"),
        (b"GET\r\n\r\n", b"HTTP/1.0 400 Bad Request"),
        (b"GET /\r\n\r\n", b"HTTP/1.0 403 Forbidden"),
        (b"GET / HTTP/1.1\r\nHost\r\n\r\n", b"HTTP/1.0 400 Bad Request"),
        (b"GET / HTTP/9.9\r\n\r\n", b"HTTP/1.0 505 HTTP Version Not Supported"),
        (b"", b""),
        (b"POST ", b"HTTP/1.0 400 Bad Request"),
    ],
)
def test_what_is_not_http_is_survived(ask, playground, sent, status):
    with socket.create_connection(("127.0.0.1", playground.port), timeout=10) as connection:
        connection.sendall(sent)
        connection.shutdown(socket.SHUT_WR)
        answer = connection.recv(65536)
    assert answer.split(b"\r\n")[0] == status


@pytest.mark.parametrize(("start", "status"), [("X: ", 411), ("Content-Length: 9999\r\n\r\n", 400)])
def test_whoever_dawdles_is_cut_off(ask, playground, monkeypatch, start, status):
    """Even if a byte comes every now and then."""
    monkeypatch.setattr(server, "_SECONDS", 1)
    head = f"POST /{playground.token}/run HTTP/1.1\r\nHost: 127.0.0.1:{playground.port}\r\n"
    with socket.create_connection(("127.0.0.1", playground.port), timeout=0.2) as connection:
        connection.sendall(f"{head}Content-Type: application/json\r\n{start}".encode())
        for _ in range(50):
            connection.sendall(b" ")
            with contextlib.suppress(TimeoutError):
                assert connection.recv(65536).startswith(f"HTTP/1.0 {status} ".encode())
                break
        else:
            pytest.fail("this connection may go on for ever")


def test_nothing_is_computed_for_who_has_hung_up(ask, playground):
    ask()
    computed = run_json.cache_info().misses
    with playground.computing:
        body = json.dumps(GOOD | {"seed": 77}).encode()
        head = f"POST /{playground.token}/run HTTP/1.1\r\nHost: 127.0.0.1:{playground.port}\r\n"
        with socket.create_connection(("127.0.0.1", playground.port), timeout=10) as connection:
            connection.sendall(f"{head}Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n".encode())
            connection.sendall(body)
            time.sleep(0.5)
    time.sleep(0.5)
    ask()
    assert run_json.cache_info().misses == computed


def test_more_connections_than_there_is_room_for_are_closed(ask, playground):
    held = [socket.create_connection(("127.0.0.1", playground.port), timeout=10) for _ in range(server._CONNECTIONS)]
    try:
        with socket.create_connection(("127.0.0.1", playground.port), timeout=10) as late:
            assert late.recv(1) == b""
    finally:
        for connection in held:
            connection.close()
    time.sleep(0.3)


@pytest.mark.parametrize("computing", [False, True])
def test_the_command_prints_its_address_and_ends_with_ctrl_c(computing):
    command = heeding("-m", "gesmr", "playground", "--no-browser")
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        address = process.stdout.readline().split()[-1]
        assert process.stdout.readline() == "Press Ctrl-C to stop it.\n"
        port, token = address.removeprefix("http://127.0.0.1:").strip("/").split("/")
        assert len(token) >= 32
        connection = http.client.HTTPConnection("127.0.0.1", int(port), timeout=30)
        connection.request("GET", f"/{token}/")
        with connection.getresponse() as answer:
            assert answer.status == 200
        if computing:
            connection.request("POST", f"/{token}/run", b"{}", {"Content-Type": "application/json"})
            time.sleep(0.5)  # much less than it is compiled in
        process.send_signal(2)
        out, err = process.communicate(timeout=30)
        connection.close()
    assert (process.returncode, out.strip(), err) == (0, "Stopped.", "")


def test_a_port_that_is_taken_is_named(playground):
    code, _, err = gesmr("playground", "--no-browser", "--port", playground.port)
    assert code == 2
    assert f"--port {playground.port} cannot be used" in err


def test_every_playground_has_a_token_of_its_own(playground):
    with Playground() as other:
        assert other.token != playground.token
        assert other.server_address[0] == "127.0.0.1"
