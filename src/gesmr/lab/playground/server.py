"""A server for one person on this machine: no token, a foreign Host or a foreign Origin, no answer."""

import contextlib
import hmac
import json
import os
import secrets
import select
import socket
import sys
import threading
from collections.abc import Iterator
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from . import page
from .settings import Place, Setting, read
from .simulation import landscape_json, run_json

ADDRESS = "127.0.0.1"
LONGEST_BODY = 16 * 1024
_SECONDS = 20  # in which a request must have come
_CONNECTIONS = 32  # at a time
_HEADERS = {
    "Cache-Control": "no-store",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
}


class Playground(ThreadingHTTPServer):
    """Serves the page at `url`, which holds the token that every request must have."""

    daemon_threads = True
    request_queue_size = 16

    def __init__(self, port: int = 0):
        self.token = secrets.token_urlsafe(24)
        self.computing = threading.Lock()  # one computation at a time has all cores
        self._free = threading.BoundedSemaphore(_CONNECTIONS)
        super().__init__((ADDRESS, port), _Handler)

    @property
    def port(self) -> int:
        return self.server_address[1]

    @property
    def url(self) -> str:
        return f"http://{ADDRESS}:{self.port}/{self.token}/"

    @property
    def hosts(self) -> tuple[str, ...]:
        """By which names a browser on this machine may know us."""
        return f"{ADDRESS}:{self.port}", f"localhost:{self.port}"

    def abandon(self) -> None:
        """End the process at once if it is computing: Python cannot end in order while another thread is inside XLA."""
        if not self.computing.acquire(blocking=False):
            sys.stdout.flush()
            os._exit(0)

    def process_request(self, request: Any, client_address: Any) -> None:
        if self._free.acquire(blocking=False):
            super().process_request(request, client_address)
        else:
            self.shutdown_request(request)

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        try:
            super().process_request_thread(request, client_address)
        finally:
            self._free.release()

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A connection that broke is nobody's concern; anything else is told in a line."""
        error = sys.exception()
        if not isinstance(error, ConnectionError | TimeoutError):
            print(f"playground: a request failed: {type(error).__name__}: {error}", file=sys.stderr)


class _Refused(Exception):
    def __init__(self, status: HTTPStatus, message: str):
        super().__init__(message)
        self.status = status


