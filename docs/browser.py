"""Headless Chromium: pictures of pages, how wide pages are, and their ground."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from auditdp.errors import ConfigurationError

NAMES = ("chromium", "google-chrome", "chromium-browser")
OPTIONS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",  # nothing is looked up at the maker's
    "--no-first-run",
    "--hide-scrollbars",
    "--virtual-time-budget=30000",
)
DARK = "--blink-settings=preferredColorScheme=0"
PATIENCE = 120
MEASURE = """<!doctype html><meta name="color-scheme" content="light dark"><script>
for (const page of %s) {
  const frame = document.createElement("iframe");
  frame.width = %d;
  frame.onload = () => {
    const {documentElement: root, body} = frame.contentDocument;
    const grounds = [body, root].map(part => frame.contentWindow.getComputedStyle(part).backgroundColor);
    const line = document.createElement("p");
    line.textContent = [
      page, root.scrollWidth - frame.contentWindow.innerWidth, grounds.find(ground => ground != "rgba(0, 0, 0, 0)")
    ].join(" ");
    frame.replaceWith(line);
  };
  frame.src = page;
  document.documentElement.append(frame);
}
</script>"""
"""Frames follow the colours of the page that they are in, which is why it names both."""


class Look(NamedTuple):
    """Measurements of a page in a browser.

    Attributes:
        beyond: By how many pixels it is wider than its window; what scrolls in itself is not.
        ground: Its background, as CSS writes colours.
    """

    beyond: int
    ground: str


def browser() -> str:
    """Return the path of Chromium.

    Raises:
        ConfigurationError: If there is none.
    """
    found = next(filter(None, map(shutil.which, NAMES)), None)
    if found is None:
        raise ConfigurationError(
            f"no browser found: none of {', '.join(NAMES)} is on the path; on Debian: apt-get install chromium"
        )
    return found


def take_picture(
    page: Path, picture: Path, *, width: int, height: int, dark: bool = False
) -> None:
    """Write a picture of the upper part of a page as PNG, sizes in pixels."""
    options = [
        *OPTIONS,
        f"--window-size={width},{height}",
        f"--screenshot={picture}",
        *([DARK] if dark else []),
    ]
    subprocess.run(
        [browser(), *options, page.as_uri()],
        check=True,
        capture_output=True,
        timeout=PATIENCE,
    )


def looks(
    folder: Path, pages: Sequence[str], *, width: int, dark: bool = False
) -> dict[str, Look]:
    """Return the measurements of each page of a folder in a window of a width.

    Args:
        folder: A file is written there and removed.
        pages: Paths in it.
        width: Of the window, in pixels.
        dark: Whether the reader prefers dark pages.
    """
    measuring = folder / "measuring.html"
    measuring.write_text(MEASURE % (json.dumps(list(pages)), width), encoding="utf-8")
    options = [
        *OPTIONS,
        "--allow-file-access-from-files",
        "--dump-dom",
        *([DARK] if dark else []),
    ]
    try:
        shown = subprocess.run(
            [browser(), *options, measuring.as_uri()],
            check=True,
            capture_output=True,
            text=True,
            timeout=PATIENCE,
        ).stdout
    finally:
        measuring.unlink()
    found = re.findall(r"<p>(\S+) (-?\d+) (.*?)</p>", shown)
    return {page: Look(int(beyond), ground) for page, beyond, ground in found}
