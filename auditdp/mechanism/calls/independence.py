"""What evidence assumes of a mechanism's calls, looked at: their randomness is the given one, and they are independent.

Before any play, calls with generators of one state have to give the same outputs (``check_calls``). Before anything is
believed, be it a refutation, a bound or a proof of equivalence, ``look`` asks whether calls depend on each other:

- A mechanism that draws from the generator alone that it is given is a function of that and of its input. So runs that are
  made again, in another order and in a process in which it was never called, have the same outputs; else they depend on the
  calls before (a cache, a counter, noise that is kept). There is no false alarm.
- For one that draws from elsewhere, two outputs of one process in which it was never called are compared with those of
  other such processes: where calls are independent, they are no more alike.
- For both, outputs of one call, and of consecutive calls, are compared with those of distant ones.
- A finding on inputs that have one output each is about a mechanism without noise, or about one that remembers its answers.
  Calls in processes of their own tell the two apart (``_keeps_its_answers``).

Tests of the last two kinds have a false alarm rate of ``FALSE_ALARM`` at most where calls are independent; what passes is
still an assumption, which evidence names. No test can tell a mechanism that drew its noise before all calls (when it was
imported, or from the data by a seed) from one that has none: both give an input one output.
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
from auditdp.mechanism.calls.untouched import Untouched, untouched
from auditdp.mechanism.protocol import Array, is_vectorised
from auditdp.numerics.arrays import Floats
from auditdp.numerics.streams import Streams

FALSE_ALARM = 1e-6
"""Probability that a test here takes independent calls for dependent ones, at most."""
COORDINATES = 8
"""Numbers of an output that are looked at one by one."""
SHARE, SHARE_UNSEEDED = 50, 8
"""A fiftieth of an audit's calls shows whether they are independent; an eighth where a finding has statistics alone."""
FEWEST, MOST, MOST_UNSEEDED = 4, 1_024, 2_048
"""Outputs that are made for that: at least, at most, and at most where a mechanism draws from elsewhere."""
FEWEST_ALIKE = 11
"""Calls with the same two outputs, which differ, that no chance explains: each has at most 1/4, all of them 4^-10."""
LEAST_BUDGET = 40
"""Calls from which on a clean game looks whether they are independent."""
PROCESSES = 40
"""First outputs of untouched processes, on all inputs: 40 bits with P(1) = .27 that are kept have e-values around 10^8."""
MORE_ALONE = 5
"""Times as many processes where a mechanism draws from elsewhere: 5 ln(10^4) are expected to differ there, and fewer than
the 20 that chance explains once in 10^6 times differ with probability 10^-4."""
UNEQUAL, NEARNESS = math.log(0.01), 20.0
"""What is bet on outputs of one process that differ, relative to equal ones, and how bets fall with what they differ by."""
PATIENCE, SLOWER = 10.0, 20.0
"""Seconds that an untouched process has for calls, and how many times as long as they took here in addition."""
SAME = 1e-9
"""Relative difference between two outputs of one run that rounding explains."""


@dataclass(frozen=True)
class Look:
    """What a look at the independence of calls has shown."""

    dependent: str
    """How calls depend on each other, and what to do about it; empty where nothing was seen."""
    constant: bool
    """Whether every input had one output."""
    untouched: bool
    """Whether calls were made in processes of their own, too, and these were enough to show answers that are kept."""


def check_calls(
    calls: Calls, inputs: Sequence[Any], streams: Streams, *, probes: int = PROBES
) -> None:
    """Raise where calls on the first two inputs do not draw their randomness from the given generator, or share it all.

    How outputs are represented is decided here, by what they look like on all of these inputs. ``probes`` outputs are made
    twice on each of two inputs.

    Raises:
        MechanismError: If they are not as evidence assumes.
    """
    untouched(calls.mechanism).start()
    for number, data in enumerate(inputs[:2]):
        seed = int(streams("same generator", number).integers(2**63))
        calls.outcomes(partial(check_seeded, calls, data, seed, probes=probes))
    calls.look(inputs, streams("shape", 0))
    if is_vectorised(calls.mechanism):  # else one call of many outputs is many calls
        check_batch(calls, inputs[0], streams("independence", 0))


def runs_to_look(budget: int, *, seeded: bool, finding: bool = True) -> int:
    """Return how many runs a look at the independence of calls takes, at most, but for those ``alone``."""
    outputs = _outputs(budget, seeded=seeded, finding=finding)
    return 2 * outputs + 1 if seeded else outputs + 2 * PROCESSES


def runs_in_processes(processes: int, *, seeded: bool) -> int:
    """Return how many runs it takes to ask so many processes whether answers are kept."""
    return 2 * (processes if seeded else MORE_ALONE * processes)


