"""The functions that users call: one for each kind of recorded data.

The kinds are counts of an event, guesses, scores, and outputs of two inputs. Each
function returns the bound of one method. ``methods`` lists the methods that fit a kind
of record, and ``method="auto"`` takes the first of them. This choice depends on the
kind of record, the parameter and delta, never on the recorded numbers: the largest of
several bounds would not be certified.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TypedDict, Unpack

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
    guessed,
    independent_runs,
    observed,
    scanned,
    two_arms,
)
from auditdp.bounds.data import question_of
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


class LevelOptions(TypedDict, total=False):
    """Options of the ``from_...`` functions, except ``from_observed``.

    Any other option raises TypeError.

    Attributes:
        delta: The delta that goes with epsilon; 0 if it is left out.
        parameter: 'epsilon', which is the default, or 'mu' of Gaussian DP.
        alpha: The error probability; 0.05 if it is left out.
        claim: The claimed level of epsilon or mu, to be tested. None, the default,
            gives the bound alone.
        method: 'auto', which is the default, or one of ``methods(kind)``.
    """

    delta: float
    parameter: str
    alpha: float
    claim: float | None
    method: str


def methods(
    kind: str, *, parameter: str = "epsilon", delta: float = 0.0
) -> tuple[str, ...]:
    """Return the methods that fit a kind of record; 'auto' takes the first.

    Args:
        kind: One of ``KINDS``; for scores it is their design (``DESIGNS``).
        parameter: 'epsilon' or 'mu'.
        delta: The delta that goes with epsilon.

    Raises:
        ConfigurationError: If there is no such kind or parameter, or delta is out of
            range.
    """
    question_of(parameter, delta, 0.05, None)
    # One event measures little of a whole curve, so a game comes first for mu.
    one_run: tuple[str, ...] = ("one-run-curve",)
    runs: tuple[str, ...] = ("split-exact", "split-clopper-pearson", "dkw")
    runs = ("bets", *runs) if parameter != "epsilon" else (*runs, "bets")
    if parameter == "epsilon":
        one_run = ("one-run-curve", "one-run")
    known = {
        "counts": ("exact", "clopper-pearson"),
        "guesses": one_run,
        "coin": runs,
        "arms": runs,
        "one-run": one_run,
        "outputs": runs,
    }
    if parameter == "epsilon" and delta == 0:
        known["guesses"] = ("binomial", "one-run-curve")
        known["coin"] = ("scan", *runs)
        known["one-run"] = ("scan", *one_run)
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
    **options: Unpack[LevelOptions],
) -> Bound:
    """Return a lower bound on epsilon or mu from counts of one event under two inputs.

    The event must have been chosen before the outputs were known. The bound is 0 unless
    the event is more frequent under the first input. To test both directions, call this
    function twice, the second time with the inputs exchanged, each with half of alpha.

    Args:
        first: Number of outputs of the first input that were in the event.
        n_first: Number of independent runs on the first input.
        second: Number of outputs of the second input that were in the event.
        n_second: Number of independent runs on the second input.
        **options: See ``LevelOptions``; the methods are 'exact' and 'clopper-pearson'.

    Raises:
        ConfigurationError: If a number is out of range or the method does not fit.

    >>> from_counts(110, 150, 40, 150, claim=0.5).refuted
    True
    """
    question, method = _question("counts", **options)
    first, n_first = data.increasing(first=first, n_first=n_first)
    second, n_second = data.increasing(second=second, n_second=n_second)
    counts = one_event.Counts(first, n_first, second, n_second)
    return two_arms(counts, question, method, [EVENT, RUNS])


def from_guesses(
    correct: int,
    guesses: int,
    *,
    canaries: int | None = None,
    **options: Unpack[LevelOptions],
) -> Bound:
    """Return a lower bound on epsilon or mu from the number of right guesses.

    A guess is about the membership of a canary. The canaries are from one run, or each
    is from a run of its own.

    Args:
        correct: Number of right guesses.
        guesses: Number of guesses.
        canaries: Number of canaries, each in or out by its own fair coin. None means
            that all canaries were guessed.
        **options: See ``LevelOptions``; the methods are 'binomial' (pure epsilon),
            'one-run-curve', and 'one-run' (epsilon with delta > 0).

    Raises:
        ConfigurationError: If a number is out of range or the method does not fit.

    >>> round(from_guesses(100, 100).lower, 3)
    3.493
    """
    question, method = _question("guesses", **options)
    if canaries is None:
        canaries = guesses
    correct, guesses, canaries = data.increasing(
        correct=correct, guesses=guesses, canaries=canaries
    )
    if guesses == 0:
        raise ConfigurationError(
            f"none of {canaries} canaries was guessed; make at least one guess"
        )
    assumptions = [COIN, ONE_RUN, BLIND_GUESSES]
    return guessed([(correct, guesses)], canaries, question, method, assumptions)


def from_labelled_guesses(
    guesses: ArrayLike,
    labels: ArrayLike,
    *,
    design: str,
    **options: Unpack[LevelOptions],
) -> Bound:
    """Return a lower bound on epsilon or mu from guesses of membership and the truth.

    For 'coin' and 'one-run' the right guesses are counted, as in ``from_guesses``. For
    'arms' the event of ``from_counts`` is the guess 'in'; a row with the guess 'out' or
    without a guess is outside the event.

    Args:
        guesses: Shape (n,): 1 for in, 0 for out, NaN for no guess.
        labels: True membership, shape (n,): 1 for in, 0 for out.
        design: 'coin', 'arms' or 'one-run', as in ``from_scores``.
        **options: See ``LevelOptions``; the methods are those of ``from_guesses``, and
            for 'arms' those of ``from_counts``.

    Raises:
        ConfigurationError: If the data or an option cannot be used, or labels of fair
            coins are too uneven (``data.check_fair``).
    """
    _check_design(design)
    guessed = data.numbers("guesses", guesses, gaps=True)
    made = ~np.isnan(guessed)
    data.check_binary("guesses", guessed[made])
    _, truth = data.scores_and_labels(np.nan_to_num(guessed), labels)
    if design == "arms":
        # A row without a guess is outside the event.
        counts = one_event.event_counts(np.nan_to_num(guessed), truth, 1.0)
        bound = from_counts(*counts, **options)
        return replace(bound, assumptions=[GUESSED_IN, RUNS])
    data.check_fair(truth)
    correct, number = int((guessed == truth).sum()), int(made.sum())
    return from_guesses(correct, number, canaries=len(truth), **options)


def from_scores(
    scores: ArrayLike,
    labels: ArrayLike,
    *,
    design: str,
    guess: str = "both",
    guesses: Sequence[int] | None = None,
    seed: int = 0,
    **options: Unpack[LevelOptions],
) -> Bound:
    """Return a lower bound on epsilon or mu from membership scores of canaries.

    Args:
        scores: Shape (n,), finite; larger is more like 'in'.
        labels: Shape (n,): 1 for in, 0 for out.
        design: The design of the labels: 'coin', 'arms' or 'one-run', see ``DESIGNS``.
            If this statement is false, so may be the bound. It is checked only in part:
            labels of coins are refused if they are too uneven (``data.check_fair``).
        guess: 'both' guesses that the highest scores are in and the lowest are out;
            'in' and 'out' make only one of these guesses. Only the scan and the one-run
            methods allow 'in' and 'out'.
        guesses: Numbers of guesses, fixed before the scores were computed; several
            share alpha equally. None takes all canaries, a quarter and a sixteenth.
            Only the one-run methods allow numbers.
        seed: Seed of the random split, of the order of equal scores and of the game. It
            has to be fixed before the scores are computed.
        **options: See ``LevelOptions``; the methods are ``methods(design)``.

    Raises:
        ConfigurationError: If the data or an option cannot be used.
    """
    _check_design(design)
    _check_guess(guess)
    question, method = _question(design, **options)
    is_numbered = method.startswith("one-run")
    guesses_unused = guesses is not None and not is_numbered
    guess_unused = guess != "both" and not is_numbered and method != "scan"
    if guesses_unused or guess_unused:
        raise ConfigurationError(
            f"guess={guess!r} and guesses={guesses!r} do not apply to method {method!r}; leave them out, or name another"
        )
    values, truth = data.scores_and_labels(scores, labels)
    if design != "arms":
        data.check_fair(truth)
    if design == "one-run":
        return in_one_run(
            values,
            truth,
            question,
            rng=np.random.default_rng(seed),
            method=method,
            guess=guess,
            guesses=guesses,
        )
    if method == "scan":
        return scanned(thresholds.nested_sets(values, truth, guess), question, RUNS)
    return independent_runs(values, truth, question, method, seed, [RUNS, ROW_BY_ROW])


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
    """Return a lower bound on epsilon from scores if no coin decided the membership.

    The bound holds ASSUMING the propensities (``one_run`` has the null hypothesis).

    Args:
        scores: Shape (n,), finite; larger is more like 'in'.
        labels: Shape (n,): 1 for in, 0 for out.
        propensities: Shape (n,), in (0, 1): the probability that each row is a member,
            given its features but nothing about the training.
        alpha: The error probability.
        claim: The claimed epsilon, to be tested; None gives the bound alone.
        guess: 'both' guesses that the highest scores are in and the lowest are out;
            'in' and 'out' make only one of these guesses. Guesses are made about all
            rows, about a quarter and about a sixteenth of them. These tests share alpha
            equally.
        seed: Seed of the order of equal scores, fixed before the scores are computed.

    Raises:
        ConfigurationError: If the data or an option cannot be used, or labels do not
            fit their propensities.
    """
    _check_guess(guess)
    question = question_of("epsilon", 0.0, alpha, claim)
    values, truth = data.scores_and_labels(scores, labels)
    known = data.numbers("propensities", propensities)
    if known.shape != truth.shape or not ((known > 0) & (known < 1)).all():
        raise ConfigurationError(
            f"propensities: expected {len(truth)} numbers in (0, 1), got shape {known.shape}, {known.min():g} to "
            f"{known.max():g}; leave out rows that are certainly in or out: they carry no information"
        )
    check_fit(truth, known)
    order = thresholds.descending(values, np.random.default_rng(seed))
    numbers = sorted(_guess_numbers(len(truth)))
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
    """Return a lower bound from scores and labels of the canaries of one training run.

    Args:
        scores: Shape (canaries,), finite; larger is more like 'in'.
        labels: Shape (canaries,): 1 for in, 0 for out, each by its own fair coin.
        question: The family of claims, the error probability and the claim. The family
            may be any ``Curve``, not only of epsilon or mu.
        rng: Generator for the order of equal scores.
        method: 'scan' (pure epsilon), 'one-run-curve' or 'one-run' (epsilon and delta).
            'auto' is the scan for pure epsilon and else 'one-run-curve'.
        guess: 'both', 'in' or 'out', as in ``from_scores``.
        guesses: Numbers of guesses, fixed before the scores were computed; several
            share alpha equally. None takes all canaries, a quarter and a sixteenth. The
            scan ignores them.

    Raises:
        ConfigurationError: If a number of guesses is out of range, or the scan gets
            scores that are all equal.
    """
    if method == "scan" or (method == "auto" and question.curve == EpsilonDelta()):
        return scanned(thresholds.nested_sets(scores, labels, guess), question, ONE_RUN)
    if guesses is None:
        guesses = [*_guess_numbers(len(scores))]
    if np.ndim(guesses) != 1 or 0 in (len(guesses), *guesses):
        raise ConfigurationError(
            f"expected guesses, a list of numbers >= 1, got {guesses!r}; leave it out for the usual ones"
        )
    numbers = {
        data.increasing(guesses=number, canaries=len(scores))[0] for number in guesses
    }
    truth = labels[thresholds.descending(scores, rng)]
    pairs = [
        (thresholds.right_guesses(truth, number, guess), number)
        for number in sorted(numbers)
    ]
    if method == "auto":
        method = "one-run-curve"
    return guessed(pairs, len(scores), question, method, [COIN, ONE_RUN, BLIND])


def from_outputs(
    first: ArrayLike,
    second: ArrayLike,
    *,
    seed: int = 0,
    **options: Unpack[LevelOptions],
) -> Bound:
    """Return a lower bound on epsilon or mu from outputs of two neighbouring inputs.

    The outputs have to be independent. 'split-exact' (the default for epsilon) and
    'split-clopper-pearson' learn a score on about a third of the outputs and choose a
    threshold on it; the other outputs test the event that the score is at least the
    threshold. 'bets' (the default for mu) plays a game on the outputs. 'dkw' needs one
    number per output, which should be larger under ``first``, and tests every
    threshold.

    Args:
        first: Outputs of one input, at least 20, shape (n,) or (n, features), finite.
        second: Outputs of the other input, at least 20, shape (m,) or (m, features),
            finite.
        seed: Seed of the random split or of the game, fixed before the outputs are
            computed.
        **options: See ``LevelOptions``; the methods are ``methods("outputs")``.

    Raises:
        ConfigurationError: If the data or an option cannot be used.
    """
    question, method = _question("outputs", **options)
    arrays = [data.outputs("first", first), data.outputs("second", second)]
    if arrays[0].shape[1] != arrays[1].shape[1]:
        raise ConfigurationError(
            f"first has {arrays[0].shape[1]} numbers per output and second {arrays[1].shape[1]}; give both the same"
        )
    # Both records become one, with a label for the input of each row.
    outputs = np.concatenate(arrays)
    labels = np.repeat(np.array([1, 0], np.int8), [len(array) for array in arrays])
    if method == "dkw":
        if outputs.shape[1] > 1:
            raise ConfigurationError(
                f"dkw needs one number per output, got {outputs.shape[1]}; use split-exact"
            )
        outputs = outputs[:, 0]
    return independent_runs(outputs, labels, question, method, seed, [RUNS])


def _guess_numbers(rows: int) -> set[int]:
    """Return the default numbers of guesses: all rows, a quarter and a sixteenth."""
    return {max(1, round(rows * share)) for share in (1, 1 / 4, 1 / 16)}


def _check_design(design: str) -> None:
    if design not in DESIGNS:
        known = "".join(f"\n  {name}: {meaning}" for name, meaning in DESIGNS.items())
        raise ConfigurationError(
            f"unknown design {design!r}; choose how the labels came about:{known}"
        )


def _check_guess(guess: str) -> None:
    if guess not in thresholds.GUESSES:
        raise ConfigurationError(
            f"unknown guess {guess!r}; {did_you_mean(guess, thresholds.GUESSES)}"
        )


def _question(
    kind: str,
    *,
    delta: float = 0.0,
    parameter: str = "epsilon",
    alpha: float = 0.05,
    claim: float | None = None,
    method: str = "auto",
    **unknown: object,
) -> tuple[Question, str]:
    """Return the question and the name of the method, with 'auto' resolved.

    Raises:
        ConfigurationError: If a number is out of range or the method does not fit.
        TypeError: If an option is unknown.
    """
    for name in unknown:
        options = list(LevelOptions.__annotations__)
        raise TypeError(f"unknown option {name}=; {did_you_mean(name, options)}")
    question = question_of(parameter, delta, alpha, claim)
    known = methods(kind, parameter=parameter, delta=delta)
    if method not in ("auto", *known):
        raise ConfigurationError(
            f"method {method!r} does not fit {kind} and {parameter} with delta={delta:g}; "
            f"{did_you_mean(method, known)}"
        )
    return question, known[0] if method == "auto" else method
