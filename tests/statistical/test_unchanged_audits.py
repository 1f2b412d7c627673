"""Runs of unchanged audits with other seeds, compared as a run with a baseline.

Nothing is worse, whatever chance decides: every run of ten audits is compared with
every other one. Some are at an edge: outputs that are just few enough to be counted, an
estimate that is just shown, a control that is just refuted by a brief budget. Claims
that are tight and true are refuted with probability α, of which each audit has a tenth;
the seeds are fixed, and none of them is refuted.
"""

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
REAL = [(0.0, 1.0)]
CLAIM = PureDP(1.0)
ALPHA = 0.05
WEAK = "nearly too weak a control"


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


INPUTS = {"0": [0.0], "2": [2.0]}
LENGTHS = Rows(st.integers(0, 9), "add/remove")
AUDITS = {
    "a stated law": (Response(1.0), CLAIM, BIT, {"controls": [Response(3.0)]}),
    "a black box of two outputs": (
        flipped(1.0),
        CLAIM,
        BIT,
        {"controls": [flipped(3.0)]},
    ),
    "rare outputs": (geometric(1.0), CLAIM, BIT, {}),
    "nearly too many outputs": (geometric(0.125), PureDP(0.125), BIT, {}),
    "real numbers": (
        LaplaceMechanism(1.0),
        CLAIM,
        REAL,
        {"controls": [LaplaceMechanism(0.2)]},
    ),
    "a Gaussian claim": (GaussianMechanism(1.0), GaussianDP(1.0), REAL, {"calls": 500}),
    "a claim with δ": (
        LeakyResponse(1.0, 0.05),
        ApproxDP(1.0, 0.05),
        BIT,
        {"calls": 2_500},
    ),
    "nearly too noisy an estimate": (
        estimate,
        Unbiased(float, 0.1),
        None,
        {"inputs": INPUTS, "calls": 2_500},
    ),
    WEAK: (flipped(1.0), CLAIM, BIT, {"controls": [flipped(1.27)], "calls": 50_000}),
    "rows that are searched": (noisy_length, CLAIM, LENGTHS, {"calls": 2_500}),
}
AT_THE_EDGE = {
    "nearly too many outputs": {"evidence 'counting' is no longer gathered"},
    "nearly too noisy an estimate": {"EQUIVALENT in the baseline, NOT_REFUTED now"},
    WEAK: {
        "NOT_REFUTED in the baseline, INCONCLUSIVE now",
        "control 'flip' is no longer refuted",
    },
}
"""The differences by chance that occur in full."""


def ran(name, seed, audit):
    budget = Budget(2_000, is_limit=True) if name == WEAK else Budget(5_000)
    key = f"audits/audit_a.py::{name}"
    return run_audit(audit, Settings(ALPHA / len(AUDITS), budget, seed, key=key))


def compared(then, now):
    record = RunRecord(1, "complete", {}, {}, "", "", [], [now])
    baseline = {then.id: entry_of(then)}
    return differences(baseline, record, covered=lambda _: True, today=date(2026, 1, 1))


@pytest.mark.parametrize("name", AUDITS)
def test_an_unchanged_audit_is_never_worse(name, repeats):
    mechanism, claim, pairs, options = AUDITS[name]
    results = []
    for seed in range(repeats(20, least=2)):
        audit = Audit(mechanism, claim, *([pairs] if pairs else []), **options)
        results.append(ran(name, seed, audit))
    found = []
    for pair in permutations(results, 2):
        found += compared(*pair)
    kinds = Counter(difference.kind for difference in found)
    assert not set(kinds) & {*FINDINGS, *REGRESSIONS, Kind.CRASHED}, kinds
    if repeats.full:
        texts = set()
        for difference in found:
            if difference.kind is Kind.CHANCE:
                texts |= {*difference.text.partition(": ")[0].split("; ")}
        assert texts == AT_THE_EDGE.get(name, set())


def test_a_change_within_a_claim_is_a_drift(repeats):
    """Randomised response from ε = .2 to .95, of which 1-DP is true both times."""
    for seed in range(repeats(20, least=1)):
        results = []
        for k, epsilon in ((seed, 0.2), (seed + 99, 0.95)):
            audit = Audit(flipped(epsilon), CLAIM, BIT, calls=20_000)
            results.append(ran("a change", k, audit))
        then, now = results
        assert then.verdict is now.verdict is Verdict.NOT_REFUTED
        for found in (compared(then, now), compared(now, then)):
            assert [difference.kind for difference in found] == [Kind.DRIFT]
            assert "counting's α" in found[0].text


@pytest.mark.parametrize(
    "laws",
    [
        response(0.1),
        response(1.0),
        response(3.0),
        LAWS["geometric noise"],
        LAWS["equal laws"],
    ],
)
def test_two_runs_of_one_mechanism_hardly_ever_contradict_each_other(laws, repeats):
    """All of α is that of one audit, and the most telling of 2,000 runs is compared."""
    rng, runs, error = np.random.default_rng(3), 2_500, ALPHA * UNCERTAIN_SHARE
    entries = []
    for _ in range(repeats(2_000)):
        first = rng.multinomial(FIRST_RUNS, laws)
        counts = first + rng.multinomial(runs - FIRST_RUNS, laws)
        observed = SimpleNamespace(counts=counts, runs=runs)
        losses = _losses(observed, PAIR, CLAIM, error)
        event = told_apart(first, counts, PAIR, runs - FIRST_RUNS, error)
        entries.append(
            Entry(
                id="",
                verdict=Verdict.NOT_REFUTED,
                counted=losses.shown[::-1],
                told_apart=event,
            )
        )
    contradicted, compared = 0, entries[:200]
    for then in entries:
        contradicted += sum(bool(drift(then, now)) for now in compared)
    assert contradicted <= 1e-3 * len(entries) * len(compared), contradicted