class _Handler(BaseHTTPRequestHandler):
    server: Playground  # pyright: ignore[reportIncompatibleVariableOverride]
    timeout = 30  # seconds for an answer to be taken
    server_version, sys_version = "gesmr", ""
    default_request_version = "HTTP/1.0"  # whatever is sent, the answer has a status

    def setup(self) -> None:
        super().setup()
        self._late = threading.Timer(_SECONDS, self._stop_reading)
        self._late.daemon = True
        self._late.start()

    def finish(self) -> None:
        self._late.cancel()
        super().finish()

    def _stop_reading(self) -> None:
        """What has not come by now reads as if it ended here, however busily it still comes."""
        with contextlib.suppress(OSError):
            self.connection.shutdown(socket.SHUT_RD)

    def do_GET(self) -> None:
        self._answered(self._get)

    def do_POST(self) -> None:
        self._answered(self._post)

    def _answered(self, answer: Any) -> None:
        try:
            kind, body, policy = answer(self._path())
        except _Refused as refused:
            self._refuse(refused.status, str(refused))
        except (ConnectionError, TimeoutError):
            raise
        except Exception as error:
            print(f"playground: a computation failed: {type(error).__name__}: {error}", file=sys.stderr)
            self._refuse(HTTPStatus.INTERNAL_SERVER_ERROR, "this could not be computed; the terminal says why")
        else:
            self._send(HTTPStatus.OK, kind, body, policy)

    def _path(self) -> str:
        """What is asked for, if whoever asks may."""
        if self.headers.defects:
            raise _Refused(HTTPStatus.BAD_REQUEST, "headers must be lines of a name, a colon and a value")
        if self.headers.get_all("Host") not in [[host] for host in self.server.hosts]:
            raise _Refused(HTTPStatus.FORBIDDEN, "requests must be for this machine's own address")
        origins = self.headers.get_all("Origin") or []
        if any(origin not in [f"http://{host}" for host in self.server.hosts] for origin in origins):
            raise _Refused(HTTPStatus.FORBIDDEN, "requests must come from the playground's own page")
        _, _, rest = self.path.partition("/")
        token, slash, path = rest.partition("?")[0].partition("/")
        if not hmac.compare_digest(token.encode(errors="replace"), self.server.token.encode()):
            raise _Refused(HTTPStatus.FORBIDDEN, "the address must be the one the command printed, with its token")
        return slash + path

    def _get(self, path: str) -> tuple[str, bytes, str]:
        if path != "/":
            raise _Refused(HTTPStatus.NOT_FOUND, "there is nothing here")
        body, policy = page.live()
        return "text/html; charset=utf-8", body, policy

    def _post(self, path: str) -> tuple[str, bytes, str]:
        if path not in ("/run", "/landscape", "/export"):
            raise _Refused(HTTPStatus.NOT_FOUND, "there is nothing here")
        try:
            asked = self._body()
            if path == "/export":
                wanted = page.wanted(asked)
                with self._turn():
                    return "text/html; charset=utf-8", page.exported(wanted), "sandbox"
            kind, compute = (Setting, run_json) if path == "/run" else (Place, landscape_json)
            request = read(kind, asked)
        except (TypeError, ValueError) as error:
            raise _Refused(HTTPStatus.BAD_REQUEST, str(error)) from error
        with self._turn():
            return "application/json", compute(request), "sandbox"

    @contextlib.contextmanager
    def _turn(self) -> Iterator[None]:
        """Inside, nobody else computes; it is not entered for someone who has hung up in the meantime."""
        self._late.cancel()
        with self.server.computing:
            if select.select([self.connection], [], [], 0)[0]:
                raise ConnectionAbortedError
            yield

    def _body(self) -> Any:
        """The JSON of a request of bounded size."""
        lengths = self.headers.get_all("Content-Length") or []
        if self.headers.get("Transfer-Encoding") or not lengths:
            raise _Refused(HTTPStatus.LENGTH_REQUIRED, "requests must say their Content-Length")
        if len(lengths) > 1 or not lengths[0].isascii() or not lengths[0].isdigit():
            raise _Refused(HTTPStatus.BAD_REQUEST, "Content-Length must be a whole number")
        if len(lengths[0]) > 9 or int(lengths[0]) > LONGEST_BODY:
            raise _Refused(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, f"requests must have at most {LONGEST_BODY} bytes")
        if self.headers.get_content_type() != "application/json":
            raise _Refused(HTTPStatus.UNSUPPORTED_MEDIA_TYPE, "requests must be application/json")
        text = self.rfile.read(int(lengths[0]))
        if len(text) < int(lengths[0]):
            raise _Refused(HTTPStatus.BAD_REQUEST, "requests must be as long as their Content-Length, and come at once")
        try:
            return json.loads(text)
        except (ValueError, RecursionError) as error:
            raise _Refused(HTTPStatus.BAD_REQUEST, "requests must be JSON") from error

    def send_error(self, code: int, message: str | None = None, explain: str | None = None) -> None:
        """Also of what `http.server` itself refuses, before a method is called."""
        status = HTTPStatus.METHOD_NOT_ALLOWED if code == HTTPStatus.NOT_IMPLEMENTED else HTTPStatus(code)
        self._refuse(status, status.phrase.lower())

    def _refuse(self, status: HTTPStatus, message: str) -> None:
        self.close_connection = True
        self._send(status, "application/json", json.dumps({"error": message}).encode(), "sandbox")
        # What is still on its way is read and dropped: closing with unread bytes would cut off the answer.
        with contextlib.suppress(OSError):
            self.connection.shutdown(socket.SHUT_WR)
            self.connection.settimeout(0.5)
            for _ in range(64):
                if not self.connection.recv(65536):
                    break

    def _send(self, status: HTTPStatus, kind: str, body: bytes, policy: str) -> None:
        self.send_response(status)
        headers = {"Content-Type": kind, "Content-Length": str(len(body)), "Content-Security-Policy": policy}
        for name, value in (headers | _HEADERS).items():
            self.send_header(name, value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def log_message(self, format: str, *args: Any) -> None:
        """Nothing: the address, with its token, does not belong in a terminal's scrollback again and again."""
