"""The folder that the site is built from: the pages, the repository's own documents, the commands and the pictures.

Documents keep their paths, so that their links to each other hold: ``CI.md`` becomes ``CI.html``, and a link to a file
that is no page, such as ``action.yml``, leads to a copy of it. A page takes in what a document says under a heading by
``<!-- from README.md: Heading -->``, or what it says before its first one by ``<!-- from README.md -->``.
"""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterable
from pathlib import Path

from auditdp.errors import ConfigurationError
from auditdp.report.guesses import MEANINGS
from docs import commands, peers, pictures

ROOT = Path(__file__).parents[1]
PAGES = ROOT / "docs" / "pages"
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
LINK = re.compile(r"\]\(([^)#\s:]+)(?=[)#])")
SECTION = re.compile(r"^<!-- from ([\w./-]+?)(?:: (.+?))? -->$", flags=re.M)
VERDICTS = "<!-- verdicts -->"
PEERS = "<!-- peers -->"
WIDE = "---\nhide: [toc]\n---\n\n"
"""Before documents whose tables and outputs need the whole width: all but those that are mostly prose."""
NESTED = re.compile(r"^  - ", flags=re.M)
COMMAND = re.compile(r"^ {4}(auditdp .+|python .+)$", flags=re.M)
PROSE = ("ARCHITECTURE.md", "CONTRIBUTING.md", "CHANGELOG.md", "SECURITY.md")


def documents() -> list[str]:
    """Return the paths of the repository's documents that are pages of the site."""
    found = (
        path.relative_to(ROOT).as_posix()
        for pattern in DOCUMENTS
        for path in sorted(ROOT.glob(pattern))
    )
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


def section(path: str, heading: str = "") -> str:
    """Return the text of a document under a heading of the second level.

    Raises:
        ConfigurationError: If the document has no such heading.
    """
    lead, *parts = re.split(
        r"^## (.+)\n", (ROOT / path).read_text(encoding="utf-8"), flags=re.M
    )
    if not heading:
        return re.sub(r"^# .+\n", "", lead).strip()
    sections = dict(zip(parts[::2], parts[1::2], strict=True))
    if heading not in sections:
        raise ConfigurationError(
            f"{path} has no section {heading!r}; it has {', '.join(sections)}"
        )
    return sections[heading].strip()


def filled(page: str) -> str:
    """Return a page after the insertion of text from other files."""
    rows = [
        f"| `{verdict.value}` | {meaning} |" for verdict, meaning in MEANINGS.items()
    ]
    page = page.replace(
        VERDICTS, "\n".join(["| verdict | what it says |", "|---|---|", *rows])
    )
    page = page.replace(PEERS, peers.table())
    return SECTION.sub(
        lambda found: section(found[1], found[2] or "").replace("docs/pages/", ""), page
    )


def deeper(text: str) -> str:
    """Return a document whose nested lists, and commands below their items, are indented as the builder wants them."""
    return (
        COMMAND.sub(r"        `\1`", NESTED.sub("    - ", text))
        if NESTED.search(text)
        else text
    )


def assemble(folder: Path) -> None:
    """Write all pages of the site into a folder, in place of its content."""
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(PAGES, folder)
    pages = [path.relative_to(PAGES).as_posix() for path in PAGES.rglob("*.md")]
    texts = {path: filled((PAGES / path).read_text(encoding="utf-8")) for path in pages}
    own = {path: (ROOT / path).read_text(encoding="utf-8") for path in documents()}
    for path in linked(own.items()) - set(own):
        _put(folder, _shown(path), (ROOT / path).read_bytes())
    for path, text in own.items():
        texts[path] = ("" if path in PROSE else WIDE) + LINK.sub(
            lambda link: f"]({_shown(link[1])}", deeper(text)
        )
    for path, text in {**texts, **commands.pages()}.items():
        _put(folder, path, text.encode())
    for name, svg in pictures.all_pictures().items():
        _put(folder, f"pictures/{name}.svg", svg.encode())


def _shown(path: str) -> str:
    """The path of a file in the site, which leaves out files whose name begins with a dot."""
    return re.sub(r"(^|/)\.(?=[\w-])", r"\1", path)


def _put(folder: Path, path: str, content: bytes) -> None:
    file = folder / path
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(content)


if __name__ == "__main__":
    assemble(ROOT / "build" / "docs")
