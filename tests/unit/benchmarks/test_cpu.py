"""Shares of phases in the CPU time of a run."""

from benchmarks.cpu import MOST, too_large


def test_a_phase_with_more_than_its_share_is_named():
    assert too_large(dict(MOST)) == []
    (found,) = too_large({**MOST, "controls": MOST["controls"] + 0.1, "game": 1.0})
    assert found.startswith("controls: ")
