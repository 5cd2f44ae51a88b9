"""An extension of Griffe: the arguments that a docstring describes, `name: what it is`, become a list on the site."""

import re
from typing import Any

from griffe import Extension, Object

ARGUMENT = re.compile(r"^(\*{0,2}[a-z_]\w*(?:, \*{0,2}[a-z_]\w*)*): (?=\S)")


class Arguments(Extension):
    def on_object(self, *, obj: Object, **kwargs: Any) -> None:
        if obj.docstring:
            obj.docstring.value = with_list(obj.docstring.value)


def with_list(text: str) -> str:
    lines: list[str] = []
    inside = fenced = False
    for raw in text.splitlines():
        line = raw
        fenced ^= line.startswith("```")
        named = None if fenced else ARGUMENT.match(line)
        if named:
            if not inside and lines and lines[-1]:
                lines.append("")
            names = ", ".join(f"`{name}`" for name in named[1].split(", "))
            line = f"- {names}: {line[named.end() :]}"
        inside = bool(named) or (inside and line.startswith("    "))
        lines.append(line)
    return "\n".join(lines)
