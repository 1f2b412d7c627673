"""The four ways in: counts of an event, counts of right guesses, scores with labels, and outputs of two inputs.

Each returns the bound of one method. ``methods`` lists those that fit a kind of record; the first is the one that
``method="auto"`` takes. It depends on the kind of record alone, never on the numbers in it: whoever looks at several
bounds and reports the largest has no certificate.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from auditdp.bounds import data, one_event, thresholds
from auditdp.bounds.answers import (
    BLIND,
    BLIND_GUESSES,
    COIN,
    EVENT,
    GUESSED_IN,
    ONE_RUN,
    ROW_BY_ROW,
    RUNS,
    banded,
    guessed,
    observed,
    played,
    scanned,
    split_and_tested,
    two_arms,
)
from auditdp.bounds.data import question_of
from auditdp.bounds.one_event import Counts
from auditdp.bounds.one_run import check_fit
from auditdp.bounds.privacy_curves import EpsilonDelta
from auditdp.bounds.result import Bound, Question
from auditdp.errors import ConfigurationError, did_you_mean
from auditdp.numerics.arrays import Floats, Labels

DESIGNS = {
    "coin": "every row is an independent run of the mechanism, its label thrown by a fair coin",
    "arms": "every row is an independent run of the mechanism; how many rows have which label was fixed",
    "one-run": "the rows are canaries of one training run, each of them in or out by its own fair coin",
}
KINDS = ("counts", "guesses", *DESIGNS, "outputs")
SCORE_SHARE = 0.2
OUTPUT_SHARE = 0.35
GUESS_SHARES = (1.0, 0.25, 0.0625)


def methods(
    kind: str, *, parameter: str = "epsilon", delta: float = 0.0
) -> tuple[str, ...]:
    """Return the methods for a kind of record, the one that 'auto' takes first.

    Args:
        kind: One of ``KINDS``: for scores it is their design.
        parameter: 'epsilon' or 'mu'.
        delta: The delta that goes with epsilon.

    Raises:
        ConfigurationError: If there is no such kind.
    """
    pure = parameter == "epsilon" and delta == 0
    one_run = (
        ("one-run-curve", "one-run") if parameter == "epsilon" else ("one-run-curve",)
    )
    events = ("split-exact", "split-clopper-pearson", "dkw")
    runs = (
        (*events, "bets") if parameter == "epsilon" else ("bets", *events)
    )  # one event says little of a whole curve
    known = {
        "counts": ("exact", "clopper-pearson"),
        "guesses": ("binomial", "one-run-curve") if pure else one_run,
        "coin": ("scan", *runs) if pure else runs,
        "arms": runs,
        "one-run": ("scan", *one_run) if pure else one_run,
        "outputs": runs,
    }
    if kind not in known:
        raise ConfigurationError(
            f"unknown kind of record {kind!r}; {did_you_mean(kind, known)}"
        )
    return known[kind]


def from_counts(
    first: int,
    n_first: int,
    second: int,
    n_second: int,
    *,
    delta: float = 0.0,
    parameter: str = "epsilon",
    alpha: float = 0.05,
    claim: float | None = None,
    method: str = "auto",
) -> Bound:
    """Bound the level from how often an event occurred under each of two neighbouring inputs.

    The event has to be one that was expected more often under the first input; to look both ways, exchange the inputs and
    give each way half of alpha.

    Args:
        first: How many of ``n_first`` outputs of the first input were in the event.
        n_first: Independent runs on the first input.
        second: How many of ``n_second`` outputs of the second input were in the event.
        n_second: Independent runs on the second input.
        delta: The delta that goes with epsilon.
        parameter: 'epsilon', or 'mu' of Gaussian DP.
        alpha: The error probability.
        claim: The claimed level, to be tested; None gives the bound alone.
        method: 'auto', 'exact' or 'clopper-pearson'.

    Raises:
        ConfigurationError: If a number is out of range or the method does not fit.

    >>> from_counts(110, 150, 40, 150, claim=0.5).refuted
    True
    """
    question = question_of(parameter, delta, alpha, claim)
    first, n_first = data.increasing(first=first, n_first=n_first)
    second, n_second = data.increasing(second=second, n_second=n_second)
    counts = Counts(first, n_first, second, n_second)
    return two_arms(
        counts, question, _chosen("counts", question, method), [EVENT, RUNS]
    )


def from_guesses(
    correct: int,
    guesses: int,
    *,
    canaries: int | None = None,
    delta: float = 0.0,
    parameter: str = "epsilon",
    alpha: float = 0.05,
    claim: float | None = None,
    method: str = "auto",
) -> Bound:
    """Bound the level from how many guesses of membership were right, in one training run or in many.

    Args:
        correct: How many guesses were right.
        guesses: How many guesses were made.
        canaries: How many canaries there were, each in or out by its own fair coin; None means that all were guessed.
        delta: The delta that goes with epsilon.
        parameter: 'epsilon', or 'mu' of Gaussian DP.
        alpha: The error probability.
        claim: The claimed level, to be tested; None gives the bound alone.
        method: 'auto', 'binomial' (pure epsilon), 'one-run-curve' or 'one-run'.

    Raises:
        ConfigurationError: If a number is out of range or the method does not fit.

    >>> round(from_guesses(100, 100).lower, 3)
    3.493
    """
    question = question_of(parameter, delta, alpha, claim)
    correct, guesses, canaries = data.increasing(
        correct=correct,
        guesses=guesses,
        canaries=guesses if canaries is None else canaries,
    )
    if guesses == 0:
        raise ConfigurationError(
            f"none of {canaries} canaries was guessed; make at least one guess"
        )
    chosen = _chosen("guesses", question, method)
    return guessed(
        [(correct, guesses)], canaries, question, chosen, [COIN, ONE_RUN, BLIND_GUESSES]
    )


def from_labelled_guesses(
    guesses: ArrayLike,
    labels: ArrayLike,
    *,
    design: str,
    delta: float = 0.0,
    parameter: str = "epsilon",
    alpha: float = 0.05,
    claim: float | None = None,
    method: str = "auto",
) -> Bound:
    """Bound the level from guesses of membership and the labels that were guessed.

    For 'coin' and 'one-run' this is ``from_guesses``. For 'arms' the event is the guess 'in', whatever else was guessed.

    Args:
        guesses: Shape (n,): 1 for in, 0 for out, NaN for none.
        labels: Shape (n,): 1 for in, 0 for out.
        design: How the labels came about, as of ``from_scores``.
        delta: The delta that goes with epsilon.
        parameter: 'epsilon', or 'mu' of Gaussian DP.
        alpha: The error probability.
        claim: The claimed level, to be tested; None gives the bound alone.
        method: As of ``from_guesses``; for 'arms' as of ``from_counts``.

    Raises:
        ConfigurationError: If the data or an option cannot be used, or fair coins do not give such labels.
    """
    _check_design(design)
    guessed = data.numbers("guesses", guesses, gaps=True)
    made = ~np.isnan(guessed)
    data.check_binary("guesses", guessed[made])
    _, truth = data.scores_and_labels(np.nan_to_num(guessed), labels)
    question: dict[str, Any] = {
        "delta": delta,
        "parameter": parameter,
        "alpha": alpha,
        "claim": claim,
        "method": method,
    }
    if design == "arms":
        first, second = guessed[truth == 1] == 1, guessed[truth == 0] == 1
        found = from_counts(
            int(first.sum()), len(first), int(second.sum()), len(second), **question
        )
        return replace(found, assumptions=[GUESSED_IN, RUNS])
    data.check_fair(truth)
    return from_guesses(
        int((guessed == truth).sum()), int(made.sum()), canaries=len(truth), **question
    )


def from_scores(
    scores: ArrayLike,
    labels: ArrayLike,
    *,
    design: str,
    delta: float = 0.0,
    parameter: str = "epsilon",
    alpha: float = 0.05,
    claim: float | None = None,
    method: str = "auto",
    guess: str = "both",
    guesses: Sequence[int] | None = None,
    seed: int = 0,
) -> Bound:
    """Bound the level from membership scores and the labels that they should tell.

    Args:
        scores: Shape (n,), finite; larger is more like 'in'.
        labels: Shape (n,): 1 for in, 0 for out.
        design: How the labels came about: 'coin', 'arms' or 'one-run', see ``DESIGNS``. The bound is only as good as this
            statement: of coins, only numbers of in and out that these hardly ever give are refused (``inputs.check_fair``).
        delta: The delta that goes with epsilon.
        parameter: 'epsilon', or 'mu' of Gaussian DP.
        alpha: The error probability.
        claim: The claimed level, to be tested; None gives the bound alone.
        method: 'auto' or one of ``methods(design)``.
        guess: For the scan and the one-run methods: which canaries are guessed, 'both' ends of the scores, 'in' or 'out'.
        guesses: For the one-run methods: numbers of guesses, fixed before the scores were seen; with several, alpha is
            shared equally among them. None takes all canaries, a quarter and a sixteenth.
        seed: What the random split and the order of equal scores are made from; also to be fixed beforehand.

    Raises:
        ConfigurationError: If the data or an option cannot be used.
    """
    _check_design(design)
    _check_guess(guess)
    question = question_of(parameter, delta, alpha, claim)
    method = _chosen(design, question, method)
    numbered = method.startswith("one-run")
    if (guesses is not None and not numbered) or (
        guess != "both" and not numbered and method != "scan"
    ):
        raise ConfigurationError(
            f"guess={guess!r} and guesses={guesses!r} do not apply to method {method!r}; leave them out, or name another"
        )
    values, truth = data.scores_and_labels(scores, labels)
    if design != "arms":
        data.check_fair(truth)
    if design == "one-run":
        rng = np.random.default_rng(seed)
        return in_one_run(
            values,
            truth,
            question,
            rng=rng,
            method=method,
            guess=guess,
            guesses=guesses,
        )
    if method == "scan":
        return scanned(thresholds.nested_sets(values, truth, guess), question, RUNS)
    if method == "dkw":
        return banded(values, truth, question, [RUNS, ROW_BY_ROW])
    if method == "bets":
        return played(
            values[truth == 1], values[truth == 0], question, seed, [RUNS, ROW_BY_ROW]
        )
    learning = one_event.learning_part(truth, SCORE_SHARE, np.random.default_rng(seed))
    return split_and_tested(
        values[learning],
        values[~learning],
        truth,
        learning,
        question,
        method,
        [RUNS, ROW_BY_ROW],
    )


def from_observed(
    scores: ArrayLike,
    labels: ArrayLike,
    propensities: ArrayLike,
    *,
    alpha: float = 0.05,
    claim: float | None = None,
    guess: str = "both",
    seed: int = 0,
) -> Bound:
    """Bound epsilon from membership scores of rows that were members or not as they are, ASSUMING their propensities.

    Args:
        scores: Shape (n,), finite; larger is more like 'in'.
        labels: Shape (n,): 1 for in, 0 for out.
        propensities: Shape (n,), in (0, 1): how likely each row is a member, given what is known of it without the training.
        alpha: The error probability.
        claim: The claimed epsilon, to be tested; None gives the bound alone.
        guess: As of ``from_scores``. All rows, a quarter and a sixteenth are guessed, with alpha/3 each.
        seed: What the order of equal scores is made from; to be fixed beforehand.

    Raises:
        ConfigurationError: If the data or an option cannot be used, or labels do not fit their propensities.
    """
    _check_guess(guess)
    question = question_of("epsilon", 0.0, alpha, claim)
    values, truth = data.scores_and_labels(scores, labels)
    known = data.numbers("propensities", propensities)
    if known.shape != truth.shape or not ((known > 0) & (known < 1)).all():
        raise ConfigurationError(
            f"propensities: expected {len(truth)} numbers in (0, 1), got shape {known.shape}, {known.min():g} to "
            f"{known.max():g}; a row that is certainly in or out tells nothing, so leave it out"
        )
    check_fit(truth, known)
    order = thresholds.descending(values, np.random.default_rng(seed))
    numbers = sorted({max(1, round(share * len(truth))) for share in GUESS_SHARES})
    return observed(truth[order], known[order], numbers, guess, question)


def in_one_run(
    scores: Floats,
    labels: Labels,
    question: Question,
    *,
    rng: np.random.Generator,
    method: str = "auto",
    guess: str = "both",
    guesses: Sequence[int] | None = None,
) -> Bound:
    """Bound the level from the scores and the labels of the canaries of one training run.

    Args:
        scores: Shape (canaries,), finite; larger is more like 'in'.
        labels: Shape (canaries,): 1 for in, 0 for out, each by its own fair coin.
        question: What is asked, of any family of claims.
        rng: What the order of equal scores is made from.
        method: 'scan' (pure epsilon), 'one-run-curve', 'one-run' (epsilon and delta), or the first of them that fits.
        guess: As of ``from_scores``.
        guesses: As of ``from_scores``.

    Raises:
        ConfigurationError: If a number of guesses is out of range.
    """
    if method == "scan" or (method == "auto" and question.curve == EpsilonDelta()):
        return scanned(thresholds.nested_sets(scores, labels, guess), question, ONE_RUN)
    shares = [max(1, round(share * len(scores))) for share in GUESS_SHARES]
    numbers = {
        data.increasing(guesses=n, canaries=len(scores))[0] for n in guesses or shares
    }
    truth = labels[thresholds.descending(scores, rng)]
    pairs = [
        (thresholds.right_guesses(truth, number, guess), number)
        for number in sorted(numbers)
    ]
    chosen = "one-run-curve" if method == "auto" else method
    return guessed(pairs, len(scores), question, chosen, [COIN, ONE_RUN, BLIND])


def from_outputs(
    first: ArrayLike,
    second: ArrayLike,
    *,
    delta: float = 0.0,
    parameter: str = "epsilon",
    alpha: float = 0.05,
    claim: float | None = None,
    method: str = "auto",
    seed: int = 0,
) -> Bound:
    """Bound the level from independent outputs of two neighbouring inputs.

    For epsilon a model learns on a third of the outputs which are more like the first input, and which threshold on its
    score promises the largest bound; the others test that event. For mu all outputs are played as a game. 'dkw' takes
    single numbers as they are and tries every threshold.

    Args:
        first: Outputs of one input, shape (n,) or (n, features), finite.
        second: Outputs of the other, with the same features.
        delta: The delta that goes with epsilon.
        parameter: 'epsilon', or 'mu' of Gaussian DP.
        alpha: The error probability.
        claim: The claimed level, to be tested; None gives the bound alone.
        method: 'auto' or one of ``methods("outputs")``.
        seed: What the random split is made from; to be fixed beforehand.

    Raises:
        ConfigurationError: If the data or an option cannot be used.
    """
    question = question_of(parameter, delta, alpha, claim)
    method = _chosen("outputs", question, method)
    arrays = [
        data.outputs(name, values)
        for name, values in (("first", first), ("second", second))
    ]
    if arrays[0].shape[1] != arrays[1].shape[1]:
        raise ConfigurationError(
            f"first has {arrays[0].shape[1]} numbers per output and second {arrays[1].shape[1]}; give both the same"
        )
    if method == "bets":
        return played(arrays[0], arrays[1], question, seed, [RUNS])
    outputs = np.concatenate(arrays)
    labels = np.repeat(
        np.array([1, 0], dtype=np.int8), [len(array) for array in arrays]
    )
    if method == "dkw":
        if outputs.shape[1] > 1:
            raise ConfigurationError(
                f"dkw needs one number per output, got {outputs.shape[1]}; use split-exact"
            )
        return banded(outputs[:, 0], labels, question, [RUNS])
    rng = np.random.default_rng(seed)
    learning = one_event.learning_part(labels, OUTPUT_SHARE, rng)
    learned, testing = one_event.learned_scores(outputs, labels, learning, rng)
    return split_and_tested(
        learned, testing, labels, learning, question, method, [RUNS]
    )


def _check_design(design: str) -> None:
    if design not in DESIGNS:
        known = "".join(f"\n  {name}: {meaning}" for name, meaning in DESIGNS.items())
        raise ConfigurationError(
            f"unknown design {design!r}; say how the labels came about:{known}"
        )


def _check_guess(guess: str) -> None:
    if guess not in thresholds.GUESSES:
        raise ConfigurationError(
            f"unknown guess {guess!r}; {did_you_mean(guess, thresholds.GUESSES)}"
        )


def _chosen(kind: str, question: Question, method: str) -> str:
    """Return the method, or the first that fits for 'auto'."""
    curve = question.curve
    known = methods(kind, parameter=curve.parameter, delta=curve.delta)
    if method not in ("auto", *known):
        raise ConfigurationError(
            f"method {method!r} does not fit {kind} and {curve.parameter} with delta={curve.delta:g}; "
            f"{did_you_mean(method, known)}"
        )
    return known[0] if method == "auto" else method
