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
    "miscalibrated": "#a04000",
    "certified": "#1b6e3c",
    "not-refuted": "#1f5fa8",
    "equivalent": "#0b6b74",
    "inconclusive": "#8a5a00",
    "error": "#7a2f8f",
    "skipped": "#6a6f76",
}

FONT_SIZE = 11  # of the text in a plot, in its own units; the style sheet repeats it

GRID = "fill:none;stroke:var(--rule);stroke-width:0.7"
CLASSES: dict[str, str] = {
    GRID: "g",
    "text-anchor:middle;fill:var(--soft)": "x",
    "text-anchor:end;fill:var(--soft)": "y",
    "text-anchor:end;fill:var(--ink)": "k",
    "fill:none;stroke:var(--soft);stroke-width:0.8": "a",
    "fill:none;stroke-dasharray:7,4.2;stroke:var(--ink);stroke-width:1.4": "q",
    "fill:none;stroke-dasharray:6,3.6;stroke:currentColor;stroke-width:1.2": "t",
    "fill:none;stroke-dasharray:1.2,3.6;stroke:currentColor;stroke-width:1.2": "d",
    "fill:none;stroke:currentColor;stroke-opacity:0.35;stroke-width:5": "b",
    "fill:none;stroke:currentColor;stroke-width:1.8": "w",
    "fill:none;stroke:currentColor;stroke-width:2": "l",
    "fill:none;stroke:currentColor;stroke-width:2.4": "v",
    "fill:currentColor": "f",
    "fill:currentColor;stroke:currentColor;stroke-width:2": "m",
    "fill:currentColor;stroke:currentColor;stroke-width:2.2": "n",
    "fill-opacity:0;stroke:currentColor;stroke-width:2": "o",
}
"""What most of a plot looks like, and the class that stands for it; ``currentColor`` is that of a role's class beside it."""

TOLERANCE = 0.3  # how far a line may move when points are left out, in the plot's units

