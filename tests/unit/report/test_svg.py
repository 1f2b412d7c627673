from __future__ import annotations

import re
from itertools import pairwise

import numpy as np
from hypothesis import example, given
from hypothesis import strategies as st

from auditdp.report.canvas import thin, thin_evenly
from auditdp.report.svg import CLASSES, COLOURS, TOLERANCE, _path, _straightened, inline, style_sheet

HEAD = '<svg xmlns="http://www.w3.org/2000/svg" xmlns:xlink="http://www.w3.org/1999/xlink" viewBox="0 0 9 9">'


def test_only_ids_that_are_used_remain_and_carry_the_prefix():
    svg = f'{HEAD}<g id="a"><defs><path id="m" d="M 0 0 L 1 1"/></defs><use xlink:href="#m" x="1.234" y="2"/></g></svg>'
    assert inline(svg, prefix="p", label='say "<&>"') == (
        '<svg class="plot" role="img" aria-label="say &quot;&lt;&amp;&gt;&quot;" viewBox="0 0 9 9">'
        '<defs><path id="p0" d="M0 0l1 1"/></defs><use href="#p0" x="1.2" y="2"/></svg>'
    )


def test_colours_become_roles_and_defaults_are_dropped():
    style = f"font-size: 11px; font-family: 'X', sans-serif; text-anchor: start; fill: {COLOURS['violated']}"
    svg = f'{HEAD}<text style="{style}" x="1" y="2" transform="rotate(-0 1 2)">a &lt; b</text></svg>'
    assert '<g class="f violated"><text x="1" y="2">a &lt; b</text></g>' in inline(svg, prefix="p", label="")
    other = svg.replace("text-anchor: start", "text-anchor: end")
    style = "text-anchor:end;fill:var(--violated)"
    assert f'<text style="{style}" x="1" y="2">a &lt; b</text>' in inline(other, prefix="p", label="")


def test_every_class_of_a_plot_has_a_rule():
    colour = COLOURS["certified"]
    for style, name in CLASSES.items():
        style = style.replace("currentColor", colour)
        svg = inline(f'{HEAD}<path style="{style}" d="M 1 1 L 2 2"/></svg>', prefix="p", label="")
        assert f'class="{name}' in svg
        assert (f'class="{name} certified"' in svg) == (colour in style)
        assert f".plot .{name} {{" in style_sheet()


def test_grid_lines_and_labels_share_an_element_each():
    grid, label = f"stroke: {COLOURS['rule']}; fill: none", f"text-anchor: middle; fill: {COLOURS['soft']}"
    lines = "".join(f'<path style="fill: none; {grid[:15]}; stroke-width: 0.7" d="M {k} 0 L {k} 5"/>' for k in (1, 200))
    texts = "".join(f'<text style="{label}" x="{k}.4" y="100">{k}</text>' for k in (1, 200))
    assert inline(f"{HEAD}{lines}{texts}</svg>", prefix="p", label="").endswith(
        '<path class="g" d="M1 0v5M200 0v5"/>'
        '<g class="x"><text x="1" y="100">1</text><text x="200" y="100">200</text></g></svg>'
    )


def test_a_line_keeps_its_shape_with_fewer_points():
    x = np.linspace(0.0, 400.0, 200)
    y = 100 * np.sin(x / 60)
    line = [complex(a, b) for a, b in zip(x, y, strict=True)]
    kept = np.array([(point.real, point.imag) for point in _straightened(line)])
    assert len(kept) < 70
    assert np.abs(np.interp(x, kept[:, 0], kept[:, 1]) - y).max() < 0.8
    np.testing.assert_allclose(kept[[0, -1]], [[x[0], y[0]], [x[-1], y[-1]]])


def points(path):
    """The points of a path of M, l, h and v, by the grammar of SVG."""
    at, found = [0.0, 0.0], []
    for command, numbers in re.findall(r"([Mlhv])([^Mlhv]*)", path):
        values = [float(number) for number in re.findall(r"-?(?:\d+\.?\d*|\.\d+)", numbers)]
        width = 1 if command in "hv" else 2
        for place in range(0, len(values), width):
            step = {"h": (values[place], 0), "v": (0, values[place])}.get(command, values[place : place + 2])
            at = list(step) if command == "M" else [a + b for a, b in zip(at, step, strict=True)]
            found.append(tuple(at))
    return found


@given(
    st.lists(st.tuples(st.floats(-999, 999), st.floats(-999, 999)), min_size=2, max_size=30),
    st.sampled_from([0, 1, 2]),
)
@example([(0.0, 4.8e-185), (0.0, 0.0), (0.0, 0.0)], 0)
@example([(0.0, 5e-324), (900.0, -900.0), (0.0, 0.0)], 2)
def test_a_written_line_ends_where_it_should_and_passes_close_to_every_point(line, digits):
    written = points(_path("M " + " L ".join(f"{x!r} {y!r}" for x, y in line), digits))
    half = 0.5 * 10**-digits + 1e-6
    np.testing.assert_allclose(written[0], line[0], atol=half)
    np.testing.assert_allclose(written[-1], line[-1], atol=half)
    for x, y in line:
        away = min(_distance(complex(x, y), complex(*a), complex(*b)) for a, b in pairwise(written))
        assert away <= TOLERANCE + 2 * half


def _distance(point, start, end):
    """From a point to a straight piece."""
    along = end - start
    share = ((point - start) * along.conjugate()).real / abs(along) ** 2 if along else 0.0
    return abs(point - start - along * min(max(share, 0.0), 1.0))


def test_curves_and_closed_shapes_keep_their_commands():
    assert _path("M 0 0 L 1 0 L 2 0 L 3 0 z", 1) == "M0 0L1 0L2 0L3 0z"
    assert _path("M 0 0 C 1 1 2 2 3 3", 1) == "M0 0C1 1 2 2 3 3"
    assert _path("M 0 0 L 1 1 M 2 2 L 3 3", 1) == "M0 0L1 1M2 2L3 3"
    assert _path("M 0 0 L 0.5 -0.5 L 5 -0.5 L 5 7", 1) == "M0 0l.5-.5h4.5v7.5"


def test_a_thinned_path_keeps_its_ends_and_the_refutation():
    path = [(float(calls), 0.001 * calls) for calls in range(1, 5000)]
    kept = thin(path, keep=1234.0)
    assert len(kept) <= 62
    assert {path[0], path[-1], (1234.0, 1.234)} <= set(kept)
    assert kept == sorted(kept)


def test_thinning_evenly_keeps_both_ends():
    assert thin_evenly(list(range(1001)), 5) == [0, 250, 500, 750, 1000]
    assert thin_evenly([1, 2, 3], 5) == [1, 2, 3]
