"""The picture of a report: ``python -m docs.report_picture`` audits README's first example and takes a picture of the page.

It needs Chromium, which is why the picture is kept in docs/pages. It holds the source that it shows, as text.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path

from PIL import Image, PngImagePlugin

from docs.assembling import PAGES, ROOT
from docs.blocks import blocks
from docs.browser import take_picture

PICTURE = PAGES / "report.png"
COLOURS = 64
RUN = ("run", "--seed", "1")


def example() -> tuple[str, str]:
    """Return the audit file of README's first example, and the output of its run."""
    first, shown = blocks((ROOT / "README.md").read_text(encoding="utf-8"))[:2]
    return first.text, shown.text


def report(folder: Path) -> list[str]:
    """Audit README's first example in a folder, and return the pages of the report there: the index, and the audit's own."""
    project = folder / "counts"
    (project / "audits").mkdir(parents=True)
    (project / "audits" / "audit_counts.py").write_text(example()[0], encoding="utf-8")
    command = [
        sys.executable,
        "-m",
        "auditdp",
        *RUN,
        "--report",
        "html=../report.html",
        "-q",
    ]
    subprocess.run(command, cwd=project, check=False, stdout=subprocess.DEVNULL)
    (page,) = (folder / "report_audits").glob("*.html")
    return ["report.html", page.relative_to(folder).as_posix()]


def main() -> None:
    """Write the picture."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        take_picture(folder / report(folder)[1], PICTURE, width=900, height=888)
    shown = PngImagePlugin.PngInfo()
    shown.add_itxt("shown", example()[1])
    with Image.open(PICTURE) as picture:
        picture.convert("RGB").quantize(COLOURS).save(
            PICTURE, optimize=True, pnginfo=shown
        )


if __name__ == "__main__":
    main()
