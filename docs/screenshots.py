"""Pictures of the built site and of a report, in build/screenshots (``make screenshots``)."""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Iterable
from pathlib import Path

from auditdp.errors import ConfigurationError
from docs import commands
from docs.assembling import ROOT
from docs.browser import browser, take_picture
from docs.report_picture import report

SITE = ROOT / "build" / "site"
PICTURES = ROOT / "build" / "screenshots"
PAGES = (
    "index.html",
    "tutorial.html",
    "verdicts.html",
    "how-to/adjacency.html",
    "statistics/betting.html",
    "reports/claims.html",
    "comparison.html",
    "api/claims.html",
)
"""One page of each kind; the commands' are added to them."""
WIDTHS = (1280, 420)
HEIGHT = 1600


def command_pages() -> list[str]:
    """Return the pages of commands, as paths in the site."""
    return [path.replace(".md", ".html") for path in commands.pages()]


def take(
    folder: Path,
    pages: Iterable[str],
    pictures: Path,
    *,
    widths: Iterable[int] = WIDTHS,
) -> list[Path]:
    """Write pictures of pages, light and dark, in place of those that are there, and return their paths.

    Args:
        folder: Of the pages.
        pages: Paths in it.
        pictures: Where they are written: ``tutorial-420-dark.png``.
        widths: Of the windows, in pixels.

    Raises:
        ConfigurationError: If a page is not there, or there is no browser.
    """
    pictures.mkdir(parents=True, exist_ok=True)
    taken = []
    for page in pages:
        if not (folder / page).is_file():
            raise ConfigurationError(
                f"{folder / page}: no such page; make docs builds the site"
            )
        for width in widths:
            for dark in (False, True):
                name = f"{page.removesuffix('.html').replace('/', '-')}-{width}-{'dark' if dark else 'light'}.png"
                take_picture(
                    folder / page,
                    pictures / name,
                    width=width,
                    height=HEIGHT,
                    dark=dark,
                )
                taken.append(pictures / name)
    return taken


def main() -> None:
    """Write the pictures of the site and of a report."""
    try:
        browser()
        taken = take(SITE, [*PAGES, *command_pages()], PICTURES)
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            taken += take(folder, report(folder), PICTURES)
    except ConfigurationError as error:
        sys.exit(f"error: {error}")
    print(f"{len(taken)} pictures in {PICTURES.relative_to(ROOT)}")


if __name__ == "__main__":
    main()
