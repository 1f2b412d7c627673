"""The calls that a user names bound all runs of a mechanism, whoever makes them: each run leaves a byte in a file."""

import json
import os

import hypothesis.strategies as st
import numpy as np
import pytest

from auditdp import (
    PureDP,
    Rows,
    Verdict,
    assert_private,
    audit_training,
    check,
    unseeded,
)
from auditdp.errors import PrivacyViolation
from auditdp.record.details import GameDetails
from auditdp.record.results import details

AGES = Rows(st.integers(0, 120), change="add/remove")


class Counted:
    """A noisy number of adults, which counts its runs, those of forked processes too."""

    def __init__(self, path, scale):
        self.path, self.scale = path, scale

    @property
    def runs(self):
        return self.path.stat().st_size

    def adults(self, ages, rng):
        with self.path.open("ab") as file:
            os.write(file.fileno(), b".")
        adults = sum(age >= 18 for age in ages)
        return round(adults + rng.laplace(scale=self.scale))

    def service(self, ages, rng):
        return json.dumps({"adults": self.adults(ages, rng), "status": "ok"})

    def unseeded(self, ages):
        return self.service(ages, np.random)


@pytest.fixture
def counted(tmp_path):
    return lambda scale: Counted(tmp_path / "runs", scale)


BROKEN, PRIVATE = 0.25, 1.5
full = pytest.mark.full


@pytest.mark.parametrize(
    ("calls", "scale", "seeded"),
    [
        (120, BROKEN, True),
        (120, PRIVATE, False),
        (500, BROKEN, True),
        (500, PRIVATE, True),
        (500, BROKEN, False),
        pytest.param(2_000, BROKEN, True, marks=full),
        pytest.param(2_000, PRIVATE, True, marks=full),
        pytest.param(2_000, BROKEN, False, marks=full),
        pytest.param(6_000, PRIVATE, False, marks=full),
    ],
)
def test_the_named_calls_bound_the_runs_of_a_check(counted, calls, scale, seeded):
    made = counted(scale)
    mechanism = made.service if seeded else unseeded(made.unseeded)
    found = check(mechanism, PureDP(1.0), AGES, calls=calls, seed=3)
    assert made.runs == found.calls <= calls
    if scale == PRIVATE:
        assert found.verdict is not Verdict.VIOLATED
    elif calls >= 500 and seeded:
        assert found.verdict is Verdict.VIOLATED


def test_a_finding_is_shown_on_a_smaller_pair_with_the_calls_that_are_left(counted):
    made = counted(BROKEN)
    found = check(made.service, PureDP(1.0), AGES, calls=6_000, seed=3)
    (game,) = details(found.evidence, GameDetails)
    assert game.smallest is not None
    assert made.runs == found.calls <= 6_000


def test_the_named_calls_bound_the_runs_of_an_assertion(counted):
    made = counted(BROKEN)
    with pytest.raises(PrivacyViolation):
        assert_private(made.service, PureDP(1.0), AGES, calls=1_500)
    assert made.runs <= 1_500


@pytest.mark.parametrize("scale", [BROKEN, PRIVATE])
def test_the_named_calls_bound_the_runs_of_a_trainer(counted, scale):
    made, ages = counted(scale), [17, 20, 30, 40]

    def train(data, rng):
        return float(made.adults(data, rng))

    found = audit_training(train, PureDP(1.0), (ages, ages[:-1]), calls=300)
    assert (found.verdict is Verdict.VIOLATED) is (scale == BROKEN)
    assert made.runs == found.calls <= 300
