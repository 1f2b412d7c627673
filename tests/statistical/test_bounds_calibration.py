"""Certified bounds: how often they refute true and tight claims, and their power.

If the true size is alpha itself, more repetitions than are allowed refute with
probability at most 1e-6.
"""

import numpy as np
import pytest

from auditdp.bounds import from_outputs, from_scores, thresholds
from auditdp.numerics.streams import stream
from benchmarks.false_alarms_bounds import ALPHA, FALSE_ALARMS

REPEATS = 2_000
ERROR = 1e-6
SIZES = dict.fromkeys(
    (
        "exact test, randomised response",
        "binomial guesses",
        "scan, all guesses tight",
        "scan, Laplace",
    ),
    0.035,
)
"""Tests that are not merely cautious, and less than their sizes, which are .04 to .05."""
WHOLE_GAMES = {"bets, Gaussian": 250}
"""Games of thousands of calls take a second each: in full only, and `test_false_alarms.py` plays many shorter ones."""
CASES = [
    pytest.param(name, marks=pytest.mark.full) if name in WHOLE_GAMES else name
    for name in FALSE_ALARMS
]

pytestmark = pytest.mark.statistical


@pytest.mark.dear
@pytest.mark.parametrize("name", CASES)
def test_a_tight_true_claim_is_refuted_at_most_alpha_of_the_time(name, repeats):
    """Each of the two assertions fails by chance with probability 1e-6 at most."""
    least = 500 if name in SIZES else 200
    claims = repeats(WHOLE_GAMES.get(name, REPEATS), least=least)
    refuted = FALSE_ALARMS[name](claims, stream(0, "bounds", name))

    assert refuted <= repeats.most(claims, ALPHA), f"{refuted} of {claims}"
    if name in SIZES:
        assert refuted >= repeats.fewest(claims, SIZES[name]), f"{refuted} of {claims}"


def laplace(rng, n, epsilon):
    labels = rng.integers(0, 2, n, dtype=np.int8)
    return labels + rng.laplace(scale=1 / epsilon, size=n), labels


def test_the_power_of_the_scan(repeats):
    """Laplace noise at 1.5 against a claim of 1, 300 calls.

    The claim was refuted in .68 of 200 runs.
    """
    rng, runs = stream(4, "bounds"), repeats(300, least=100)
    found = 0
    for _ in range(runs):
        sets = thresholds.nested_sets(*laplace(rng, 300, 1.5), "both")
        found += thresholds.p_value(sets, 1.0) <= ALPHA
    assert found >= repeats.fewest(runs, 0.64), f"{found} of {runs}"


# The seeds of what follows are fixed; a bound is above the truth with probability at most ERROR.


@pytest.mark.dear
@pytest.mark.parametrize(
    ("design", "method", "rows"),
    [
        ("coin", "scan", 300),
        ("arms", "split-exact", 600),
        ("one-run", "one-run-curve", 300),
    ],
)
def test_every_design_refutes_a_claim_of_1_if_the_truth_is_3(
    design, method, rows, repeats
):
    options = {"design": design, "delta": 0.0 if method == "scan" else 1e-5}
    for repeat in range(repeats(5, least=2)):
        recorded = laplace(stream(5, design, repeat), rows, 3.0)
        found = from_scores(*recorded, claim=1.0, **options)
        assert found.method == method
        assert found.refuted, (repeat, found.statement)
        assert from_scores(*recorded, alpha=ERROR, **options).lower < 3.0


@pytest.mark.dear
@pytest.mark.parametrize("options", [{"delta": 0.01}, {"parameter": "mu"}])
def test_a_gross_violation_is_found_in_outputs(options):
    first, second = stream(6, "bounds").normal(size=(2, 600, 3))
    first[:, 1] += 2
    found = from_outputs(first, second, claim=1.0, **options)

    assert found.refuted, found.statement
    if "parameter" in options:
        assert from_outputs(first, second, alpha=ERROR, **options).lower < 2.0


def test_one_run_certifies_much_of_a_gaussian_curve():
    """1,000 independent canaries at mu = 2.

    More than half of mu is certified, and at 1e-6 no more than mu.
    """
    rng = stream(7, "bounds")
    labels = rng.integers(0, 2, 1000)
    scores = 2 * labels + rng.normal(size=1000)
    options = {"design": "one-run", "parameter": "mu", "guesses": [500]}

    assert from_scores(scores, labels, **options).lower > 1.0
    assert from_scores(scores, labels, alpha=ERROR, **options).lower < 2.0
