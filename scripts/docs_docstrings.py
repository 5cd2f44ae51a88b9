"""An extension of Griffe: the arguments that a docstring describes, `name: what it is`, become a list on the site.

Lines that are indented under another are a section, whose first line becomes its title. A field of a class without a
docstring is described by the comment beside it.
"""

import re
from typing import Any

from griffe import Class, Docstring, Extension, Object

ARGUMENT = re.compile(r"^(\*{0,2}[a-z_]\w*(?:, \*{0,2}[a-z_]\w*)*): (?=\S)")
SHAPE = re.compile(r"^([a-z]+\d*\[[^\]]*\]),? *")


class Arguments(Extension):
    def on_object(self, *, obj: Object, **kwargs: Any) -> None:
        if isinstance(obj.parent, Class) and obj.is_attribute and not obj.docstring:
            comment = obj.source.rpartition("  # ")[2] if "  # " in obj.source else ""
            obj.docstring = Docstring(SHAPE.sub(r"`\1`: ", comment).removesuffix(": "), parent=obj) if comment else None
        if obj.docstring:
            obj.docstring.value = with_list(without_sections(obj.docstring.value))


def without_sections(text: str) -> str:
    lines: list[str] = []
    inside = fenced = False
    source = text.splitlines()
    for line, after in zip(source, [*source[1:], ""], strict=True):
        fenced ^= line.startswith("```")
        starts = bool(line) and not line.startswith((" ", "-", "|")) and not ARGUMENT.match(line)
        if starts and not fenced and re.match(r" {4}\S", after):
            lines += ["", f"**{line.rstrip(':')}**", ""]
            inside = True
        else:
            inside = inside and (not line or line.startswith("    "))
            lines.append(line.removeprefix("    ") if inside else line)
    return "\n".join(lines)


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
