"""What MkDocs is told when it builds the site: the repository's own documents, the commands and the pictures are pages too.

Documents keep their paths, so that their links to each other hold: ``CI.md`` is the page ``CI.html``, and a link to a file
that is no page, such as ``action.yml``, leads to a copy of that file.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from mkdocs.exceptions import PluginError
from mkdocs.structure.files import File, Files, InclusionLevel

from docs import commands, pictures

ROOT = Path(__file__).parents[1]
DOCUMENTS = (
    "CI.md",
    "ARCHITECTURE.md",
    "CONTRIBUTING.md",
    "CHANGELOG.md",
    "SECURITY.md",
    "reports/*.md",
    "reports/*/*.md",
)
LEFT_OUT = {"reports/README.md"}
LINK = re.compile(r"\]\(([^)#\s:]+)(?:#[^)\s]*)?\)")
SECTION = re.compile(r"^<!-- from ([\w./-]+)(?:: (.+?))? -->$", flags=re.M)


def documents() -> list[str]:
    """Return the paths of the repository's documents that are pages of the site."""
    found = (path.relative_to(ROOT).as_posix() for pattern in DOCUMENTS for path in sorted(ROOT.glob(pattern)))
    return [path for path in found if path not in LEFT_OUT]


def linked(texts: Iterable[tuple[str, str]]) -> set[str]:
    """Return the files of the repository that documents link to.

    Args:
        texts: Path and text of each document.
    """
    found: set[str] = set()
    for path, text in texts:
        for target in LINK.findall(text):
            file = (ROOT / path).parent.joinpath(target).resolve()
            if file.is_file() and file.is_relative_to(ROOT):
                found.add(file.relative_to(ROOT).as_posix())
    return found


def section(path: str, heading: str) -> str:
    """Return what a document says under a heading of the second level, or before the first one if none is given.

    Raises:
        PluginError: If the document has no such heading.
    """
    lead, *parts = re.split(r"^## (.+)\n", (ROOT / path).read_text(encoding="utf-8"), flags=re.M)
    if not heading:
        return re.sub(r"^# .+\n", "", lead).strip()
    sections = dict(zip(parts[::2], parts[1::2], strict=True))
    if heading not in sections:
        raise PluginError(f"{path} has no section {heading!r}; it has {', '.join(sections)}")
    return sections[heading].strip()


def on_files(files: Files, config: Any) -> Files:
    """Add what is not a file of docs/pages."""
    pages = documents()
    texts = [(path, (ROOT / path).read_text(encoding="utf-8")) for path in pages]
    for path in [*pages, *sorted(linked(texts) - set(pages))]:
        files.append(File.generated(config, path, abs_src_path=str(ROOT / path), inclusion=InclusionLevel.INCLUDED))
    for path, text in commands.pages().items():
        files.append(File.generated(config, path, content=text))
    for name, svg in pictures.all_pictures().items():
        files.append(File.generated(config, f"pictures/{name}.svg", content=svg))
    return files


def on_page_markdown(markdown: str, **_: Any) -> str:
    """Put sections of the repository's documents where a page asks for them."""
    return SECTION.sub(lambda found: section(found[1], found[2] or ""), markdown)
