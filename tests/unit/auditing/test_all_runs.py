"""The calls that a user names bound all runs of a mechanism, whoever makes them: each run leaves a byte in a file."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

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
    """Counts adults, and its own runs, those of forked processes too."""

    def __init__(self, path: Path, scale: float) -> None:
        self.path, self.scale = path, scale

    @property
    def runs(self) -> int:
        """Runs so far."""
        return self.path.stat().st_size

    def adults(self, ages: Any, noise: float) -> int:
        """Return how many there are, with noise."""
        with self.path.open("ab") as file:
            os.write(file.fileno(), b".")
        return round(float(sum(age >= 18 for age in ages)) + noise)

    def service(self, ages: Any, rng: np.random.Generator) -> str:
        """Return the answer of a service."""
        return json.dumps(
            {"adults": self.adults(ages, rng.laplace(scale=self.scale)), "status": "ok"}
        )

    def elsewhere(self, ages: Any) -> str:
        """Return the same, drawn from elsewhere."""
        return json.dumps(
            {
                "adults": self.adults(ages, np.random.laplace(scale=self.scale)),  # noqa: NPY002
                "status": "ok",
            }
        )


@pytest.fixture
def counted(tmp_path: Path) -> Any:
    """Return what makes mechanisms that count their runs."""
    return lambda scale: Counted(tmp_path / "runs", scale)


@pytest.mark.parametrize(
    "calls", [120, 500, 2_000, pytest.param(6_000, marks=pytest.mark.full)]
)
@pytest.mark.parametrize("scale", [0.25, 1.5])
@pytest.mark.parametrize("seeded", [True, False])
def test_no_more_runs_are_made_than_calls_are_named(
    counted: Any, calls: int, scale: float, *, seeded: bool
) -> None:
    made = counted(scale)
    found = check(
        made.service if seeded else unseeded(made.elsewhere),
        PureDP(1.0),
        AGES,
        calls=calls,
        seed=3,
    )
    assert made.runs == found.calls <= calls
    if calls >= 500 and seeded:
        assert (found.verdict is Verdict.VIOLATED) is (scale < 1)
    if scale > 1:
        assert found.verdict is not Verdict.VIOLATED


def test_a_finding_is_shown_on_a_smaller_pair_with_the_calls_that_are_left(
    counted: Any,
) -> None:
    made = counted(0.25)
    found = check(made.service, PureDP(1.0), AGES, calls=20_000, seed=3)
    (game,) = details(found.evidence, GameDetails)
    assert game.smallest is not None
    assert made.runs == found.calls <= 20_000


def test_an_assertion_makes_no_more_either(counted: Any) -> None:
    made = counted(0.25)
    with pytest.raises(PrivacyViolation):
        assert_private(made.service, PureDP(1.0), AGES, calls=1_500)
    assert made.runs <= 1_500


@pytest.mark.parametrize("scale", [0.25, 1.5])
def test_nor_does_the_audit_of_a_trainer(counted: Any, scale: float) -> None:
    made = counted(scale)

    def train(ages: Any, rng: np.random.Generator) -> float:
        return float(made.adults(ages, rng.laplace(scale=scale)))

    ages = [17, 20, 30, 40]
    found = audit_training(train, PureDP(1.0), (ages, ages[:-1]), calls=300)
    assert (found.verdict is Verdict.VIOLATED) is (scale < 1)
    assert made.runs == found.calls <= 300
