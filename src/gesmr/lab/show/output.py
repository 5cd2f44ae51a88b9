"""Small things every study writes."""

import csv
import io
import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from rich.console import Console

_MACHINE = ("gesmr", "jax", "numpy", "python", "platform", "device", "system")


def say(console: Console, message: str) -> None:
    """A line as it is."""
    console.print(message, markup=False, highlight=False, soft_wrap=True)


def json_text(data: Any) -> str:
    return json.dumps(data, indent=1, ensure_ascii=False, allow_nan=False) + "\n"


def csv_text(header: Sequence[str], rows: Iterable[Sequence[Any]]) -> str:
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(header)
    writer.writerows(rows)
    return out.getvalue()


def finite(value: Any) -> float | None:
    """A number for a table, or None for a cell without one."""
    return float(value) if np.isfinite(value) else None


def listed(numbers: Iterable[float], form: str = "{}") -> str:
    """Every number once, in ascending order: "2, 30, 100"."""
    return ", ".join(map(form.format, sorted(set(numbers))))


def span(counts: Iterable[int]) -> str:
    """From the least to the most: "3–5", or "5" if they are the same."""
    counts = list(counts)
    return "–".join(map(str, dict.fromkeys((min(counts), max(counts)))))


def machines(provenance: Iterable[Mapping[str, Any]]) -> list[dict[str, str]]:
    """The different combinations of versions and device among jobs' provenance."""
    found = sorted({tuple(str(job.get(name, "")) for name in _MACHINE) for job in provenance})
    return [dict(zip(_MACHINE, machine, strict=True)) for machine in found]
