"""What goes to workers and comes back: the objective, once; exceptions, with where they arose."""

import pickle
import traceback
from typing import Any

import jax

try:
    import cloudpickle
except ImportError:  # then functions must be importable by their names
    cloudpickle = None

_SETTINGS = ("jax_enable_x64", "jax_default_matmul_precision")  # a function must give what it would give here


class WorkerError(RuntimeError):
    """Workers cannot be started, cannot get the objective, or die of a candidate."""


def pack(call: Any, pickler: Any = None) -> bytes:
    """An objective, with what its values depend on, or TypeError that says which part cannot be sent."""
    pickler = pickler or cloudpickle or pickle
    try:
        inside = pickler.dumps(call)
    except Exception as error:
        what, why = _culprit(call, pickler, error)
        help = "" if pickler is not pickle else _NAMED if "fun" in what else _INSTALL
        raise TypeError(f"{what} cannot be sent to workers: {type(why).__name__}: {why}{help}") from error
    return pickle.dumps(({name: getattr(jax.config, name) for name in _SETTINGS}, inside))


_INSTALL = "; pip install cloudpickle sends more"
_NAMED = "; define it at the top of a module (no lambda, no function in a function), or pip install cloudpickle"


def unpack(packed: bytes) -> Any:
    settings, inside = pickle.loads(packed)
    for name, value in settings.items():
        jax.config.update(name, value)
    return pickle.loads(inside)


def _culprit(call: Any, pickler: Any, error: Exception) -> tuple[str, Exception]:
    parts = {"fun": call.fun, **{f"args[{i}]": arg for i, arg in enumerate(call.args)}, "x0's structure": call.space}
    for name, part in parts.items():
        try:
            pickler.dumps(part)
        except Exception as found:
            shown = f"{name} ({part!r:.80})" if name == "fun" else f"{name} (a {type(part).__name__})"
            return shown, found
    return "fun with its arguments", error


def pack_exception(error: BaseException) -> bytes:
    """An exception as itself if it survives the journey, else as a `WorkerError` with its text."""
    told = "".join(traceback.format_exception(error)).rstrip()
    try:
        packed = pickle.dumps(error)
        if type(pickle.loads(packed)) is type(error):
            return pickle.dumps((packed, _line(error), told))
    except Exception:  # it may raise anything
        pass
    return pickle.dumps((None, _line(error), told))


def unpack_exception(packed: bytes) -> BaseException:
    inside, line, told = pickle.loads(packed)
    try:
        error = WorkerError(f"fun raised {line}") if inside is None else pickle.loads(inside)
    except Exception:
        error = WorkerError(f"fun raised {line}")
    error.add_note(f"In a worker:\n{told}")
    return error


def _line(error: BaseException) -> str:
    return f"{type(error).__name__}: {error}"
