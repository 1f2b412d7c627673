"""A forecaster that fails makes no bets; the audit goes on, and names the error."""

import numpy as np
import pytest

from auditdp import PureDP, Verdict, check
from auditdp.betting.forecasters.experts import ViewExperts


class Failing:
    """A forecaster with a fault of its own at one place."""

    name = "failing"

    def __init__(self, place):
        self.place = place

    def __deepcopy__(self, memo):
        self._fail("copy")
        return Failing(self.place)

    def _fail(self, place):
        if place == self.place:
            raise ZeroDivisionError(f"a fault in {place}")

    def fit(self, outputs, labels):
        self._fail("fit")

    def log_odds(self, outputs):
        self._fail("odds")
        return np.zeros(1 if self.place == "shape" else len(outputs))

    @property
    def calibrated(self):
        """Fail at the growth of a pair, which depends on calibration."""
        self._fail("growth")
        return False


class NaNPlayer:
    """A forecaster whose odds are NaN, as a player of its own."""

    name = "undefined"

    def player(self, mechanism, pair):
        player = ViewExperts().player(mechanism, pair)
        forecast = player.forecast

        def undefined(batch):
            found = forecast(batch)
            for each in found:
                each.log_odds[...] = np.nan
            return found

        player.forecast = undefined
        return player


def leaky(x, rng):
    """Add a third of the noise that 1-DP needs."""
    return x + rng.laplace(scale=0.3)


def checked(mechanism, forecasters, pairs=((0.0, 1.0),)):
    return check(
        mechanism, PureDP(1.0), [*pairs], calls=2_000, seed=1, forecasters=forecasters
    )


@pytest.mark.parametrize(
    ("place", "first"),
    [
        ("copy", True),
        ("fit", False),
        ("odds", True),
        ("odds", False),
        ("shape", True),
        ("growth", False),
    ],
)
def test_the_other_forecasters_still_find_the_violation(place, first):
    forecasters = [Failing(place), ViewExperts()]
    if not first:
        forecasters.reverse()
    found = checked(leaky, forecasters, [(0.0, 1.0), (1.0, 2.0)])
    assert found.verdict is Verdict.VIOLATED
    (notice,) = (text for text in found.notices if "failing" in text)
    error = f"ZeroDivisionError: a fault in {place}"
    assert ("AuditError" if place == "shape" else error) in notice


@pytest.mark.parametrize(
    ("failing", "error"),
    [
        (Failing("odds"), "ZeroDivisionError"),
        (NaNPlayer(), "NaN"),
    ],
)
def test_without_other_forecasters_the_audit_is_inconclusive(failing, error):
    found = checked(leaky, [failing])
    assert found.verdict is Verdict.INCONCLUSIVE
    assert error in found.summary
