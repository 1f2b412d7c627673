"""The picture of a report: ``python -m docs.report_picture`` audits README's first example and takes a picture of the page.

It needs Chromium, which is why the picture is kept in docs/pages.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path

from PIL import Image

from docs.assembling import PAGES, ROOT
from docs.blocks import blocks
from docs.browser import take_picture

PICTURE = PAGES / "report.png"
COLOURS = 64


def example() -> str:
    """Return the audit file of README's first example."""
    return next(b.text for b in blocks((ROOT / "README.md").read_text(encoding="utf-8")) if b.language == "python")


def main() -> None:
    """Write the picture."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name) / "counts"
        (folder / "audits").mkdir(parents=True)
        (folder / "audits" / "audit_counts.py").write_text(example(), encoding="utf-8")
        run = [sys.executable, "-m", "auditdp", "run", "--seed", "1", "--report", "html=report.html", "-q"]
        subprocess.run(run, cwd=folder, check=False, stdout=subprocess.DEVNULL)
        page = next((folder / "report_audits").glob("*.html"))
        take_picture(page, PICTURE, width=900, height=888)
    with Image.open(PICTURE) as picture:
        picture.convert("RGB").quantize(COLOURS).save(PICTURE, optimize=True)


if __name__ == "__main__":
    main()
