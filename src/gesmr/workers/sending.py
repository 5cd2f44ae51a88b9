"""What goes to workers and comes back: the objective, once; exceptions, with where they arose."""

import importlib
import os
import pickle
import sys
import traceback
from typing import Any

import jax

_SETTINGS = ("jax_enable_x64", "jax_default_matmul_precision")  # a function must give what it would give here


class WorkerError(RuntimeError):
    """Workers cannot be started, cannot get the objective, or die of a candidate."""


def pack(call: Any, pickler: Any = None) -> bytes:
    """An objective, with what its values depend on, or TypeError that says which part cannot be sent."""
    if pickler is None:
        try:
            pickler = importlib.import_module("cloudpickle")
        except ImportError:  # then functions must be importable by their names
            pickler = pickle
    try:
        inside = pickler.dumps(call)
    except Exception as error:
        what, why = _culprit(call, pickler, error)
        help = "" if pickler is not pickle else _NAMED if "fun" in what else _INSTALL
        raise TypeError(f"{what} cannot be sent to workers: {described(why)}{help}") from error
    settings = {name: getattr(jax.config, name) for name in _SETTINGS}
    return pickle.dumps((settings, [os.path.abspath(place) for place in sys.path], inside))


_NOTE = "In a worker:\n"
_INSTALL = "; pip install cloudpickle sends more"
_NAMED = "; define it at the top of a module (no lambda, no function in a function), or pip install cloudpickle"


def unpack(packed: bytes) -> Any:
    settings, places, inside = pickle.loads(packed)
    for name, value in settings.items():
        jax.config.update(name, value)
    sys.path += [place for place in places if place not in sys.path and os.path.exists(place)]
    return pickle.loads(inside)


def _culprit(call: Any, pickler: Any, error: Exception) -> tuple[str, Exception]:
    parts = {"fun": call.fun, **{f"args[{i}]": arg for i, arg in enumerate(call.args)}, "x0's structure": call.layout}
    for name, part in parts.items():
        try:
            pickler.dumps(part)
        except Exception as found:
            shown = f"{name} ({part!r:.80})" if name == "fun" else f"{name} (a {type(part).__name__})"
            return shown, found
    return "fun with its arguments", error


def sendable(error: BaseException) -> BaseException:
    """An exception as itself if it survives the journey, else as a `WorkerError` with its text."""
    try:
        if type(pickle.loads(pickle.dumps(error))) is type(error):
            return error
    except Exception:  # it may raise anything
        pass
    return WorkerError(f"fun raised {described(error)}")


def pack_exception(error: BaseException) -> bytes:
    told = "".join(traceback.format_exception(error)).rstrip()
    return pickle.dumps((pickle.dumps(sendable(error)), described(error), told))


def unpack_exception(packed: bytes) -> BaseException:
    inside, line, told = pickle.loads(packed)
    try:
        error = pickle.loads(inside)
    except Exception:
        error = WorkerError(f"fun raised {line}")
    error.add_note(f"{_NOTE}{told}")
    return error


def from_worker(error: BaseException) -> bool:
    """Whether an exception was raised by fun, in a worker."""
    return any(note.startswith(_NOTE) for note in getattr(error, "__notes__", ()))


def described(error: BaseException) -> str:
    """The type of an exception and, if it can be had, its text."""
    try:
        return f"{type(error).__name__}: {error}"
    except Exception:  # it may raise anything
        return f"{type(error).__name__} (whose text cannot be had)"
