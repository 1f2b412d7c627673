"""CPU seconds by phase."""

from itertools import count

import pytest

from auditdp import PureDP, check
from auditdp.mechanism.calls.phases import phase, phases


def test_seconds_count_to_the_innermost_phase_or_to_one_that_is_whole():
    """The clock shows 5 at the start, and a second more each time that it is read."""
    clock = count(5)

    @phase("search")
    def search():
        with phase("game"):
            pass

    search()
    with phases(lambda: float(next(clock))) as spent:
        search()
        with phase("controls", whole=True):
            search()
    assert spent.seconds == {"other": 7.0, "search": 2.0, "game": 1.0, "controls": 1.0}


def test_the_phases_of_an_audit_have_all_its_seconds():
    def noisy(value, rng):
        return value + rng.laplace()

    def broken(value, rng):
        return value

    result = check(noisy, PureDP(1.0), [(0, 1)], calls=500, controls=[broken], seed=1)
    assert {"trace", "game", "controls"} <= result.cpu_by_phase.keys()
    assert sum(result.cpu_by_phase.values()) == pytest.approx(result.cpu_seconds)
    (control,) = result.controls
    assert 0 < control.cpu_seconds <= result.cpu_by_phase["controls"]
