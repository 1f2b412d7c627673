"""A refutation that fresh calls do not confirm: what is played then, and that it is never lost."""

from __future__ import annotations

import sys
from functools import partial

import numpy as np
import pytest

from auditdp import GaussianDP, PureDP, Verdict
from auditdp.adjacency import as_adjacency
from auditdp.evidence.game_evidence import play_game
from auditdp.evidence.request import GameOptions, withdrawn
from auditdp.mechanism.protocol import as_mechanism
from auditdp.numerics.streams import stream
from auditdp.record.budget import AuditBudget
from auditdp.record.results import Evidence
from auditdp.testing import LaplaceMechanism
from benchmarks.false_alarms_game import chain, shared_half

BITS = as_adjacency([(0.0, 1.0)])
CLAIM = PureDP(1.0)


def play(mechanism, claim=CLAIM, *, calls, seed=1, stop_when_refuted=False, **options):
    budget = AuditBudget.of(calls, stop_when_refuted=stop_when_refuted)
    chosen = GameOptions(alpha=0.05, budget=budget, **options)
    return play_game(
        as_mechanism(mechanism), claim, BITS, chosen, streams=partial(stream, seed)
    )


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


@pytest.mark.dear
@pytest.mark.parametrize("calls", [2_000, 400, 50_000])
@pytest.mark.parametrize("leak", [by_size, by_caller])
def test_a_leak_that_hides_from_single_calls_is_not_lost(leak, calls):
    found = play(leak, calls=calls)
    assert (found.verdict, found.unconfirmed) == (Verdict.INCONCLUSIVE, True)
    assert found.calls <= calls
    assert not found.details.confirmation.confirmed


@pytest.mark.dear
def test_calls_of_both_sizes_differ_by_a_leak_that_is_in_one_of_them(repeats):
    """The fresh game of several outputs has its own level, and says what the first one saw."""
    for seed in range(repeats(5, least=2)):
        found = play(by_size, calls=2_000, seed=seed)
        assert found.details.together.confirmed
        assert found.details.together.alpha == found.details.confirmation.alpha == 0.025
        assert found.statement.startswith(
            "outputs of one call are not as those of many"
        )
        for fresh in (found.details.confirmation, found.details.together):
            assert f"{np.exp(fresh.log_e_value):.3g}" in found.statement


def test_a_mechanism_that_behaves_whenever_it_is_confirmed_shows_no_difference():
    found = play(by_caller, calls=2_000)
    assert not found.details.together.confirmed


def test_calls_of_one_output_are_played_once():
    """A function of one output has no other way of being called."""
    calls = [0]

    def late(data, rng):
        calls[0] += 1
        return data + rng.laplace(scale=0.2 if calls[0] < 300 else 1.0)

    found = play(late, calls=1_000, trace=False)
    assert (found.verdict, found.unconfirmed) == (Verdict.INCONCLUSIVE, True)
    assert found.details.together is None


def test_a_finding_that_single_calls_confirm_is_played_no_other_way():
    found = play(LaplaceMechanism(0.5), calls=2_000)
    assert found.verdict is Verdict.VIOLATED
    assert (found.unconfirmed, found.details.together) == (False, None)


@pytest.mark.dear
@pytest.mark.statistical
@pytest.mark.parametrize(
    ("mechanism", "claim"), [(shared_half, GaussianDP(1.0)), (chain, GaussianDP(1.0))]
)
def test_outputs_that_depend_within_calls_are_no_violation(
    monkeypatch, repeats, mechanism, claim
):
    """Single runs keep the claim, so at most one game in forty is VIOLATED, although no look at independence is made.

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
    seen = [
        play(
            mechanism,
            claim,
            calls=4_000,
            seed=seed,
            trace=False,
            stop_when_refuted=True,
        )
        for seed in range(games)
    ]
    assert sum(found.verdict is Verdict.VIOLATED for found in seen) <= repeats.most(
        games, 0.025
    )
    refuted = [
        found
        for found in seen
        if found.details.refuted_at is not None
        and found.verdict is not Verdict.VIOLATED
    ]
    assert refuted
    assert all(found.unconfirmed for found in refuted)


def counting():
    """Noise that every hundredth call leaves out."""
    calls = [0]

    def count(data, rng):
        calls[0] += 1
        return data if calls[0] % 100 == 0 else data + rng.laplace()

    return count


def test_a_refutation_that_is_not_believed_is_kept():
    found = play(counting(), calls=8_000)
    assert (found.verdict, found.unconfirmed) == (Verdict.INCONCLUSIVE, True)


@pytest.mark.parametrize(
    ("verdict", "kept"),
    [
        (Verdict.VIOLATED, True),
        (Verdict.MISCALIBRATED, True),
        (Verdict.NOT_REFUTED, False),
    ],
)
@pytest.mark.parametrize("kind", ["game", "estimation", "one_run"])
def test_what_is_withdrawn_was_a_refutation_or_none(kind, verdict, kept):
    found = withdrawn(Evidence(kind, verdict, "seen"), "calls depend on each other")
    assert (found.verdict, found.unconfirmed) == (Verdict.INCONCLUSIVE, kept)
    assert withdrawn(found, "again").unconfirmed == kept
