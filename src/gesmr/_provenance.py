"""With what and on what something was computed."""

import platform
from typing import Any

import jax
import numpy

from ._version import __version__


def machine() -> dict[str, Any]:
    """Versions and device, for the record beside every result."""
    device = jax.devices()[0]
    return {
        "gesmr": __version__,
        "jax": jax.__version__,
        "numpy": numpy.__version__,
        "python": platform.python_version(),
        "platform": device.platform,
        "device": _cpu_model() if device.platform == "cpu" else device.device_kind,
        "devices": jax.device_count(),
        "system": f"{platform.system()} {platform.machine()}",
    }


def _cpu_model() -> str:
    try:
        with open("/proc/cpuinfo", encoding="utf-8") as file:
            return next(line.split(":", 1)[1].strip() for line in file if line.startswith("model name"))
    except (OSError, StopIteration):
        return platform.processor() or platform.machine()
