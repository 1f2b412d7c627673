"""A refutation that fresh calls do not confirm is never lost."""

import sys
from functools import partial

import numpy as np
import pytest

from auditdp import GaussianDP, PureDP
from auditdp.evidence.request import withdrawn
from auditdp.numerics.streams import stream
from auditdp.record.results import Evidence
from benchmarks.false_alarms_game import chain, shared_half
from tests.unit.evidence.toys import (
    INCONCLUSIVE,
    NOT_REFUTED,
    VIOLATED,
    played,
)


def play(mechanism, claim=PureDP(1.0), *, calls=2_000, seed=1, **options):  # noqa: B008
    streams = partial(stream, seed)
    return played(mechanism, claim, [(0.0, 1.0)], calls, streams=streams, **options)


def by_size(data, size, *, rng):
    """Noise that is private in calls of one output, and a fifth of it in others."""
    scale = 1.0 if size == 1 else 0.2
    return data + rng.laplace(scale=scale, size=size)


def by_caller(data, size, *, rng):
    """The same, by whether a confirmation is on the stack."""
    frame = sys._getframe()
    callers = set()
    while frame is not None:
        callers.add(frame.f_code.co_name)
        frame = frame.f_back
    scale = 1.0 if "confirm" in callers else 0.2
    return data + rng.laplace(scale=scale, size=size)


class Late:
    """One output a call, with too little noise before call 300.

    There is no other way to call it.
    """

    def __init__(self):
        self.calls = 0

    def __call__(self, data, rng):
        self.calls += 1
        return data + rng.laplace(scale=0.2 if self.calls < 300 else 1.0)


class Hundredth:
    """Noise that every hundredth call leaves out."""

    def __init__(self):
        self.calls = 0

    def __call__(self, data, rng):
        self.calls += 1
        return data if self.calls % 100 == 0 else data + rng.laplace()


@pytest.mark.parametrize(
    ("mechanism", "calls", "together"),
    [
        (by_size, 2_000, True),
        (by_caller, 2_000, False),
        (Late(), 1_000, None),
        (Hundredth(), 8_000, None),
    ],
)
def test_an_unconfirmed_refutation_is_inconclusive(mechanism, calls, together):
    """The fresh game of several outputs confirms ``by_size`` alone."""
    found = play(mechanism, calls=calls, trace=False)
    assert (found.verdict, found.unconfirmed) == (INCONCLUSIVE, True)
    assert found.calls <= calls
    if together is not None:
        assert not found.details.confirmation.confirmed
        assert found.details.together.confirmed is together
    elif calls == 1_000:
        assert found.details.together is None


@pytest.mark.dear
def test_calls_of_one_output_that_differ_from_others_are_stated(repeats):
    """The game of several outputs has its own level.

    The statement has both e-values.
    """
    for seed in range(repeats(5, least=1)):
        found = play(by_size, seed=seed)
        games = found.details.confirmation, found.details.together
        assert games[1].confirmed
        assert (
            "outputs of one call differ from outputs of many calls" in found.statement
        )
        for fresh in games:
            assert fresh.alpha == 0.025
            assert f"{np.exp(fresh.log_e_value):.3g}" in found.statement


@pytest.mark.dear
@pytest.mark.statistical
@pytest.mark.parametrize("mechanism", [shared_half, chain])
def test_outputs_that_depend_within_calls_are_no_violation(
    monkeypatch, repeats, mechanism
):
    """Single runs keep the claim, and nothing tests independence.

    Each confirmation errs with probability at most 0.025.
    """
    for check_name in ("check_seeded", "check_batch"):
        monkeypatch.setattr(
            f"auditdp.mechanism.calls.independence.{check_name}",
            lambda *args, **options: None,
        )
    monkeypatch.setattr(
        "auditdp.evidence.game_evidence.believed", lambda found, *args, **options: found
    )
    games = repeats(12, least=3)
    options = {"calls": 4_000, "trace": False, "stop_when_refuted": True}
    found = [
        play(mechanism, GaussianDP(1.0), seed=seed, **options) for seed in range(games)
    ]
    violated = [each for each in found if each.verdict is VIOLATED]

    assert len(violated) <= repeats.most(games, 0.025)
    refuted = [each for each in found if each.details.refuted_at is not None]
    assert len(refuted) > len(violated)
    assert all(each.unconfirmed for each in refuted if each not in violated)


@pytest.mark.parametrize(
    ("verdict", "unconfirmed"),
    [(VIOLATED, True), (NOT_REFUTED, False)],
)
def test_withdrawn_evidence_remembers_whether_it_was_a_refutation(verdict, unconfirmed):
    found = withdrawn(Evidence("game", verdict, "seen"), "calls depend on each other")
    assert (found.verdict, found.unconfirmed) == (INCONCLUSIVE, unconfirmed)
    assert withdrawn(found, "again").unconfirmed == unconfirmed
