"""From what was seen to a ``Bound``: each test is asked, and its assumptions and its source are stated."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from auditdp.bounds import one_event, one_run, stated_assumptions, thresholds
from auditdp.bounds import one_run as guessing
from auditdp.bounds.bound_levels import smallest_alpha
from auditdp.bounds.one_event import Counts
from auditdp.bounds.result import ROUNDING, Answer, Bound, Question
from auditdp.numerics.arrays import Booleans, Floats, Labels

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


SOURCES = {
    **guessing.SOURCES,
    "exact": one_event.SOURCE,
    "split-exact": one_event.SOURCE,
    "clopper-pearson": one_event.CLOPPER_PEARSON,
    "split-clopper-pearson": one_event.CLOPPER_PEARSON,
    "dkw": one_event.DKW,
    "scan": thresholds.SOURCE,
    "bets": stated_assumptions.SOURCE,
    "propensities": one_run.SOURCE,
}
"""The paper and theorem of each method."""


def certified(
    question: Question,
    answer: Answer,
    method: str,
    n: int,
    statistic: str,
    assumptions: list[str],
) -> Bound:
    """Return the bound of a method, lowered by the rounding that computing it may have brought in.

    The claim counts as refuted only where both the bound reaches it and the p-value is at most alpha.
    """
    curve, alpha, claim = question
    p_value = (
        None if answer.p_value is None else min(1.0, answer.p_value * (1 + ROUNDING))
    )
    return Bound(
        method=method,
        parameter=curve.parameter,
        lower=max(0.0, answer.lower * (1 - ROUNDING)),
        alpha=alpha,
        n=n,
        statistic=statistic,
        assumptions=assumptions,
        source=SOURCES[method],
        delta=curve.delta,
        claim=claim,
        p_value=p_value,
        refuted=claim is not None
        and p_value is not None
        and answer.lower >= claim
        and p_value <= alpha,
    )


def scanned(sets: thresholds.Sets, question: Question, runs: str) -> Bound:
    """Answer from nested sets of guesses; ``runs`` is the assumption about how the scores came about."""
    answer = thresholds.scan(sets, question.alpha, question.claim)
    statistic = thresholds.telling(sets, answer.lower)
    return certified(
        question, answer, "scan", int(sets.canaries), statistic, [COIN, BLIND, runs]
    )


def split_and_tested(
    learned: Floats,
    testing: Floats,
    labels: Labels,
    learning: Booleans,
    question: Question,
    method: str,
    assumptions: list[str],
) -> Bound:
    """Choose the threshold on the learning rows, whose scores are ``learned``, and test it on the others."""
    threshold = one_event.best_threshold(learned, labels[learning], question.curve)
    counts = one_event.event_counts(testing, labels[~learning], threshold)
    chosen = f"the seed of the split was fixed before: {np.sum(learning)} random rows chose the event, the others test it"
    return two_arms(counts, question, method, [*assumptions, chosen])


def two_arms(
    counts: Counts, question: Question, method: str, assumptions: list[str]
) -> Bound:
    """Answer from the counts of one event, by the exact test or by Clopper-Pearson limits."""
    curve, alpha, claim = question
    if method.endswith("exact"):
        answer = one_event.exact(counts, curve, alpha, claim)
    else:
        answer = _from_limits(
            lambda a: one_event.clopper_pearson(counts, curve, a), question
        )
    return certified(
        question,
        answer,
        method,
        counts.n_first + counts.n_second,
        str(counts),
        assumptions,
    )


def banded(
    scores: Floats, labels: Labels, question: Question, assumptions: list[str]
) -> Bound:
    """Answer from every threshold at once, by uniform bands."""
    first, second = scores[labels == 1], scores[labels == 0]
    answer = _from_limits(
        lambda a: one_event.dkw(first, second, question.curve, a), question
    )
    statistic = (
        f"{len(first)} first and {len(second)} second outputs at every threshold"
    )
    return certified(question, answer, "dkw", len(scores), statistic, assumptions)


def played(
    first: Floats, second: Floats, question: Question, seed: int, assumptions: list[str]
) -> Bound:
    """Answer from a game on all outputs."""
    answer, calls = stated_assumptions.played(first, second, question, seed)
    statistic = f"{calls:,} of the outputs were bet on, in random order"
    assumptions = [*assumptions, "the seed of that order was fixed before"]
    return certified(
        question, answer, "bets", len(first) + len(second), statistic, assumptions
    )


def _from_limits(bound: Callable[[float], float], question: Question) -> Answer:
    """Return a bound that grows with alpha, and the p-value of the claim."""
    lower, claim = bound(question.alpha), question.claim
    if claim is None:
        return Answer(lower, None)
    return Answer(
        lower,
        smallest_alpha(
            lambda alphas: np.array([bound(float(a)) >= claim for a in alphas])
        ),
    )


def guessed(
    pairs: list[tuple[int, int]],
    canaries: int,
    question: Question,
    method: str,
    assumptions: list[str],
) -> Bound:
    """Bound from (right, guesses) for several numbers of guesses, with an equal share of alpha for each."""
    shared = question._replace(alpha=question.alpha / len(pairs))
    answers = [
        guessing.from_right_guesses(method, right, number, canaries, shared)
        for right, number in pairs
    ]
    more = [] if method == "binomial" else [FIXED_GUESSES]
    if len(pairs) == 1:
        seen = f"{pairs[0][0]:,} of {pairs[0][1]:,} guesses right"
    else:
        surest = ", ".join(
            f"{right:,} of the {number:,} surest" for right, number in pairs
        )
        seen = f"guesses right: {surest}, each tested with alpha/{len(pairs)}"
    best, statistic = Answer.shared(answers), f"{seen}; {canaries:,} canaries"
    return certified(question, best, method, canaries, statistic, [*assumptions, *more])


def observed(
    labels: Labels, known: Floats, numbers: list[int], guess: str, question: Question
) -> Bound:
    """Bound epsilon from so many guesses of rows, highest score first, with their propensities; alpha is shared equally."""
    answers, seen = [], []
    for number in numbers:
        sides = {"in": number, "out": 0, "both": number - number // 2}[guess]
        rows = np.r_[:sides, len(labels) - (number - sides) : len(labels)]
        right = thresholds.right_guesses(labels, number, guess)
        guessed_in = np.arange(number) < sides
        answers.append(
            one_run.from_given_propensities(
                guessed_in,
                right,
                known[rows],
                question.alpha / len(numbers),
                question.claim,
            )
        )
        seen.append(f"{right:,} of the {number:,} surest")
    statistic = f"guesses right: {', '.join(seen)}; {len(labels):,} rows, {known.sum():,.0f} of them in by their propensities"  # noqa: E501
    assumptions = [PROPENSITIES, BLIND, ONE_RUN, FIXED_GUESSES]
    return certified(
        question,
        Answer.shared(answers),
        "propensities",
        len(labels),
        statistic,
        assumptions,
    )
