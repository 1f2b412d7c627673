"""Pictures of the built site, to be looked at: ``python -m docs.screenshots`` writes them to build/screenshots."""

from __future__ import annotations

from docs.assembling import ROOT
from docs.browser import take_picture

SITE = ROOT / "build" / "site"
PICTURES = ROOT / "build" / "screenshots"
PAGES = (
    "index",
    "tutorial",
    "verdicts",
    "how-to/adjacency",
    "statistics/betting",
    "reports/claims",
    "comparison",
    "commands/run",
    "api/claims",
)
VIEWS = {"1280": {"width": 1280}, "420": {"width": 420}, "dark": {"width": 1280, "dark": True}}
HEIGHT = 1600


def main() -> None:
    """Write a picture of each page in each view."""
    PICTURES.mkdir(parents=True, exist_ok=True)
    for page in PAGES:
        for view, options in VIEWS.items():
            picture = PICTURES / f"{page.replace('/', '-')}-{view}.png"
            take_picture(SITE / f"{page}.html", picture, height=HEIGHT, **options)
            print(picture.relative_to(ROOT))


if __name__ == "__main__":
    main()
