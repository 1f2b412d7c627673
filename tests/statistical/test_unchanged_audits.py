"""Runs of the same audits with other seeds, compared as a run with a baseline: nothing is worse, whatever chance decides.

Each of ten audits that nobody changed is run with 20 seeds, and every run is compared with every other one. Some are at an
edge: outputs that are just few enough to be counted or not, an estimate that is just shown or not, a control that just is
refuted or not by the calls that a brief budget leaves. Claims that are tight and true are refuted with probability α, of
which each audit has a tenth; the seeds are fixed, and none of them is.
"""

from __future__ import annotations

from collections import Counter
from datetime import date
from itertools import permutations
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import strategies as st

from auditdp import AnyValues, ApproxDP, Audit, GaussianDP, PureDP, Rows, Unbiased
from auditdp.auditing.gathering import UNCERTAIN_SHARE, Settings
from auditdp.auditing.judging import run_audit
from auditdp.evidence.counted_events import told_apart
from auditdp.evidence.counting import FIRST_RUNS, _losses
from auditdp.record.baseline_entries import Entry, entry_of
from auditdp.record.budget import Budget
from auditdp.record.differences import FINDINGS, REGRESSIONS, Kind, differences, drift
from auditdp.record.results import RunRecord, Verdict
from auditdp.testing import GaussianMechanism, LaplaceMechanism, LeakyResponse, Response
from benchmarks.false_alarms_counting import LAWS, PAIR, response

pytestmark = [pytest.mark.dear, pytest.mark.statistical]

BIT = AnyValues((0, 1))
ALPHA = 0.05


def flipped(epsilon):
    def flip(data, size, *, rng):
        return np.where(rng.random(size) < 1 / (1 + np.exp(-epsilon)), data, 1 - data)

    return flip


def geometric(epsilon):
    def noisy(data, size, *, rng):
        chance = 1 - np.exp(-epsilon)
        return data + rng.geometric(chance, size) - rng.geometric(chance, size)

    return noisy


def estimate(data, size, *, rng):
    return data + rng.normal(size=size)


def noisy_length(rows, rng):
    return len(rows) + rng.laplace(scale=1.0)


AUDITS = {
    "a stated law": (
        lambda: Audit(Response(1.0), PureDP(1.0), BIT, controls=[Response(3.0)]),
        set(),
    ),
    "a black box of two outputs": (
        lambda: Audit(flipped(1.0), PureDP(1.0), BIT, controls=[flipped(3.0)]),
        set(),
    ),
    "rare outputs": (lambda: Audit(geometric(1.0), PureDP(1.0), BIT), set()),
    "nearly too many outputs": (
        lambda: Audit(geometric(0.125), PureDP(0.125), BIT),
        {"evidence 'counting' is no longer gathered"},
    ),
    "real numbers": (
        lambda: Audit(
            LaplaceMechanism(1.0),
            PureDP(1.0),
            [(0.0, 1.0)],
            controls=[LaplaceMechanism(0.2)],
        ),
        set(),
    ),
    "a Gaussian claim": (
        lambda: Audit(GaussianMechanism(1.0), GaussianDP(1.0), [(0.0, 1.0)], calls=500),
        set(),
    ),
    "a claim with δ": (
        lambda: Audit(LeakyResponse(1.0, 0.05), ApproxDP(1.0, 0.05), BIT, calls=2_500),
        set(),
    ),
    "nearly too noisy an estimate": (
        lambda: Audit(
            estimate, Unbiased(float, 0.1), inputs={"0": [0.0], "2": [2.0]}, calls=2_500
        ),
        {"EQUIVALENT in the baseline, NOT_REFUTED now"},
    ),
    "nearly too weak a control": (
        lambda: Audit(
            flipped(1.0), PureDP(1.0), BIT, controls=[flipped(1.27)], calls=50_000
        ),
        {
            "NOT_REFUTED in the baseline, INCONCLUSIVE now",
            "control 'flip' is no longer refuted",
        },
    ),
    "rows that are searched": (
        lambda: Audit(
            noisy_length,
            PureDP(1.0),
            Rows(st.integers(0, 9), "add/remove"),
            calls=2_500,
        ),
        set(),
    ),
}


def ran(name, seed, *, audit=None):
    brief = name == "nearly too weak a control"
    settings = Settings(
        ALPHA / len(AUDITS),
        Budget(2_000 if brief else 5_000, is_limit=brief),
        seed,
        key=f"audits/audit_a.py::{name}",
    )
    return run_audit(audit or AUDITS[name][0](), settings)


def compared(then, now):
    record = RunRecord(1, "complete", {}, {}, "", "", [], [now])
    return differences(
        {then.id: entry_of(then)},
        record,
        covered=lambda _: True,
        today=date(2026, 1, 1),
    )


@pytest.mark.parametrize("name", AUDITS)
def test_an_unchanged_audit_is_never_worse(name, repeats):
    results = [ran(name, seed) for seed in range(repeats(20, least=2))]
    found = [
        difference
        for pair in permutations(results, 2)
        for difference in compared(*pair)
    ]
    kinds = Counter(difference.kind for difference in found)
    assert not set(kinds) & {*FINDINGS, *REGRESSIONS, Kind.CRASHED}, kinds
    if repeats.full:  # what is said to be at an edge is there
        texts = {
            part
            for d in found
            if d.kind is Kind.CHANCE
            for part in d.text.partition(": ")[0].split("; ")
        }
        assert texts == AUDITS[name][1]


def test_a_change_within_a_claim_is_seen(repeats):
    """Randomised response from ε = .2 to .95, of which 1-DP is true both times."""
    for seed in range(repeats(20, least=1)):
        then, now = (
            ran("a change", k, audit=Audit(flipped(e), PureDP(1.0), BIT, calls=20_000))
            for k, e in ((seed, 0.2), (seed + 99, 0.95))
        )
        assert then.verdict is now.verdict is Verdict.NOT_REFUTED
        for found in (compared(then, now), compared(now, then)):
            assert [difference.kind for difference in found] == [Kind.DRIFT]
            assert "counting's α" in found[0].text


@pytest.mark.parametrize(
    "name", ["ε = .1", "ε = 1", "ε = 3", "geometric noise", "equal laws"]
)
def test_two_runs_of_one_mechanism_hardly_ever_contradict_each_other(name, repeats):
    """Not where all of α is that of one audit, and the most telling of 2,000 runs meets the tightest."""
    laws = (
        LAWS[name]
        if name in LAWS
        else response(float(name.removeprefix("ε = ").replace(".1", "0.1")))
    )
    rng, runs, error = np.random.default_rng(3), 2_500, ALPHA * UNCERTAIN_SHARE
    entries = []
    for _ in range(repeats(2_000)):
        first, later = (
            rng.multinomial(FIRST_RUNS, laws),
            rng.multinomial(runs - FIRST_RUNS, laws),
        )
        losses = _losses(
            SimpleNamespace(counts=first + later, runs=runs), PAIR, PureDP(1.0), error
        )
        event = told_apart(first, first + later, PAIR, runs - FIRST_RUNS, error)
        entries.append(
            Entry(
                id="",
                verdict=Verdict.NOT_REFUTED,
                counted=losses.shown[::-1],
                told_apart=event,
            )
        )
    contradicted = sum(
        bool(drift(then, now)) for then in entries for now in entries[:200]
    )
    assert contradicted <= 1e-3 * len(entries) * min(len(entries), 200), (
        f"{contradicted} of {len(entries):,} · 200"
    )
