"""Ray, if it is there: connecting to a cluster or starting one, quietly, and leaving what was found as it was."""

import importlib
import logging
import os
import socket
import subprocess
import sys
import tempfile
import warnings
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

_SECONDS = 10.0  # for somebody to answer at an address
LOCAL = (None, "ray", "auto")  # a cluster that runs on this machine, or one of our own
_LONGEST = 20  # characters of a directory for temporary files: Ray has sockets there, whose names are limited
_SHARED = ("runtime_env", "namespace")  # options that also make sense for a cluster that is there already
_QUIET = {"log_to_driver": False, "logging_level": logging.ERROR}


def load() -> Any:
    """The module `ray`, imported when it is first needed."""
    try:
        return importlib.import_module("ray")
    except ImportError as error:
        raise ModuleNotFoundError(f"Ray is not installed: pip install 'gesmr[ray]' ({error})") from error


def is_address(text: Any) -> bool:
    """Whether `text` names a cluster: "ray", "auto", "ray://host:10001" or "host:6379"."""
    if not isinstance(text, str):
        return False
    host, colon, port = text.removeprefix("ray://").rpartition(":")
    return text in LOCAL or bool(host and colon and port.isdigit())


@contextmanager
def connected(address: str | None = None, **options: Any) -> Iterator[Any]:
    """The module `ray`, connected within the block to what `is_address`.

    None, "ray" and "auto" join the cluster of this machine (RAY_ADDRESS, or one that `ray start` has started), or start
    one that lives as long as the block. Other addresses are joined. `options` are those of `ray.init`, such as num_cpus
    for a cluster that is started or runtime_env for any. One that is started listens on the loopback interface alone
    and keeps its files in a private directory. If this process is connected already, that connection is used and kept.
    """
    ray = load()
    if ray.is_initialized():
        yield ray
        return
    with ExitStack() as stack:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", FutureWarning)  # about Ray's own settings
            warnings.filterwarnings("ignore", r"os\.fork", RuntimeWarning)  # JAX's: Ray forks only to start programs
            if address not in LOCAL:
                _join(ray, str(address), options)
            elif not _found_here() or not _joined(ray, options):
                inside = f"{stack.enter_context(_directory())}/r"  # Ray lets everybody into the one it is given
                defaults = {"include_dashboard": False, "_temp_dir": inside}
                with _loopback():
                    ray.init(address="local", **{**_QUIET, **defaults, **options})
        stack.callback(ray.shutdown)
        yield ray


@contextmanager
def _loopback() -> Iterator[None]:
    """A cluster started within the block listens at 127.0.0.1 alone.

    That is Ray's way on macOS and Windows, which this switches on; from `_node_ip_address` it takes no loopback.
    """
    constants: Any = importlib.import_module("ray._private.ray_constants")
    usual = getattr(constants, "ENABLE_RAY_CLUSTER", None)
    if usual is None:
        warnings.warn("this version of Ray listens on all interfaces: docs/workers.md", RuntimeWarning, stacklevel=2)
    constants.ENABLE_RAY_CLUSTER = False
    try:
        yield
    finally:
        constants.ENABLE_RAY_CLUSTER = usual


@contextmanager
def _directory() -> Iterator[str]:
    """Where a cluster of our own keeps its files, private. It and they go with the block, or with this process."""
    usual = tempfile.gettempdir()
    path = tempfile.mkdtemp(prefix="gesmr-ray-", dir=usual if len(usual) <= _LONGEST else "/tmp")
    command, nobody = [sys.executable, "-I", "-S", "-c", _SWEEP, path], subprocess.DEVNULL
    sweeper = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=nobody, stderr=nobody, start_new_session=True)
    try:
        yield path
    finally:
        sweeper.communicate()


_SWEEP = """
import glob, os, shutil, signal, sys, time
sys.stdin.read()  # until the other end is closed, by `communicate` or by the end of the process
directory = sys.argv[1]
for place in glob.glob("/proc/[0-9]*"):  # Ray's own, which may take a minute to notice
    try:
        about = open(f"{place}/cmdline").read() + os.readlink(f"{place}/fd/1")  # workers write to its files
        if directory in about and place != f"/proc/{os.getpid()}":
            os.kill(int(place[6:]), signal.SIGKILL)
    except (OSError, ValueError):
        pass
for _ in range(300):
    shutil.rmtree(directory, ignore_errors=True)
    if not os.path.exists(directory):
        break
    time.sleep(0.1)  # somebody is still writing
"""


def _join(ray: Any, address: str, options: dict[str, Any]) -> None:
    host, _, port = address.removeprefix("ray://").rpartition(":")
    try:
        socket.create_connection((host, int(port)), timeout=_SECONDS).close()  # Ray itself would try for minutes
        ray.init(address=address, **{**_QUIET, **options})
    except (OSError, OverflowError, RuntimeError) as error:
        raise ConnectionError(f"no Ray cluster answers at {address!r}: {error}") from error


def _joined(ray: Any, options: dict[str, Any]) -> bool:
    shared = {name: value for name, value in options.items() if name in _SHARED}
    try:
        ray.init(address="auto", **{**_QUIET, **shared})
    except ConnectionError:  # it is there no longer
        return False
    return True


def _found_here() -> bool:
    return "RAY_ADDRESS" in os.environ or Path("/tmp/ray/ray_current_cluster").exists()
