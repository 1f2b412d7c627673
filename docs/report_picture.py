"""The picture of a report: ``python -m docs.report_picture`` audits README's first example and takes a picture of the page.

It needs Chromium, which is why the picture is kept in docs/pages.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from PIL import Image

from docs.assembling import PAGES, ROOT
from docs.blocks import blocks

PICTURE = PAGES / "report.png"
BROWSERS = ("chromium", "google-chrome", "chromium-browser")
SIZE = "900,888"
COLOURS = 64


def example() -> str:
    """Return the audit file of README's first example."""
    return next(b.text for b in blocks((ROOT / "README.md").read_text(encoding="utf-8")) if b.language == "python")


def main() -> int:
    """Write the picture; return the exit code."""
    browser = next(filter(None, map(shutil.which, BROWSERS)), None)
    if browser is None:
        print(f"no browser found; looked for {', '.join(BROWSERS)}", file=sys.stderr)
        return 2
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name) / "counts"
        (folder / "audits").mkdir(parents=True)
        (folder / "audits" / "audit_counts.py").write_text(example(), encoding="utf-8")
        run = [sys.executable, "-m", "auditdp", "run", "--seed", "1", "--report", "html=report.html", "-q"]
        subprocess.run(run, cwd=folder, check=False, stdout=subprocess.DEVNULL)
        page = next((folder / "report_audits").glob("*.html"))
        options = ["--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", f"--window-size={SIZE}"]
        subprocess.run([browser, *options, f"--screenshot={PICTURE}", page.as_uri()], check=True, capture_output=True)
    with Image.open(PICTURE) as picture:
        picture.convert("RGB").quantize(COLOURS).save(PICTURE, optimize=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
