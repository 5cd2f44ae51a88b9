"""A hook of MkDocs: pages and figures outside docs/ are part of the site, with links that work there as on GitHub.

MkDocs serves one directory, docs/. Its pages link to ../results/paper/curves.png, which is right in a checkout. Such
files are added to the site at their path in the repository (docs/ itself is the root), and links that lead out of
docs/, or into it from elsewhere, are rewritten to match.
"""

import posixpath
import re
from pathlib import Path

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

ROOT = Path(__file__).resolve().parent.parent
OUTSIDE = (
    "results/**/*",
    "benchmarks/README.md",
    "benchmarks/*.py",
    "examples/*.py",
    "CHANGELOG.md",
    "CONTRIBUTING.md",
)
LINK = re.compile(r"(?<=\]\()([^)\s#]+)")
UNIT = re.compile(r"(?<=\d) (?=(?:µs|ms|s|[kMGT]B) \|)")  # which a table keeps beside its number
CELL = re.compile(r"<td(?= |>)(?=[^>]*>(?:(?!</td>)<[^>]*>|[^<]){50})")  # of a table, with a sentence
FENCE = re.compile(r"^```.*?^```", re.S | re.M)


def on_files(files: Files, config: MkDocsConfig) -> Files:
    for path in sorted(path for pattern in OUTSIDE for path in ROOT.glob(pattern) if path.is_file()):
        uri = path.relative_to(ROOT).as_posix()
        files.append(File.generated(config, uri, abs_src_path=str(path)))
    for directory in sorted(path for path in ROOT.glob("results/**") if path.is_dir()):
        if not (directory / "README.md").exists():
            uri = (directory / "README.md").relative_to(ROOT).as_posix()
            files.append(File.generated(config, uri, content=listing(directory)))
    return files


def listing(directory: Path) -> str:
    """A page for a directory of results that has no page of its own."""
    names = sorted(f"{path.name}/README.md" if path.is_dir() else path.name for path in directory.iterdir())
    title = directory.relative_to(ROOT).as_posix()
    return f"# {title}\n\n" + "".join(f"- [{name.removesuffix('/README.md')}]({name})\n" for name in names)


def on_page_markdown(markdown: str, *, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Links of the repository to links of the site; code stays as it is."""
    start = 0
    parts = []
    for fence in FENCE.finditer(markdown):
        parts += [links(markdown[start : fence.start()], page.file.src_uri, files), fence.group()]
        start = fence.end()
    return "".join([*parts, links(markdown[start:], page.file.src_uri, files)])


def on_page_content(html: str, **_: object) -> str:
    """Cells with a sentence are marked, for screens so narrow that each would be a column of single words."""
    return CELL.sub('<td class="sentence"', html)


def links(text: str, uri: str, files: Files) -> str:
    def rewrite(match: re.Match) -> str:
        target = match.group()
        if "://" in target or target.startswith(("mailto:", "/")):
            return target
        here = repository(uri)
        there = posixpath.normpath(posixpath.join(posixpath.dirname(here), target))
        if (ROOT / there).is_dir():
            there += "/README.md"
        if there.startswith("docs/"):
            there = there.removeprefix("docs/")
        return posixpath.relpath(there, posixpath.dirname(uri) or ".")

    text = text.replace("σ*", r"σ\*")  # a star that Python-Markdown takes for emphasis, and GitHub does not
    return LINK.sub(rewrite, UNIT.sub("\u00a0", text))


def repository(uri: str) -> str:
    """The path in the repository of what the site has at `uri`."""
    return f"docs/{uri}" if (ROOT / "docs" / uri).exists() else uri
