"""Small things every view writes."""

import csv
import io
import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

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


def machines(provenance: Iterable[Mapping[str, Any]]) -> list[dict[str, str]]:
    """The different combinations of versions and device among groups' provenance."""
    found = sorted({tuple(str(group.get(name, "")) for name in _MACHINE) for group in provenance})
    return [dict(zip(_MACHINE, machine, strict=True)) for machine in found]
