"""A forecaster that fails makes no bets from then on; the audit goes on, and names the error."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from auditdp import PureDP, Verdict, check
from auditdp.betting.forecasters.experts import ViewExperts
from auditdp.errors import AuditError
from auditdp.mechanism.protocol import Array
from auditdp.numerics.arrays import Floats

PLACES = ("copy", "fit", "odds", "shape", "growth")


class Failing:
    """A forecaster with a fault of its own at one place."""

    name = "failing"

    def __init__(self, place: str) -> None:
        self.place = place

    def __deepcopy__(self, memo: Any) -> Failing:
        self._fail("copy")
        return Failing(self.place)

    def _fail(self, place: str) -> None:
        if place == self.place:
            raise ZeroDivisionError(f"a fault in {place}")

    def fit(self, outputs: Array, labels: Array) -> None:
        """Learn nothing."""
        self._fail("fit")

    def log_odds(self, outputs: Array) -> Floats:
        """Return odds that say nothing."""
        self._fail("odds")
        return np.zeros(1 if self.place == "shape" else len(outputs))

    @property
    def calibrated(self) -> bool:
        """Whether its odds are to be believed, which is what the growth of a pair depends on."""
        self._fail("growth")
        return False


class NaNPlayer:
    """A forecaster whose odds are NaN, as a player of its own."""

    name = "undefined"

    def player(self, mechanism: Any, pair: Any) -> Any:
        """Return a player of experts that sees NaN only."""
        made = ViewExperts().player(mechanism, pair)
        forecast = made.forecast

        def undefined(batch: Any) -> Any:
            found = forecast(batch)
            for each in found:
                each.log_odds[...] = np.nan
            return found

        made.forecast = undefined  # type: ignore[method-assign]
        return made


def leaky(x: float, rng: np.random.Generator) -> float:
    """Add a third of the noise that 1-DP needs."""
    return x + float(rng.laplace(scale=0.3))


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("first", [True, False])
def test_the_others_find_what_they_find_without_it(place: str, *, first: bool) -> None:
    both = [Failing(place), ViewExperts()]
    pairs = [(0.0, 1.0), (1.0, 2.0)]
    found = check(
        leaky,
        PureDP(1.0),
        pairs,
        calls=2_000,
        seed=1,
        forecasters=both if first else both[::-1],
    )
    assert found.verdict is Verdict.VIOLATED
    (notice,) = (text for text in found.notices if "failing" in text)
    error = (
        "AuditError" if place == "shape" else f"ZeroDivisionError: a fault in {place}"
    )
    assert error in notice


@pytest.mark.parametrize(
    "failing", [Failing("odds"), NaNPlayer()], ids=["raises", "NaN"]
)
def test_where_none_is_left_nothing_was_tested(failing: Any) -> None:
    found = check(
        leaky, PureDP(1.0), [(0.0, 1.0)], calls=2_000, seed=1, forecasters=[failing]
    )
    assert found.verdict is Verdict.INCONCLUSIVE
    assert (
        "ZeroDivisionError" if isinstance(failing, Failing) else "NaN"
    ) in found.summary


def test_what_the_mechanism_raises_is_an_error() -> None:
    def broken(x: float, rng: np.random.Generator) -> float:
        raise KeyError(x)

    with pytest.raises(AuditError):
        check(
            broken,
            PureDP(1.0),
            [(0.0, 1.0)],
            calls=2_000,
            forecasters=[Failing("odds")],
        )