_SVG = "{http://www.w3.org/2000/svg}"
_HREF = "{http://www.w3.org/1999/xlink}href"
_ROLES = {value: f"var(--{role})" for role, value in COLOURS.items()}
_NUMBER = re.compile(r"-?\d+\.\d+")
_COMMAND = re.compile(r" ?([A-Za-z]) ?")
_COLOUR = re.compile(r"var\(--([a-z-]+)\)")
_LINE = re.compile(r"M [\d.e-]+ [\d.e-]+(?: L [\d.e-]+ [\d.e-]+)+")
_DROPPED_STYLES = {
    "font-family",
    "stroke-linejoin: miter",
    "stroke-linecap: square",
    "text-anchor: start",
    f"font-size: {FONT_SIZE}px",
    "stroke-width: 1",
    "stroke-dashoffset: 0",
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
    grid: list[str] = []
    labels: dict[str, list[str]] = {}
    body = "".join(_write(child, ids, grid, labels, in_definition=False) for child in root)
    lines = f'<path class="{CLASSES[GRID]}" d="{"".join(grid)}"/>' if grid else ""
    texts = "".join(f'<g class="{name}">{"".join(written)}</g>' for name, written in labels.items())
    return (
        f'<svg class="plot" role="img" aria-label="{html.escape(label)}" viewBox="{root.get("viewBox")}">'
        f"{lines}{body}{texts}</svg>"
    )


def _write(
    element: ElementTree.Element,
    ids: dict[str, str],
    grid: list[str],
    labels: dict[str, list[str]],
    *,
    in_definition: bool,
) -> str:
    """Write an element; grid lines and labels are put aside, to share one element of their class."""
    tag = element.tag.removeprefix(_SVG)
    if tag in _DROPPED_TAGS:
        return ""
    in_definition = in_definition or tag == "defs"
    attributes = _attributes(element, ids, digits=2 if in_definition else 0 if tag == "text" else 1)
    uses = tag == "g" and len(element) > 1 and all(child.tag == f"{_SVG}use" for child in element)
    if uses and len({child.get("style") for child in element}) == 1:
        attributes["style"] = _style(element[0].get("style", ""))
        for child in element:
            child.attrib.pop("style", None)
    body = html.escape((element.text or "").strip(), quote=False)
    body += "".join(_write(child, ids, grid, labels, in_definition=in_definition) for child in element)
    if tag in ("g", "defs") and not body:
        return ""
    if tag == "g" and not attributes:
        return body
    if tag == "path" and attributes.get("style") == "fill:none":
        return ""
    if tag == "path" and attributes.get("style") == GRID:
        grid.append(attributes["d"])
        return ""
    if in_definition:
        attributes.pop("style", None)  # whoever uses it says what it looks like
    name = _class(attributes.get("style", ""))
    if name:
        del attributes["style"]
    if name and tag != "text":
        attributes = {"class": name, **attributes}
    written = f"<{tag}" + "".join(f' {key}="{html.escape(value)}"' for key, value in attributes.items() if value)
    written += f">{body}</{tag}>" if body or tag == "text" else "/>"
    if name and tag == "text":
        labels.setdefault(name, []).append(written)
        return ""
    return written


def _class(style: str) -> str:
    """The class that stands for a style, with that of its colour where the style is known but for the colour."""
    if style in CLASSES:
        return CLASSES[style]
    roles = set(_COLOUR.findall(style))
    look = CLASSES.get(_COLOUR.sub("currentColor", style), "")
    return f"{look} {roles.pop()}" if look and len(roles) == 1 else ""


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
            kept[name] = _path(" ".join(value.split()), digits)
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


def _path(path: str, digits: int) -> str:
    """A path in few bytes: a line in steps on the grid of so many digits, anything else only rounded."""
    if not _LINE.fullmatch(path):
        return _COMMAND.sub(r"\1", _rounded(path, digits))
    points = [complex(*map(float, point.split())) for point in path.removeprefix("M ").split(" L ")]
    unit = 10**digits
    x, y = (
        [round(part * unit) for part in parts]
        for parts in zip(*((point.real, point.imag) for point in _straightened(points)), strict=True)
    )
    steps = [(b - a, d - c) for a, b, c, d in zip(x, x[1:], y, y[1:], strict=False)]
    written, last = f"M{_joined(x[0] / unit, y[0] / unit)}", ""
    for across, down in steps:
        command = "h" if not down else "v" if not across else "l"
        moved = {"h": (across,), "v": (down,), "l": (across, down)}[command]
        numbers = _joined(*(value / unit for value in moved))
        written += (command if command != last else "" if numbers[0] == "-" else " ") + numbers
        last = command
    return written


def _joined(*values: float) -> str:
    """Numbers of a path, without what its grammar can do without."""
    texts = [re.sub(r"^(-?)0\.", r"\1.", _short(value, 2)) for value in values]
    return "".join(text if text[0] == "-" or not place else f" {text}" for place, text in enumerate(texts))


def _straightened(points: list[complex]) -> list[complex]:
    """A line without the points that it passes close to anyway (Douglas & Peucker 1973)."""
    kept, pending = {0, len(points) - 1}, [(0, len(points) - 1)]
    while pending:
        first, last = pending.pop()
        chord = points[last] - points[first]
        farthest, distance = first, TOLERANCE
        for index in range(first + 1, last):
            offset = points[index] - points[first]
            share = (offset / chord).real if chord else 0.0  # the square of a tiny chord would be 0
            away = abs(offset - chord * min(max(share, 0.0), 1.0))
            if away > distance:
                farthest, distance = index, away
        if farthest != first:
            kept.add(farthest)
            pending += [(first, farthest), (farthest, last)]
    return [points[index] for index in sorted(kept)]


def _rounded(text: str, digits: int) -> str:
    return _NUMBER.sub(lambda match: _short(float(match[0]), digits), text)


def _short(value: float, digits: int) -> str:
    text = f"{value:.{digits}f}"
    text = text.rstrip("0").rstrip(".") if "." in text else text
    return "0" if text == "-0" else text
