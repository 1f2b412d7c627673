"""Tests that calls use the given generator and are independent of each other.

Before any bet, calls with generators of equal states have to give equal outputs
(``check_calls``). Before a refutation, a bound or a proof of equivalence is reported,
``look`` tests whether calls depend on each other:

1. A seeded mechanism draws only from the given generator, so its output is a function
   of the generator and the input. Calls that are repeated in another order, in a
   process in which the mechanism was never called, must have the same outputs.
   Otherwise they depend on earlier calls (by a cache, a counter, stored noise).
2. For a mechanism that draws from elsewhere, two outputs of one process in which it was
   never called are compared with outputs of other such processes. Independent outputs
   are equally similar in both cases.
3. For both, outputs of one call, and of consecutive calls, are compared with outputs of
   distant calls.
4. If each input has only one output, the mechanism has no noise, or it stores its
   answers. Calls in separate processes distinguish the two (``_keeps_its_answers``).

The first test has no false alarm. Each other test has a false alarm with probability at
most ``FALSE_ALARM`` if calls are independent. Independence that passes the tests is
still an assumption, which evidence names. A mechanism may draw its noise before all
calls: when it is imported, or from a seed that it computes from the data. No test can
distinguish it from a mechanism without noise, since both have one output for an input.
"""

from __future__ import annotations

import math
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from scipy.special import logsumexp

from auditdp.errors import MechanismError
from auditdp.mechanism.calls.calling import PROBES, Calls, Run
from auditdp.mechanism.calls.phases import phase
from auditdp.mechanism.calls.untouched import Untouched, untouched
from auditdp.mechanism.protocol import Array, is_vectorised
from auditdp.numerics.arrays import Floats
from auditdp.numerics.streams import Streams

FALSE_ALARM = 1e-6
"""Largest probability that a test of ``look`` takes independent calls for dependent."""


class CheckLimits:
    """Limits of the tests of independence."""

    unseeded_share = 8
    """Divisor of the budget: the quotient is the number of tested outputs.

    It applies to a finding about a mechanism that draws from elsewhere. At most 2,048
    outputs are tested.
    """
    min_budget = 40
    """Smallest budget of calls for which evidence without a finding is tested."""
    processes = 40
    """Number of first outputs of separate processes, on all inputs together.

    For example, ``_of_processes`` forks 20 processes for two inputs, and each process
    calls the mechanism on both. If a second output always repeats the first one, a bit
    with P(1) = .27, then the e-value is above 10^7 in most cases.
    """
    seconds = 10.0
    """Constant part of the time limit for an answer of an untouched process.

    It is in seconds. The other part is 20 times the duration of the same calls in the
    usual process.
    """
    extra_processes = 5
    """Factor of the number of processes for a mechanism that draws from elsewhere.

    For a seeded mechanism, one call that differs proves that answers are stored. For
    this one 20 such calls are needed, which have a probability of 10^-6 by chance.
    Suppose the first test misses stored answers with probability 10^-4 in n processes.
    Then the second one misses them in 5n processes with a smaller probability.
    """


SAME = 1e-9
"""Largest relative difference of outputs that still counts as rounding."""


@dataclass(frozen=True)
class IndependenceTest:
    """The result of the tests of independence."""

    dependent: str
    """Text of the dependence of calls and its remedy; empty if no test found any."""
    constant: bool
    """True if all outputs on each input were equal."""
    untouched: bool
    """True if calls were also made in an untouched process."""


@phase("checks")
def check_calls(
    calls: Calls, inputs: Sequence[Any], streams: Streams, *, probes: int = PROBES
) -> None:
    """Check that a mechanism draws from the given generator, and decide its rows.

    An untouched process is forked before the first call. Then ``probes`` outputs on
    each of the first two inputs are made twice with one seed. The form of rows is
    decided from calls on up to ``MOST_PROBED`` inputs. If one call returns many
    outputs, its outputs are compared with those of single calls.

    Raises:
        MechanismError: If calls draw from elsewhere, or share their randomness.
    """
    untouched(calls.mechanism).start()
    for number, data in enumerate(inputs[:2]):
        seed = int(streams("same generator", number).integers(2**63))
        calls.outcomes(partial(check_seeded, calls, data, seed, probes=probes))
    calls.look(inputs, streams("shape", 0))
    # Otherwise each output is made by a call of its own.
    if is_vectorised(calls.mechanism):
        check_batch(calls, inputs[0], streams("independence", 0))


