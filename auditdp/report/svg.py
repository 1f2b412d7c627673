"""Matplotlib's SVG made fit to stand inside a page: small, with colours that follow the page, with ids of its own.

Colours are named by the roles in ``COLOURS``: figures draw with the hexadecimal value, and the page's style sheet
decides, for light and dark, what ``var(--role)`` is.
"""

from __future__ import annotations

import html
import re
from xml.etree import ElementTree

COLOURS: dict[str, str] = {
    "ink": "#1c2024",
    "soft": "#5b6169",
    "rule": "#d9dce0",
    "violated": "#b3261e",
    "certified": "#1b6e3c",
    "not-refuted": "#1f5fa8",
    "equivalent": "#0b6b74",
    "inconclusive": "#8a5a00",
    "error": "#7a2f8f",
    "skipped": "#6a6f76",
}

FONT_SIZE = 11  # of the text in a plot, in its own units; the style sheet repeats it

CLASSES: dict[str, str] = {
    "fill:none;stroke:var(--rule);stroke-width:0.7": "g",
    "text-anchor:middle;fill:var(--soft)": "x",
    "text-anchor:end;fill:var(--soft)": "y",
    "text-anchor:end;fill:var(--ink)": "k",
}
"""What grid lines and labels look like, which is most of a plot, and the class that stands for it."""

TOLERANCE = 0.15  # how far a line may move when points are left out, in the plot's units

_SVG = "{http://www.w3.org/2000/svg}"
_HREF = "{http://www.w3.org/1999/xlink}href"
_ROLES = {value: f"var(--{role})" for role, value in COLOURS.items()}
_NUMBER = re.compile(r"-?\d+\.\d+")
_COMMAND = re.compile(r" ?([A-Za-z]) ?")
_OPEN_LINE = re.compile(r"M [\d. -]+(?: L [\d. -]+){3,}")
_DROPPED_STYLES = {
    "font-family",
    "stroke-linejoin: miter",
    "stroke-linecap: square",
    "text-anchor: start",
    f"font-size: {FONT_SIZE}px",
    "stroke-width: 1",
}
_DROPPED_ATTRIBUTES = ("clip-path", "width", "height", "version")
_DROPPED_TAGS = ("metadata", "style", "clipPath")


def style_sheet() -> str:
    """Return the rules for ``CLASSES``."""
    return "\n".join(f".plot .{name} {{ {style} }}" for style, name in CLASSES.items())


def inline(svg: str, *, prefix: str, label: str) -> str:
    """Return an ``<svg>`` element for an HTML page.

    Clip paths are removed, so a figure must keep its data inside its axes.

    Args:
        svg: What Matplotlib wrote.
        prefix: Starts every id of this plot, so that plots on one page do not clash.
        label: What a reader who cannot see the plot is told.
    """
    root = ElementTree.fromstring(svg)
    ids: dict[str, str] = {}
    for element in root.iter():
        href = element.get(_HREF)
        if href is not None:
            ids.setdefault(href[1:], f"{prefix}{len(ids)}")
    body = "".join(_write(child, ids, in_definition=False) for child in root)
    return (
        f'<svg class="plot" role="img" aria-label="{html.escape(label)}" viewBox="{root.get("viewBox")}">{body}</svg>'
    )


def _write(element: ElementTree.Element, ids: dict[str, str], *, in_definition: bool) -> str:
    tag = element.tag.removeprefix(_SVG)
    if tag in _DROPPED_TAGS:
        return ""
    in_definition = in_definition or tag == "defs"
    attributes = _attributes(element, ids, digits=2 if in_definition else 1)
    uses = tag == "g" and len(element) > 1 and all(child.tag == f"{_SVG}use" for child in element)
    if uses and len({child.get("style") for child in element}) == 1:
        attributes["style"] = _style(element[0].get("style", ""))
        for child in element:
            child.attrib.pop("style", None)
    body = html.escape((element.text or "").strip(), quote=False)
    body += "".join(_write(child, ids, in_definition=in_definition) for child in element)
    if tag in ("g", "defs") and not body:
        return ""
    if tag == "g" and not attributes:
        return body
    if tag == "path" and attributes.get("style") == "fill:none":
        return ""
    if attributes.get("style") in CLASSES:
        attributes["class"] = CLASSES[attributes.pop("style")]
    written = "".join(f' {name}="{html.escape(value)}"' for name, value in attributes.items() if value)
    return f"<{tag}{written}>{body}</{tag}>" if body or tag == "text" else f"<{tag}{written}/>"


def _attributes(element: ElementTree.Element, ids: dict[str, str], *, digits: int) -> dict[str, str]:
    kept: dict[str, str] = {}
    for name, value in element.attrib.items():
        if name == "id":
            if value in ids:
                kept["id"] = ids[value]
        elif name == _HREF:
            kept["href"] = "#" + ids[value[1:]]
        elif name == "style":
            kept["style"] = _style(value)
        elif name == "d":
            kept[name] = _COMMAND.sub(r"\1", _rounded(_straightened(" ".join(value.split())), digits))
        elif name in ("x", "y", "transform"):
            if not value.startswith("rotate(-0 "):
                kept[name] = _rounded(value, digits)
        elif name not in _DROPPED_ATTRIBUTES:
            kept[name] = value
    return kept


def _style(style: str) -> str:
    """The declarations that the style sheet does not already make, with colours by role."""
    kept = []
    for declaration in style.split(";"):
        name, _, value = (part.strip() for part in declaration.partition(":"))
        if name and name not in _DROPPED_STYLES and f"{name}: {value}" not in _DROPPED_STYLES:
            kept.append(f"{name}:{_ROLES.get(value, value)}")
    return ";".join(kept)


def _straightened(path: str) -> str:
    """A line of straight pieces without the points that it passes close to anyway (Douglas & Peucker 1973)."""
    if not _OPEN_LINE.fullmatch(path):
        return path
    points = [complex(*map(float, point.split())) for point in path.removeprefix("M ").split(" L ")]
    kept, pending = {0, len(points) - 1}, [(0, len(points) - 1)]
    while pending:
        first, last = pending.pop()
        chord = points[last] - points[first]
        farthest, distance = first, TOLERANCE
        for index in range(first + 1, last):
            offset = points[index] - points[first]
            away = abs((offset * chord.conjugate()).imag) / abs(chord) if chord else abs(offset)
            if away > distance:
                farthest, distance = index, away
        if farthest != first:
            kept.add(farthest)
            pending += [(first, farthest), (farthest, last)]
    return "M " + " L ".join(f"{points[index].real} {points[index].imag}" for index in sorted(kept))


def _rounded(text: str, digits: int) -> str:
    return _NUMBER.sub(lambda match: _short(float(match[0]), digits), text)


def _short(value: float, digits: int) -> str:
    text = f"{value:.{digits}f}".rstrip("0").rstrip(".")
    return "0" if text in ("-0", "") else text
