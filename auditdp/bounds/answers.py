"""The table of tests, and functions that run a test and return its ``Bound``.

There is one function for each kind of recorded data. ``auditdp.bounds.api`` checks the
data and calls them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from auditdp.bounds import one_event, one_run, stated_assumptions, thresholds
from auditdp.bounds.bound_levels import smallest_alpha
from auditdp.bounds.one_event import Counts
from auditdp.bounds.result import ROUNDING, Answer, Bound, Question
from auditdp.numerics.arrays import Floats, Labels


class Test(NamedTuple):
    """One row of ``TESTS``.

    Attributes:
        summary: The test in a few words.
        source: The paper and theorem.
    """

    summary: str
    source: str


_EXACT = (
    "Barnard (1947), 'Significance tests for 2x2 tables', with the likelihood ratio as statistic and the nuisance "
    "maximised over a confidence set: Berger & Boos (1994)"
)
_LIMITS = (
    "Clopper & Pearson (1934), 'The use of confidence or fiducial limits illustrated in the case of the binomial', with "
    "alpha/2 for each arm"
)
_ONE_RUN = "Steinke, Nasr & Jagielski (2023), 'Privacy Auditing with One (1) Training Run', arXiv:2305.08846v1"

TESTS = {
    "exact": Test("exact unconditional test of the counts of one event", _EXACT),
    "clopper-pearson": Test(
        "Clopper-Pearson limits of one event, alpha/2 each", _LIMITS
    ),
    "binomial": Test(
        "exact test of the number of right guesses", f"Proposition 5.1 of {_ONE_RUN}"
    ),
    "one-run": Test(
        "one training run: Steinke, Nasr & Jagielski (2023)",
        f"the exact form (auditdp/bounds/one_run.py) of Theorem 5.2 of {_ONE_RUN}",
    ),
    "one-run-curve": Test(
        "one training run: Mahloujifar, Melis & Chaudhuri (2024)",
        "the recursion of Mahloujifar, Melis & Chaudhuri (2024), 'Auditing f-Differential Privacy in One Run', "
        "arXiv:2410.22235v1",
    ),
    "scan": Test(
        "every number of guesses at once, exact law of the maximum",
        "Proposition 5.1 of Steinke, Nasr & Jagielski (2023), arXiv:2305.08846v1, for the law of right guesses; the "
        "maximum over sets and its exact law are proved in auditdp.bounds.thresholds",
    ),
    "split-exact": Test(
        "event chosen on some rows, exact unconditional test on the rest", _EXACT
    ),
    "split-clopper-pearson": Test(
        "event chosen on some rows, Clopper-Pearson on the rest", _LIMITS
    ),
    "dkw": Test(
        "every threshold at once by uniform bands of the distribution functions",
        "Massart (1990), 'The tight constant in the Dvoretzky-Kiefer-Wolfowitz inequality', Theorem 1, one-sided, with "
        "alpha/2 for each arm",
    ),
    "propensities": Test(
        "right guesses against what propensities and epsilon allow",
        "arXiv:2605.14591, with the law of right guesses of auditdp.bounds.one_run",
    ),
    "bets": Test(
        "all outputs played as a game against the whole privacy curve",
        "the bet against a whole privacy curve (Ville's inequality; auditdp/betting/wealth/regions.py)",
    ),
}
"""All tests by the name of their method."""

EVENT = "the event was fixed before these outputs were seen"
GUESSED_IN = "the event is the guess 'in', and each guess was made from its own run alone, in the same way whatever its label"  # noqa: E501
RUNS = "the outputs are independent runs of the mechanism"
COIN = "each label was thrown by its own fair coin, independent of everything else"
ONE_RUN = "the claim is about neighbours that differ in the inclusion of one canary"
BLIND = "the scores were computed without the labels"
ROW_BY_ROW = (
    "each score was computed from its own run alone, in the same way whatever its label"
)
FIXED_GUESSES = "how many guesses to make was fixed before the scores were seen"
PROPENSITIES = "given what is known of the rows, each is a member with its propensity, independent of the others"
BLIND_GUESSES = "the guesses were made without the labels"


def certified(
    question: Question,
    answer: Answer,
    method: str,
    n: int,
    statistic: str,
    assumptions: list[str],
) -> Bound:
    """Return the bound of a method, lowered by the rounding error of its computation.

    The claim counts as refuted only if the bound, before it is lowered, reaches the
    claim and the p-value is at most alpha.

    Args:
        question: The family of claims, the error probability and the claim.
        answer: The result of the test.
        method: Name of the test in ``TESTS``.
        n: Number of observations in the test.
        statistic: The observation that the test used, in words.
        assumptions: The assumptions of the bound, one sentence each.
    """
    curve, alpha, claim = question
    p_value = answer.p_value
    refuted = False
    if p_value is not None:
        p_value = min(1.0, p_value * (1 + ROUNDING))
        refuted = claim is not None and answer.lower >= claim and p_value <= alpha
    return Bound(
        method=method,
        parameter=curve.parameter,
        lower=max(0.0, answer.lower * (1 - ROUNDING)),
        alpha=alpha,
        n=n,
        statistic=statistic,
        assumptions=assumptions,
        source=TESTS[method].source,
        delta=curve.delta,
        claim=claim,
        p_value=p_value,
        refuted=refuted,
    )


def scanned(sets: thresholds.Sets, question: Question, runs: str) -> Bound:
    """Return the bound of the scan over nested sets of guesses (``thresholds``).

    Args:
        sets: The sets.
        question: The family of claims, the error probability and the claim.
        runs: The assumption about the runs that gave the scores, as a sentence.
    """
    answer = thresholds.scan(sets, question.alpha, question.claim)
    statistic = thresholds.describe_best(sets, answer.lower)
    assumptions = [COIN, BLIND, runs]
    return certified(
        question, answer, "scan", int(sets.canaries), statistic, assumptions
    )


def two_arms(
    counts: Counts, question: Question, method: str, assumptions: list[str]
) -> Bound:
    """Return the bound from the counts of one event under two inputs.

    Args:
        counts: The counts.
        question: The family of claims, the error probability and the claim.
        method: A name that ends in 'exact' selects the exact test; any other name
            selects Clopper-Pearson limits.
        assumptions: The assumptions about the event and the runs.
    """
    curve, alpha, claim = question
    if method.endswith("exact"):
        answer = one_event.exact(counts, curve, alpha, claim)
    else:
        answer = _from_limits(
            lambda a: one_event.clopper_pearson(counts, curve, a), question
        )
    n = counts.n_first + counts.n_second
    return certified(question, answer, method, n, str(counts), assumptions)


def independent_runs(
    outputs: Floats,
    labels: Labels,
    question: Question,
    method: str,
    seed: int,
    assumptions: list[str],
) -> Bound:
    """Return the bound from independent runs on two inputs.

    Args:
        outputs: Scores of shape (n,), larger for outputs that are more like those of
            the first input, or outputs of shape (n, features).
        labels: 1 for the first input, 0 for the second, shape (n,).
        question: The family of claims, the error probability and the claim.
        method: 'bets', 'dkw' (for scores only), 'split-exact' or
            'split-clopper-pearson'.
        seed: Seed of the split, of the learned score and of the game.
        assumptions: The assumptions about the runs.
    """
    first, second = outputs[labels == 1], outputs[labels == 0]
    if method == "bets":
        return played(first, second, question, seed, assumptions)
    if method == "dkw":
        answer = _from_limits(
            lambda a: one_event.dkw(first, second, question.curve, a), question
        )
        statistic = (
            f"{len(first)} first and {len(second)} second outputs at every threshold"
        )
        return certified(question, answer, "dkw", len(labels), statistic, assumptions)
    rng = np.random.default_rng(seed)
    if outputs.ndim == 1:
        learning = one_event.learning_part(labels, 0.2, rng)
        learned, testing = outputs[learning], outputs[~learning]
    else:
        # More rows are set aside here, because a score has to be learned from them,
        # too.
        learning = one_event.learning_part(labels, 0.35, rng)
        learned, testing = one_event.learned_scores(outputs, labels, learning, rng)
    threshold = one_event.best_threshold(learned, labels[learning], question.curve)
    counts = one_event.event_counts(testing, labels[~learning], threshold)
    chosen = f"the seed of the split was fixed before: {np.sum(learning)} random rows chose the event, the others test it"
    return two_arms(counts, question, method, [*assumptions, chosen])


def played(
    first: Floats, second: Floats, question: Question, seed: int, assumptions: list[str]
) -> Bound:
    """Return the bound of a game that bets on recorded outputs of two inputs.

    Args:
        first: Outputs of one input, shape (n,) or (n, features).
        second: Outputs of the other input, shape (m,) or (m, features).
        question: The family of claims, the error probability and the claim.
        seed: Seed of the order of the outputs and of the coins.
        assumptions: The assumptions about the runs.
    """
    answer, calls = stated_assumptions.played(first, second, question, seed)
    statistic = f"{calls:,} of the outputs were bet on, in random order"
    assumptions = [*assumptions, "the seed of that order was fixed before"]
    n = len(first) + len(second)
    return certified(question, answer, "bets", n, statistic, assumptions)


def _from_limits(bound: Callable[[float], float], question: Question) -> Answer:
    """Return the answer of a method that computes a bound from alpha.

    The bound never decreases with alpha. So the p-value is the smallest alpha at which
    it reaches the claim.
    """
    claim = question.claim
    p_value = None
    if claim is not None:
        p_value = smallest_alpha(
            lambda alphas: np.array([bound(float(a)) >= claim for a in alphas])
        )
    return Answer(bound(question.alpha), p_value)


def guessed(
    pairs: list[tuple[int, int]],
    canaries: int,
    question: Question,
    method: str,
    assumptions: list[str],
) -> Bound:
    """Return the bound from right guesses, for one number of guesses or several.

    Args:
        pairs: (number of right guesses, number of guesses) of each test. Each test has
            an equal share of alpha.
        canaries: Number of canaries.
        question: The family of claims, the error probability and the claim.
        method: 'binomial', 'one-run' or 'one-run-curve'.
        assumptions: The assumptions about the guesses.
    """
    # A union bound over the numbers of guesses.
    shared = question._replace(alpha=question.alpha / len(pairs))
    answers = [
        one_run.from_right_guesses(method, right, number, canaries, shared)
        for right, number in pairs
    ]
    if method != "binomial":
        assumptions = [*assumptions, FIXED_GUESSES]
    text = f"{pairs[0][0]:,} of {pairs[0][1]:,} guesses right"
    if len(pairs) > 1:
        parts = [f"{right:,} of the {number:,} surest" for right, number in pairs]
        text = f"guesses right: {', '.join(parts)}, each tested with alpha/{len(pairs)}"
    statistic = f"{text}; {canaries:,} canaries"
    answer = Answer.shared(answers)
    return certified(question, answer, method, canaries, statistic, assumptions)


def observed(
    labels: Labels,
    propensities: Floats,
    numbers: list[int],
    guess: str,
    question: Question,
) -> Bound:
    """Return the bound on epsilon from guesses if no coin decided the membership.

    Args:
        labels: Labels from the highest score to the lowest, shape (n,).
        propensities: Probability that each row is a member, in the order of ``labels``,
            shape (n,).
        numbers: Numbers of guesses; each has an equal share of alpha.
        guess: 'in', 'out' or 'both'.
        question: The family of claims, the error probability and the claim.
    """
    answers, parts = [], []
    for number in numbers:
        first = thresholds.guesses_in(number, guess)
        # The rows with the highest scores are guessed in, those with the lowest out.
        rows = np.r_[:first, len(labels) - (number - first) : len(labels)]
        right = thresholds.right_guesses(labels, number, guess)
        answers.append(
            one_run.from_given_propensities(
                np.arange(number) < first,
                right,
                propensities[rows],
                question.alpha / len(numbers),
                question.claim,
            )
        )
        parts.append(f"{right:,} of the {number:,} surest")
    statistic = f"guesses right: {', '.join(parts)}; {len(labels):,} rows, {propensities.sum():,.0f} of them in by their propensities"  # noqa: E501
    return certified(
        question,
        Answer.shared(answers),
        "propensities",
        len(labels),
        statistic,
        [PROPENSITIES, BLIND, ONE_RUN, FIXED_GUESSES],
    )
