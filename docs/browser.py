"""Headless Chromium: pictures of pages, and how wide pages are."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

from auditdp.errors import ConfigurationError

NAMES = ("chromium", "google-chrome", "chromium-browser")
OPTIONS = ("--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--virtual-time-budget=30000")
DARK = "--blink-settings=preferredColorScheme=0"
PATIENCE = 120
MEASURE = """<!doctype html><script>
for (const page of %s) {
  const frame = document.createElement("iframe");
  frame.width = %d;
  frame.onload = () => {
    const line = document.createElement("p");
    line.textContent = page + " " + (frame.contentDocument.documentElement.scrollWidth - frame.contentWindow.innerWidth);
    frame.replaceWith(line);
  };
  frame.src = page;
  document.documentElement.append(frame);
}
</script>"""


def browser() -> str:
    """Return the path of Chromium.

    Raises:
        ConfigurationError: If there is none.
    """
    found = next(filter(None, map(shutil.which, NAMES)), None)
    if found is None:
        raise ConfigurationError(f"no browser found; install one of {', '.join(NAMES)}")
    return found


def take_picture(page: Path, picture: Path, *, width: int, height: int, dark: bool = False) -> None:
    """Write a picture of a page as PNG."""
    options = [*OPTIONS, f"--window-size={width},{height}", f"--screenshot={picture}", *([DARK] if dark else [])]
    subprocess.run([browser(), *options, page.as_uri()], check=True, capture_output=True, timeout=PATIENCE)


def overflow(site: Path, pages: Sequence[str], *, width: int) -> dict[str, int]:
    """Return by how many pixels each page of a site is wider than a window of a width; what scrolls in itself is not.

    Args:
        site: Folder of the site; a file is written there and removed.
        pages: Paths in it.
        width: Of the window, in pixels.
    """
    measuring = site / "widths.html"
    measuring.write_text(MEASURE % (json.dumps(list(pages)), width), encoding="utf-8")
    try:
        command = [browser(), *OPTIONS, "--allow-file-access-from-files", "--dump-dom", measuring.as_uri()]
        shown = subprocess.run(command, check=True, capture_output=True, text=True, timeout=PATIENCE).stdout
    finally:
        measuring.unlink()
    return {page: int(pixels) for page, pixels in re.findall(r"<p>(\S+) (-?\d+)</p>", shown)}
