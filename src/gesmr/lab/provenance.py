"""With what and on what something was computed."""

import platform
from importlib import metadata
from typing import Any

import jax


def machine() -> dict[str, Any]:
    """Versions and device, for the record beside every result."""
    device = jax.devices()[0]
    return {
        "gesmr": _version("gesmr"),
        "jax": jax.__version__,
        "numpy": _version("numpy"),
        "python": platform.python_version(),
        "platform": device.platform,
        "device": _cpu_model() if device.platform == "cpu" else device.device_kind,
        "devices": jax.device_count(),
        "system": f"{platform.system()} {platform.machine()}",
    }


def _version(package: str) -> str:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:  # used from a source tree that is not installed
        return "not installed"


def _cpu_model() -> str:
    try:
        with open("/proc/cpuinfo", encoding="utf-8") as file:
            return next(line.split(":", 1)[1].strip() for line in file if line.startswith("model name"))
    except (OSError, StopIteration):
        return platform.processor() or platform.machine()
