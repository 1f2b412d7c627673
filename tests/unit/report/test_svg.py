from __future__ import annotations

import numpy as np

from auditdp.report.canvas import thin, thin_evenly
from auditdp.report.svg import COLOURS, _straightened, inline

HEAD = '<svg xmlns="http://www.w3.org/2000/svg" xmlns:xlink="http://www.w3.org/1999/xlink" viewBox="0 0 9 9">'


def test_only_ids_that_are_used_remain_and_carry_the_prefix():
    svg = f'{HEAD}<g id="a"><defs><path id="m" d="M 0 0 L 1 1"/></defs><use xlink:href="#m" x="1.234" y="2"/></g></svg>'
    assert inline(svg, prefix="p", label='say "<&>"') == (
        '<svg class="plot" role="img" aria-label="say &quot;&lt;&amp;&gt;&quot;" viewBox="0 0 9 9">'
        '<defs><path id="p0" d="M0 0L1 1"/></defs><use href="#p0" x="1.2" y="2"/></svg>'
    )


def test_colours_become_roles_and_defaults_are_dropped():
    style = f"font-size: 11px; font-family: 'X', sans-serif; text-anchor: start; fill: {COLOURS['violated']}"
    svg = f'{HEAD}<text style="{style}" x="1" y="2" transform="rotate(-0 1 2)">a &lt; b</text></svg>'
    assert '<text style="fill:var(--violated)" x="1" y="2">a &lt; b</text>' in inline(svg, prefix="p", label="")


def test_a_line_keeps_its_shape_with_fewer_points():
    x = np.linspace(0.0, 400.0, 200)
    y = 100 * np.sin(x / 60)
    path = "M " + " L ".join(f"{a} {b}" for a, b in zip(x, y, strict=True))
    kept = np.array([point.split() for point in _straightened(path).removeprefix("M ").split(" L ")], dtype=float)
    assert len(kept) < 70
    assert np.abs(np.interp(x, kept[:, 0], kept[:, 1]) - y).max() < 0.4
    np.testing.assert_allclose(kept[[0, -1]], [[x[0], y[0]], [x[-1], y[-1]]])


def test_curves_and_closed_shapes_are_left_as_they_are():
    for path in ("M 0 0 L 1 0 L 2 0 L 3 0 z", "M 0 0 C 1 1 2 2 3 3", "M 0 0 L 1 1 M 2 2 L 3 3"):
        assert _straightened(path) == path


def test_a_thinned_path_keeps_its_ends_and_the_refutation():
    path = [(float(calls), 0.001 * calls) for calls in range(1, 5000)]
    kept = thin(path, keep=1234.0)
    assert len(kept) <= 62
    assert {path[0], path[-1], (1234.0, 1.234)} <= set(kept)
    assert kept == sorted(kept)


def test_thinning_evenly_keeps_both_ends():
    assert thin_evenly(list(range(1001)), 5) == [0, 250, 500, 750, 1000]
    assert thin_evenly([1, 2, 3], 5) == [1, 2, 3]