def _outputs(budget: int, *, seeded: bool, finding: bool) -> int:
    unseeded = finding and not seeded
    most = (
        min(budget // SHARE_UNSEEDED, MOST_UNSEEDED)
        if unseeded
        else min(budget // SHARE, MOST)
    )
    return max(most // 2 * 2, FEWEST)


def look(
    calls: Calls,
    inputs: Sequence[Any],
    streams: Streams,
    budget: int,
    *,
    finding: bool = True,
    alone: int = PROCESSES,
) -> Look:
    """Look whether calls on these one or two inputs are independent.

    Args:
        calls: Of the mechanism.
        inputs: Those that evidence is about.
        streams: Randomness.
        budget: Calls that the evidence has.
        finding: Whether something was found, so that more depends on the calls.
        alone: Processes that look at a finding on inputs with one output each, by one call in each.

    Raises:
        ExhaustedError: If fewer runs, or less time, are left than that takes.
    """
    outputs = _outputs(budget, seeded=calls.seeded, finding=finding)
    counts = [
        len(part) for part in np.array_split(np.arange(outputs // 2), len(inputs))
    ]
    seeds = iter(streams("independence", 1).integers(2**63, size=outputs // 2).tolist())
    runs = [
        Run(data, 2, next(seeds))
        for data, count in zip(inputs, counts, strict=True)
        for _ in range(count)
    ]
    started, process = time.perf_counter(), untouched(calls.mechanism)
    rows = calls.runs(runs)
    took = time.perf_counter() - started
    by_input = [
        part.reshape(len(part) // 2, 2, *part.shape[1:])
        for part in np.split(rows, np.cumsum(counts)[:-1] * 2)
    ]
    if calls.seeded:
        order = streams("independence", 2).permutation(len(runs)).tolist()
        found, elsewhere = _made_again(calls, process, runs, order, rows, took)
    else:
        most_of_processes = math.inf if finding else budget // 2
        found, elsewhere = _of_processes(
            calls, process, inputs, took / len(runs), most=most_of_processes
        )
    dependent = found or independence(by_input) or ""
    constant = all((part == part[0, 0]).all() for part in by_input)
    if finding and constant and not dependent and elsewhere:
        processes = runs_in_processes(alone, seeded=calls.seeded) // 2
        seeds = streams("independence", 3).integers(2**63, size=processes).tolist()
        dependent = _keeps_its_answers(calls, process, inputs, seeds)
    return Look(f"{calls.name}: {dependent}" if dependent else "", constant, elsewhere)


def _keeps_its_answers(
    calls: Calls, process: Untouched, inputs: Sequence[Any], seeds: Sequence[int]
) -> str:
    """Return how calls depend on each other where every input had one output.

    The same calls are made here, and each in a process of its own, in which the mechanism had never been called. With the
    same generators they have the same outputs. Where a mechanism draws from elsewhere, and gave one output here all the
    time, those that differ could as well have been made here: that all m of them were made there, of as many calls here
    and there, has probability 2^-m at most.
    """
    parts = [part.tolist() for part in np.array_split(np.asarray(seeds), len(inputs))]
    runs = [
        Run(data, 1, seed)
        for data, part in zip(inputs, parts, strict=True)
        for seed in part
    ]
    here = calls.runs(runs)
    found = process.rows(calls, [[run] for run in runs], PATIENCE, afresh=True)
    if found is None:
        return ""
    differ = sum(
        one.tobytes() != other[0].tobytes()
        for one, other in zip(here, found, strict=True)
    )
    of_inputs = np.split(here, np.cumsum([*map(len, parts)])[:-1])
    has_one_output = all(len(np.unique(rows, axis=0)) == 1 for rows in of_inputs)
    if not differ or not (
        calls.seeded or (has_one_output and 2.0**-differ < FALSE_ALARM)
    ):
        return ""
    return f"{differ:,} of {len(runs):,} calls gave other outputs in processes in which it had never been called. {REMEDY}"


def _made_again(
    calls: Calls,
    process: Untouched,
    runs: Sequence[Run],
    order: Sequence[int],
    rows: Array,
    took: float,
) -> tuple[str, bool]:
    """Make the same runs in another order, in an untouched process where that can be; say whether outputs differ."""
    again, half = [runs[place] for place in order], len(runs) // 2
    again.insert(
        half, Run(runs[0].data, 1, 0)
    )  # what alternates from call to call is another for one of the halves
    there = process.rows(calls, [again], PATIENCE + SLOWER * took)
    others = np.delete(
        there[0] if there else calls.runs(again), 2 * half, axis=0
    ).reshape(len(runs), 2, *rows.shape[1:])
    first = rows.reshape(others.shape)[order]
    with np.errstate(invalid="ignore"):
        scale = np.nan_to_num(np.abs(first), posinf=0.0).max(axis=(0, 1))
        same = np.isclose(first, others, rtol=SAME, atol=SAME * scale, equal_nan=True)
    differ = int((~same.reshape(len(runs), -1).all(axis=1)).sum())
    if not differ:
        return "", there is not None
    where = ", in a process in which it had never been called" if there else ""
    return (
        f"{differ:,} of {len(runs):,} calls gave other outputs when they were made again, with the same generators in "
        f"another order{where}. {REMEDY}"
    ), there is not None


REMEDY = (
    "So outputs depend on the calls before: by a cache, a counter, or noise that is kept. Such calls are no independent "
    "runs, and nothing was tested by them; a mechanism that gives its first noisy answer for ever may well be private in "
    "use. Wrap it so that every call starts afresh: clear the cache, or make a new object"
)


def _of_processes(
    calls: Calls, process: Untouched, inputs: Sequence[Any], each: float, *, most: float
) -> tuple[str, bool]:
    """Compare two outputs of one untouched process with those of others; say how they depend, and whether any were made."""
    processes = PROCESSES // len(inputs)
    part = [Run(data, 1, number) for data in inputs for number in range(2)]
    if processes * len(part) > most:
        return "", False
    found = process.rows(
        calls, [part] * processes, PATIENCE + SLOWER * each * len(part)
    )
    if found is None:
        return "", False
    by_input = (
        np.stack(found)
        .reshape(processes, len(inputs), 2, *found[0].shape[1:])
        .swapaxes(0, 1)
    )
    if alike(_ranked(list(by_input))) < math.log(1 / FALSE_ALARM):
        return "", True
    return (
        f"two outputs of one process are more alike than those of {processes} processes, in all of which it had never been "
        f"called, as independent ones are once in {1 / FALSE_ALARM:,.0f} times. {REMEDY}"
    ), True


def alike(sides: Sequence[Floats]) -> float:
    """Return the log e-value that two outputs of one process are more alike than those of different ones.

    Null hypothesis: the second outputs of all processes are independent of the first and alike, given what all processes
    share (a generator that draws the same in all). Then they could be in any order. Let them be dealt out to the first
    outputs one after the other: given those dealt out before, each of the others comes next with the same probability. So
    f(a, b) of the pair that came, divided by the mean of f over those that could have come, has mean 1, for any f ≥ 0; so
    has the product over all processes and inputs, and the average of such products over two f: of equal outputs, and of
    near ranks. An e-value is 10^6 or more with probability 10^-6 at most (Markov).

    ``sides`` are the ranks of the outputs on every input, each shape (processes, 2, numbers).
    """
    logs = np.zeros(2)
    for side in sides:
        apart = np.abs(side[:, None, 0] - side[None, :, 1])
        near = (
            apart.mean(axis=2) / (2 * len(side))
            if side.shape[2]
            else np.zeros(apart.shape[:2])
        )
        log_f = np.stack(
            [np.where((apart == 0).all(axis=2), 0.0, UNEQUAL), -NEARNESS * near]
        )
        for k in range(len(side)):
            logs += (
                log_f[:, k, k]
                - logsumexp(log_f[:, k, k:], axis=1)
                + math.log(len(side) - k)
            )
    return float(logsumexp(logs) - math.log(2))


def check_seeded(calls: Calls, data: Any, seed: int, *, probes: int = PROBES) -> None:
    """Raise unless two calls with generators of one state give the same outputs and draw equally much.

    Without that no finding could be reproduced, and equal seeds would pass or fail at random. A mechanism that draws on its
    first call on an input and not on later ones remembers its answers: as many calls as one likes are then one.

    Raises:
        MechanismError: If they do not, and the mechanism was not declared with ``unseeded``.
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
    """Raise if the outputs of one call are all equal, and those of single calls are not.

    Compares one call of ``size`` outputs with ``size`` calls of one output. If the calls are independent and the commonest
    output has probability p, a false alarm has probability p^64 P(Bin(64, p) <= 48), at most 1.2e-6 (at p = .85). Where few
    outputs of one call differ, or few single calls agree, it looks no further.

    Raises:
        MechanismError: If all rows of the batch agree while at most three quarters of the single calls do.
    """
    for each in (few, size):
        batch = calls(data, each, rng).reshape(each, -1)
        if len(np.unique(batch, axis=0)) > 1:
            return
        singles = np.concatenate([calls(data, 1, rng) for _ in range(each)]).reshape(
            each, -1
        )
        _, counts = np.unique(singles, axis=0, return_counts=True)
        if counts.max() == each:
            return
    if counts.max() <= 3 * size // 4:
        raise MechanismError(
            f"{calls.name}: all {size} outputs of one call are equal while single calls differ; the call must return "
            "independent runs: draw fresh noise for each of its size outputs"
        )


def independence(rows: Sequence[Array]) -> str:
    """Return how outputs of one call, or of consecutive calls, depend on each other, from calls of two outputs each.

    Null hypothesis: all outputs on one input are independent and alike.

    ``rows`` are the outputs on every input, each shape (calls, 2, ...), calls one after the other.
    """
    for side in rows:
        if (
            len(side) >= FEWEST_ALIKE
            and (side == side[0]).all()
            and (side[0, 0] != side[0, 1]).any()
        ):
            return (
                f"gives the same {len(side)} times two outputs whatever generator it is given, so it seeds one of its own; "
                "draw everything from the rng that it is given"
            )
    sides = _ranked(rows)
    neighbours = {
        "outputs of one call": [(side[:, 0], side[:, 1]) for side in sides],
        "outputs of consecutive calls": [(side[:-1, 1], side[1:, 0]) for side in sides],
    }
    found = _unlike(neighbours)
    calls = sum(map(len, rows))
    return found and (
        f"{found} (in {calls} calls of two outputs); every output must be a run of its own, with fresh noise and nothing "
        "kept from the runs before, else nothing is tested"
    )


def _ranked(rows: Sequence[Array]) -> list[Floats]:
    """Return the rank of every number among those of its column, for each input by itself; NaN ranks last, with infinity."""
    flat = [
        side.reshape(len(side) * 2, math.prod(side.shape[2:])).astype(np.float64)
        for side in rows
    ]
    ranks = [_ranks(np.nan_to_num(each, nan=np.inf)) for each in flat]
    return [each.reshape(len(each) // 2, 2, each.shape[1]) for each in ranks]


def _ranks(rows: Floats) -> Floats:
    """Return the rank of every number in its column, from 1; equal ones share the mean of theirs.

    ``scipy.stats.rankdata`` returns the same, but its import takes longer than a small audit.
    """
    order = np.argsort(rows, axis=0)
    ordered, places = (
        np.take_along_axis(rows, order, axis=0),
        np.arange(len(rows))[:, None],
    )
    parted, end = ordered[1:] != ordered[:-1], np.ones((1, rows.shape[1]), bool)
    first = np.maximum.accumulate(
        np.where(np.concatenate([end, parted]), places, 0), axis=0
    )
    last = np.where(np.concatenate([parted, end]), places, len(rows))
    last = np.minimum.accumulate(last[::-1], axis=0)[::-1]
    ranks = np.empty(rows.shape)
    np.put_along_axis(ranks, order, (first + last) / 2 + 1, axis=0)
    return ranks


def _unlike(neighbours: Mapping[str, Sequence[tuple[Floats, Floats]]]) -> str:
    """Return which outputs are more or less alike than outputs of distant calls; empty where none are.

    Let (a, b) be two outputs that are near each other and (a', b') two others, half of the list later. Where outputs are
    independent and alike, exchanging b and b' changes nothing, so Z = d(a, b') + d(a', b) − d(a, b) − d(a', b') is as likely
    to be −Z, given |Z|, for any distance d that does not depend on the order of the outputs. Hence
    P(|Σ Z| ≥ x √ΣZ²) ≤ 2 exp(−x²/2) (Hoeffding 1963, Theorem 2, for Σ ± |Z|), for any number of outputs and of inputs.
    Distances are those of the ranks of each of the first numbers of an output, their sum over all numbers, and whether two
    outputs differ.

    ``neighbours`` are these ranks, by what they are: for each input the first and the second.
    """
    width = next(iter(neighbours.values()))[0][0].shape[-1]
    tests = len(neighbours) * (min(width, COORDINATES) + 2)
    enough = math.sqrt(2 * math.log(2 * tests / FALSE_ALARM))
    for what, sides in neighbours.items():
        excess = np.concatenate([_excess(first, second) for first, second in sides])
        size = np.sqrt((excess**2).sum(axis=0))
        standard = np.divide(
            excess.sum(axis=0), size, out=np.zeros_like(size), where=size > 0
        )
        worst = standard[np.argmax(np.abs(standard))]
        if abs(worst) >= enough:
            return (
                f"{what} are {'more' if worst > 0 else 'less'} alike than outputs of distant calls, as independent ones are "
                f"once in {1 / FALSE_ALARM:,.0f} times"
            )
    return ""


def _excess(first: Floats, second: Floats) -> Floats:
    half = len(first) // 2
    (a, b), (c, d) = (
        (first[part], second[part]) for part in (slice(half), slice(half, 2 * half))
    )
    return _distances(a, d) + _distances(c, b) - _distances(a, b) - _distances(c, d)


def _distances(a: Floats, b: Floats) -> Floats:
    """Return the distances between rows of ranks, shape (n, distances)."""
    apart = np.abs(a - b)
    return np.column_stack(
        [apart[:, :COORDINATES], apart.sum(axis=1), (apart > 0).any(axis=1)]
    )
