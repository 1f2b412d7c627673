"""The colours of plots by role; on a dark page the style sheet turns a plot's light colours into dark ones."""

from __future__ import annotations

COLOURS: dict[str, str] = {
    "ink": "#1c2024",
    "soft": "#5b6169",
    "rule": "#d9dce0",
    "violated": "#b3261e",
    "miscalibrated": "#a04000",
    "certified": "#1b6e3c",
    "not-refuted": "#1f5fa8",
    "equivalent": "#0b6b74",
    "inconclusive": "#8a5a00",
    "error": "#7a2f8f",
    "skipped": "#6a6f76",
}

FONT_SIZE = 11  # of the text in a plot, in points
