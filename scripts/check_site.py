"""Checks the built documentation: every link and anchor within it leads somewhere, and nothing is external.

python scripts/check_site.py build/site
"""

import re
import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

LOADS = {  # what a browser fetches by itself, by element and attribute
    ("script", "src"),
    ("img", "src"),
    ("iframe", "src"),
    ("source", "src"),
    ("link", "href"),
}
CSS_LOAD = re.compile(r"""(?:url\(\s*['"]?|@import\s+['"])((?:https?:)?//[^'")]+)""")


class Page(HTMLParser):
    """The anchors, links and loads of a page."""

    def __init__(self, text: str):
        super().__init__()
        self.anchors: set[str] = set()
        self.links: list[str] = []
        self.loads: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        for name, value in attrs:
            if name in ("id", "name") and value:
                self.anchors.add(value)
            elif (tag, name) in LOADS and value:
                self.loads.append(value)
            elif tag == "a" and name == "href" and value:
                self.links.append(value)


def problems(site: Path) -> list[str]:
    """What is wrong with the site, one line each."""
    pages = {path: Page(path.read_text(encoding="utf-8")) for path in sorted(site.rglob("*.html"))}
    found = []
    for path, page in pages.items():
        name = path.relative_to(site)
        found += [f"{name} loads {url}" for url in page.loads if urlsplit(url).netloc]
        if name.name == "404.html":
            continue  # its links are absolute, for a server's root
        for url in {*page.links, *page.loads}:
            parts = urlsplit(url)
            if parts.scheme or parts.netloc:
                continue
            target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            target = target / "index.html" if target.is_dir() else target
            if not target.is_file():
                found.append(f"{name} links to {url}, which is not there")
            elif parts.fragment and target in pages and unquote(parts.fragment) not in pages[target].anchors:
                found.append(f"{name} links to {url}, which has no such anchor")
    for path in sorted(site.rglob("*.css")):
        found += [f"{path.relative_to(site)} loads {url}" for url in CSS_LOAD.findall(path.read_text(encoding="utf-8"))]
    return found


if __name__ == "__main__":
    root = Path(sys.argv[1]).resolve()
    found = problems(root)
    print(
        "\n".join(found)
        or f"{sum(1 for _ in root.rglob('*.html'))} pages: every link leads somewhere, nothing is external"
    )
    sys.exit(bool(found))