def runs_to_look(budget: int, *, seeded: bool, finding: bool = True) -> int:
    """Return the largest number of runs of ``look`` with this budget.

    The test of stored answers is not included; see ``runs_in_processes``.
    """
    outputs = _test_size(budget, seeded=seeded, finding=finding)
    return 2 * outputs + 1 if seeded else outputs + 2 * CheckLimits.processes


def runs_in_processes(processes: int, *, seeded: bool) -> int:
    """Return the number of runs of the test of stored answers.

    Half of them are made in the usual process of the mechanism, and half in separate
    processes, one in each. There are ``processes`` separate processes, or
    ``extra_processes`` times this number if the mechanism draws from elsewhere.
    """
    return 2 * (processes if seeded else CheckLimits.extra_processes * processes)


def _test_size(budget: int, *, seeded: bool, finding: bool) -> int:
    """Return the number of outputs for comparisons, an even part of the budget."""
    max_runs = min(budget // 50, 1_024)
    if finding and not seeded:
        max_runs = min(budget // CheckLimits.unseeded_share, 2_048)
    return max(max_runs // 2 * 2, 4)


def look(
    calls: Calls,
    inputs: Sequence[Any],
    streams: Streams,
    budget: int,
    *,
    finding: bool = True,
    alone: int = CheckLimits.processes,
) -> IndependenceTest:
    """Test whether calls on one or two inputs are independent.

    Args:
        calls: Calls of the mechanism.
        inputs: The inputs that evidence is about.
        streams: Random streams by purpose and batch.
        budget: Number of calls of the evidence; the tests use a part of this number.
        finding: Whether the evidence is a finding. The tests are then more thorough.
        alone: The argument ``processes`` of ``runs_in_processes``, for the test of
            stored answers.

    Raises:
        ExhaustedError: If too few runs, or too little time, are left for the tests.
    """
    size = _test_size(budget, seeded=calls.seeded, finding=finding) // 2
    # The runs are divided between the inputs, and each has two outputs.
    counts = [len(part) for part in np.array_split(np.arange(size), len(inputs))]
    seeds = iter(streams("independence", 1).integers(2**63, size=size).tolist())
    runs = []
    for data, count in zip(inputs, counts, strict=True):
        runs += [Run(data, 2, next(seeds)) for _ in range(count)]
    process, started = untouched(calls.mechanism), time.perf_counter()
    rows = calls.runs(runs)
    took = time.perf_counter() - started
    pairs = rows.reshape(size, 2, *rows.shape[1:])
    by_input = np.split(pairs, np.cumsum(counts)[:-1])
    if calls.seeded:
        order = streams("independence", 2).permutation(size).tolist()
        found, apart = _made_again(calls, process, runs, order, pairs, took)
    else:
        max_runs = math.inf if finding else budget // 2
        found, apart = _of_processes(
            calls, process, inputs, took / size, max_runs=max_runs
        )
    dependent = found or independence(by_input)
    constant = all((part == part[0, 0]).all() for part in by_input)
    # Inputs with one output each mean no noise, or an answer that is kept. Only calls
    # in processes of their own distinguish the two.
    if finding and constant and not dependent and apart:
        processes = runs_in_processes(alone, seeded=calls.seeded) // 2
        seeds = streams("independence", 3).integers(2**63, size=processes)
        dependent = _keeps_its_answers(calls, process, inputs, seeds)
    return IndependenceTest(
        f"{calls.name}: {dependent}" if dependent else "", constant, apart
    )


def _keeps_its_answers(
    calls: Calls, process: Untouched, inputs: Sequence[Any], seeds: Any
) -> str:
    """Test whether a mechanism stores its answers, if each input had one output so far.

    The same calls are made twice: in the usual process of the mechanism, and each in a
    separate process in which the mechanism was never called. With the same generator,
    the outputs of a seeded mechanism must be equal. For a mechanism that draws from
    elsewhere, suppose that all usual calls have the same output, and m of the separate
    calls another one. If calls are independent, each of these m calls could as well
    have been a usual one. Both kinds of calls have the same number, so the probability
    that all m are separate ones is at most 2^-m.

    Returns:
        Text of the dependence, or '' if none was found.
    """
    parts = np.array_split(seeds, len(inputs))
    runs = []
    for data, part in zip(inputs, parts, strict=True):
        runs += [Run(data, 1, seed) for seed in part.tolist()]
    here = calls.runs(runs)
    there = process.rows(calls, [[run] for run in runs], _patience(0.0), afresh=True)
    if there is None:
        return ""
    both = zip(here, there, strict=True)
    differ = sum(one.tobytes() != other[0].tobytes() for one, other in both)
    # With the given generator any difference is proof. A mechanism that draws from
    # elsewhere may differ by chance.
    if not calls.seeded:
        by_input = np.split(here, np.cumsum([*map(len, parts)])[:-1])
        has_one_output = all(len(np.unique(rows, axis=0)) == 1 for rows in by_input)
        if not has_one_output or 2.0**-differ >= FALSE_ALARM:
            return ""
    if not differ:
        return ""
    return f"{differ:,} of {len(runs):,} calls gave other outputs in processes in which it had never been called. {REMEDY}"


def _patience(took: float) -> float:
    """Return the time limit of an untouched process, in seconds.

    Args:
        took: Seconds that the same calls took in the usual process.
    """
    return CheckLimits.seconds + 20.0 * took


def _made_again(
    calls: Calls,
    process: Untouched,
    runs: Sequence[Run],
    order: Sequence[int],
    pairs: Array,
    took: float,
) -> tuple[str, bool]:
    """Test whether calls have the same outputs when they are made again.

    They are made in another order, and in an untouched process if possible.

    Args:
        calls: The calls of the mechanism.
        process: The untouched process.
        runs: The calls, of two outputs each.
        order: The indices of the calls in their new order.
        pairs: The outputs of the first calls, shape (calls, 2, ...).
        took: Seconds that the first calls took.

    Returns:
        Text of the dependence if outputs differ, else ''; and whether the calls were
        repeated in the untouched process.
    """
    half = len(runs) // 2
    again = [runs[place] for place in order]
    # One more output in the middle exposes a state that alternates from call to call.
    again.insert(half, Run(runs[0].data, 1, 0))
    there = process.rows(calls, [again], _patience(took))
    repeated = there[0] if there else calls.runs(again)
    # The additional output is dropped before the comparison.
    others = np.delete(repeated, 2 * half, axis=0).reshape(pairs.shape)
    first = pairs[order]
    with np.errstate(invalid="ignore"):
        scale = np.nan_to_num(np.abs(first), posinf=0.0).max(axis=(0, 1))
        same = np.isclose(first, others, rtol=SAME, atol=SAME * scale, equal_nan=True)
    differ = int((~same.reshape(len(runs), -1).all(axis=1)).sum())
    apart = there is not None
    if not differ:
        return "", apart
    where = ", in a process in which it had never been called" if there else ""
    return (
        f"{differ:,} of {len(runs):,} calls gave other outputs when they were made again, with the same generators in "
        f"another order{where}. {REMEDY}"
    ), apart


REMEDY = (
    "So outputs depend on the calls before: by a cache, a counter, or noise that is kept. Such calls are no independent "
    "runs, and nothing was tested by them; a mechanism that gives its first noisy answer for ever may well be private in "
    "use. Wrap it so that every call starts afresh: clear the cache, or make a new object"
)


def _of_processes(
    calls: Calls,
    process: Untouched,
    inputs: Sequence[Any],
    each: float,
    *,
    max_runs: float,
) -> tuple[str, bool]:
    """Compare two outputs of one untouched process with those of other processes.

    Args:
        calls: The calls of the mechanism.
        process: The untouched process, which forks the other ones.
        inputs: The inputs.
        each: Seconds that a call took in the usual process.
        max_runs: Largest number of runs; the test is left out if it needs more.

    Returns:
        Text of the dependence, or ''; and whether the test was made.
    """
    processes = CheckLimits.processes // len(inputs)
    part = [Run(data, 1, number) for data in inputs for number in range(2)]
    if processes * len(part) > max_runs:
        return "", False
    patience = _patience(each * len(part))
    found = process.rows(calls, [part] * processes, patience)
    if found is None:
        return "", False
    shape = processes, len(inputs), 2, *found[0].shape[1:]
    by_input = np.stack(found).reshape(shape).swapaxes(0, 1)
    if alike(_ranked(list(by_input))) < math.log(1 / FALSE_ALARM):
        return "", True
    return (
        f"two outputs of one process are more alike than those of {processes} processes, in all of which it had never been "
        f"called, as independent ones are once in {1 / FALSE_ALARM:,.0f} times. {REMEDY}"
    ), True


def alike(sides: Sequence[Floats]) -> float:
    """Return a log e-value against independence of the outputs of one process.

    It is large if the two outputs of a process are more similar than outputs of two
    processes.

    Null hypothesis: given the state that all processes share, such as a generator that
    draws the same in all, the second outputs of all processes are independent of the
    first outputs, and have one law. Then every assignment of second outputs to
    processes has the same probability. Assign them one after the other: given the
    earlier assignments, each remaining second output comes next with the same
    probability. Let f(a, b) >= 0 score a first and a second output. The score of the
    assigned pair, divided by the mean score over the remaining second outputs, has
    expectation 1. So has the product over all processes and inputs, and the average of
    two such products. Their scores are for equal outputs and for near ranks. An e-value
    is 10^6 or more with probability at most 10^-6 (Markov).

    Args:
        sides: The ranks of the outputs on every input, each of shape (processes, 2,
            numbers).
    """
    logs = np.zeros(2)
    for side in sides:
        apart = np.abs(side[:, None, 0] - side[None, :, 1])
        near = np.zeros(apart.shape[:2])
        if side.shape[2]:
            near = apart.mean(axis=2) / (2 * len(side))
        # The first score is 1 for equal outputs and 0.01 for others. The second score
        # falls with the distance of the ranks.
        equal = np.where((apart == 0).all(axis=2), 0.0, math.log(0.01))
        log_f = np.stack([equal, -20.0 * near])
        for k in range(len(side)):
            mean = logsumexp(log_f[:, k, k:], axis=1) - math.log(len(side) - k)
            logs += log_f[:, k, k] - mean
    return float(logsumexp(logs) - math.log(2))


def check_seeded(calls: Calls, data: Any, seed: int, *, probes: int = PROBES) -> None:
    """Check that two calls of ``probes`` outputs are equal if their generators are.

    If they were not equal, no finding could be reproduced, and equal seeds would pass
    or fail at random. The numbers of draws must be equal, too: a mechanism that draws
    only on its first call on an input stores its answers. Nothing is checked for a
    mechanism that is declared with ``unseeded``.

    Raises:
        MechanismError: If outputs or numbers of draws differ.
    """
    if not calls.seeded:
        return
    same, equally = calls.repeated(data, seed, probes)
    if not same:
        raise MechanismError(
            f"{calls.name}: gave different outputs with two generators of one state, so it draws from elsewhere than the "
            "rng that it is given, or keeps state between calls; draw everything from rng, or declare with "
            "auditdp.unseeded(f) that it cannot"
        )
    if not equally:
        raise MechanismError(
            f"{calls.name}: gave the same outputs twice but drew randomness only once, so it remembers its answers; every "
            "call must be a fresh run: remove the cache"
        )


def check_batch(
    calls: Calls, data: Any, rng: np.random.Generator, *, few: int = 12, size: int = 64
) -> None:
    """Check that outputs of one call differ, if outputs of single calls do.

    One call of ``size`` outputs is compared with ``size`` calls of one output. If the
    calls are independent and the most frequent output has probability p, a false alarm
    has probability p^64 P(Bin(64, p) <= 48), at most 1.2e-6 (at p = .85). A smaller
    check with ``few`` outputs comes first. It ends the check if the outputs of one call
    are not all equal, or if those of single calls are.

    Raises:
        MechanismError: If all outputs of one call are equal, but at most three quarters
            of those of single calls are.
    """
    # A small batch nearly always settles the question at little cost.
    for each in (few, size):
        batch = calls(data, each, rng).reshape(each, -1)
        if len(np.unique(batch, axis=0)) > 1:
            return
        rows = [calls(data, 1, rng) for _ in range(each)]
        singles = np.concatenate(rows).reshape(each, -1)
        _, counts = np.unique(singles, axis=0, return_counts=True)
        if counts.max() == each:
            return
    if counts.max() <= 3 * size // 4:
        raise MechanismError(
            f"{calls.name}: all {size} outputs of one call are equal while single calls differ; the call must return "
            "independent runs: draw fresh noise for each of its size outputs"
        )


def independence(rows: Sequence[Array]) -> str:
    """Test whether outputs of one call, or of consecutive calls, are independent.

    Null hypothesis: all outputs on one input are independent and have one law.

    Args:
        rows: The outputs on every input, from calls of two outputs each, in the order
            of the calls; each of shape (calls, 2, ...).

    Returns:
        Text of the dependence, or '' if none was found.
    """
    for side in rows:
        # Eleven calls have the same two outputs, and the two differ. Each call after
        # the first has this pair with probability at most 1/4, all together 4^-10.
        same = len(side) >= 11 and (side == side[0]).all()
        if same and (side[0, 0] != side[0, 1]).any():
            return (
                f"gives the same {len(side)} times two outputs whatever generator it is given, so it seeds one of its own; "
                "draw everything from the rng that it is given"
            )
    sides = _ranked(rows)
    # The second output of a call and the first of the next are consecutive, too.
    neighbours = {
        "outputs of one call": [(side[:, 0], side[:, 1]) for side in sides],
        "outputs of consecutive calls": [(side[:-1, 1], side[1:, 0]) for side in sides],
    }
    found = _unlike(neighbours)
    if not found:
        return ""
    calls = sum(map(len, rows))
    return (
        f"{found} (in {calls} calls of two outputs); every output must be a run of its own, with fresh noise and nothing "
        "kept from the runs before, else nothing is tested"
    )


def _ranked(rows: Sequence[Array]) -> list[Floats]:
    """Return the rank of every number in its column, separately for each input.

    NaN has the rank of infinity, the last one.
    """
    ranked = []
    for side in rows:
        width = math.prod(side.shape[2:])
        flat = side.reshape(len(side) * 2, width).astype(np.float64)
        ranks = _ranks(np.nan_to_num(flat, nan=np.inf))
        ranked.append(ranks.reshape(len(side), 2, width))
    return ranked


def _ranks(rows: Floats) -> Floats:
    """Return the rank of every number in its column, from 1.

    Equal numbers have the mean of their ranks. ``scipy.stats.rankdata`` returns the
    same, but its import takes longer than a small audit.
    """
    order = np.argsort(rows, axis=0)
    ordered = np.take_along_axis(rows, order, axis=0)
    places = np.arange(len(rows))[:, None]
    parted, end = ordered[1:] != ordered[:-1], np.ones((1, rows.shape[1]), bool)
    # The first and the last place of each run of equal numbers.
    starts = np.where(np.concatenate([end, parted]), places, 0)
    first = np.maximum.accumulate(starts, axis=0)
    ends = np.where(np.concatenate([parted, end]), places, len(rows))
    last = np.minimum.accumulate(ends[::-1], axis=0)[::-1]
    ranks = np.empty(rows.shape)
    np.put_along_axis(ranks, order, (first + last) / 2 + 1, axis=0)
    return ranks


def _unlike(neighbours: Mapping[str, Sequence[tuple[Floats, Floats]]]) -> str:
    """Test whether near outputs are more or less similar than distant ones.

    Let (a, b) be two outputs that are near each other, and (a', b') two others, half of
    the list later. If outputs are independent and have one law, exchanging b and b'
    changes nothing. So Z = d(a, b') + d(a', b) − d(a, b) − d(a', b') has the same
    probability as −Z, given |Z|, for any distance d that does not depend on the order
    of the outputs. Hence P(|Σ Z| ≥ x √ΣZ²) ≤ 2 exp(−x²/2) (Hoeffding 1963, Theorem 2,
    for Σ ± |Z|), for any number of outputs and of inputs. The distances are: between
    the ranks of each of the first eight numbers of an output, the sum of these over all
    numbers, and 1 if two outputs differ, else 0.

    Args:
        neighbours: For each relation, by its name, the ranks of the first and of the
            second outputs on each input.

    Returns:
        Text of the first relation that is not as for independent outputs, or ''.
    """
    standard, tests = {}, 0
    for name, sides in neighbours.items():
        excess = np.concatenate([_excess(first, second) for first, second in sides])
        size = np.sqrt((excess**2).sum(axis=0))
        sums, zeros = excess.sum(axis=0), np.zeros_like(size)
        standard[name] = np.divide(sums, size, out=zeros, where=size > 0)
        tests += len(size)
    # All tests together have the false alarm rate.
    enough = math.sqrt(2 * math.log(2 * tests / FALSE_ALARM))
    for name, values in standard.items():
        worst = values[np.argmax(np.abs(values))]
        if abs(worst) >= enough:
            return (
                f"{name} are {'more' if worst > 0 else 'less'} alike than outputs of distant calls, as independent ones are "
                f"once in {1 / FALSE_ALARM:,.0f} times"
            )
    return ""


def _excess(first: Floats, second: Floats) -> Floats:
    half = len(first) // 2
    # (a, b) are outputs near each other, and (c, d) those half of the list later.
    a, c = first[:half], first[half : 2 * half]
    b, d = second[:half], second[half : 2 * half]
    return _distances(a, d) + _distances(c, b) - _distances(a, b) - _distances(c, d)


def _distances(a: Floats, b: Floats) -> Floats:
    """Return the distances that ``_unlike`` defines, shape (n, distances)."""
    apart = np.abs(a - b)
    by_number = apart[:, :8]
    return np.column_stack([by_number, apart.sum(axis=1), (apart > 0).any(axis=1)])
