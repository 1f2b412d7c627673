"""What evidence assumes of a mechanism's calls, looked at: their randomness is the given one, and they are independent.

Every test here has a false alarm rate of some 1e-6 at most for a mechanism that is as assumed; what passes is still an
assumption, which evidence names.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.stats import rankdata

from auditdp.calls.calls import PROBES, Calls
from auditdp.calls.inputs import difference
from auditdp.errors import MechanismError
from auditdp.randomness import Streams

FALSE_ALARM = 1e-6
"""Probability that a test here refuses a mechanism that is as assumed, at most."""
COORDINATES = 8
"""Numbers of an output that are looked at one by one."""
SHARE = 50
"""A fiftieth of an audit's calls shows whether they are independent."""
FEWEST, MOST, OF_A_FINDING = 16, 1_024, 2_048
"""Outputs that are worth a test of independence; that are made for one before anything was found; and after that."""
Floats = NDArray[np.float64]


def check_calls(calls: Calls, inputs: Sequence[Any], streams: Streams, budget: int) -> int:
    """Raise where calls on these inputs are not what evidence assumes, as far as a fiftieth of the budget shows.

    Args:
        calls: The calls; how their outputs are represented is decided here.
        inputs: One or two inputs.
        streams: Randomness by (purpose, number).
        budget: Calls that the audit makes.

    Returns:
        Outputs that were made for the test of independence.

    Raises:
        MechanismError: If they are not.
    """
    for number, data in enumerate(inputs):
        seed = int(streams("same generator", number).integers(2**63))
        calls.outcomes(partial(check_seeded, calls, data, seed))
    calls.look(inputs, streams("shape", 0))
    check_batch(calls, inputs[0], streams("independence", 0))
    return check_share(calls, inputs[0], streams, budget)


def check_share(calls: Calls, data: Any, streams: Streams, budget: int) -> int:
    """Look at the independence of calls with a fiftieth of a budget; return how many outputs were made, 0 for small ones.

    Raises:
        MechanismError: If calls are not independent.
    """
    count = min(budget // SHARE, MOST) // 2
    if 2 * count < FEWEST:
        return 0
    check_independence(calls, data, streams("independence", 1), count=count)
    return 2 * count


def check_finding(calls: Calls, inputs: Sequence[Any], streams: Streams, budget: int) -> int:
    """Look at the independence of calls on these inputs again, with as many as an unconfirmed finding is worth.

    Returns:
        Outputs that were made.

    Raises:
        MechanismError: If calls are not independent: then the finding is about them, and not about single runs.
    """
    count = max(min(budget // 2, OF_A_FINDING) // 2, 1)
    for number, data in enumerate(inputs):
        check_independence(calls, data, streams("independence of a finding", number), count=count)
    return 2 * count * len(inputs)


def check_seeded(calls: Calls, data: Any, seed: int) -> None:
    """Raise unless two calls with generators of one state give the same outputs and draw equally much.

    Without that no finding could be reproduced, and equal seeds would pass or fail at random. A mechanism that draws on its
    first call on an input and not on later ones remembers its answers: as many calls as one likes are then one.

    Raises:
        MechanismError: If they do not, and the mechanism was not declared with ``unseeded``.
    """
    if not calls.seeded:
        return
    generators = [np.random.default_rng(seed) for _ in range(2)]
    once, again = (calls.outputs(data, PROBES, rng) for rng in generators)
    if difference(once, again) is not None:
        raise MechanismError(
            f"{calls.name}: gave different outputs with two generators of one state, so it draws from elsewhere than the "
            "rng that it is given, or keeps state between calls; draw everything from rng, or declare with "
            "auditdp.unseeded(f) that it cannot"
        )
    if generators[0].bit_generator.state != generators[1].bit_generator.state:
        raise MechanismError(
            f"{calls.name}: gave the same outputs twice but drew randomness only once, so it remembers its answers; every "
            "call must be a fresh run: remove the cache"
        )


def check_batch(calls: Calls, data: Any, rng: np.random.Generator, *, size: int = 64) -> None:
    """Raise if the outputs of one call are all equal, and those of single calls are not.

    Compares one call of ``size`` outputs with ``size`` calls of one output. If the calls are independent and the commonest
    output has probability p, a false alarm has probability p^64 P(Bin(64, p) <= 48), at most 1.2e-6 (at p = .85).

    Raises:
        MechanismError: If all rows of the batch agree while at most three quarters of the single calls do.
    """
    batch = calls(data, size, rng).reshape(size, -1)
    if len(np.unique(batch, axis=0)) > 1:
        return
    singles = np.concatenate([calls(data, 1, rng) for _ in range(size)]).reshape(size, -1)
    _, counts = np.unique(singles, axis=0, return_counts=True)
    if counts.max() <= 3 * size // 4:
        raise MechanismError(
            f"{calls.name}: all {size} outputs of one call are equal while single calls differ; the call must return "
            "independent runs: draw fresh noise for each of its size outputs"
        )


def check_independence(calls: Calls, data: Any, rng: np.random.Generator, *, count: int) -> None:
    """Raise if outputs of one call, or of consecutive calls, are more or less alike than outputs of distant calls.

    Null hypothesis: all outputs are independent and alike. ``count`` calls of two outputs are made one after the other. Let
    (a, b) be the outputs of one call, or the last output of a call and the first of the next, and (a', b') those of another,
    ``count``/2 calls later. Under the null, exchanging b and b' changes nothing, so Z = d(a, b') + d(a', b) − d(a, b) −
    d(a', b') is as likely to be −Z, given |Z|, for any distance d that does not depend on the order of the outputs. Hence
    P(|Σ Z| ≥ x √ΣZ²) ≤ 2 exp(−x²/2) (Hoeffding 1963, Theorem 2, for Σ ± |Z|), for any number of calls. Distances are those
    of the ranks of each of the first numbers of an output, their sum over all numbers, and whether two outputs differ.

    Raises:
        MechanismError: If they are.
    """
    rows = np.stack([calls(data, 2, rng).reshape(2, -1) for _ in range(count)]).astype(np.float64)
    if count > 1 and (rows == rows[0]).all() and (rows[0, 0] != rows[0, 1]).any():
        raise MechanismError(
            f"{calls.name}: gives the same {count} times two outputs whatever generator it is given, so it seeds one of its "
            "own; draw everything from the rng that it is given"
        )
    columns = _columns(rows.reshape(2 * count, -1)).reshape(count, 2, -1)
    neighbours = {
        "outputs of one call": (columns[:, 0], columns[:, 1]),
        "outputs of consecutive calls": (columns[:-1, 1], columns[1:, 0]),
    }
    tests = len(neighbours) * (min(columns.shape[-1], COORDINATES) + 2)
    enough = math.sqrt(2 * math.log(2 * tests / FALSE_ALARM))
    for what, (first, second) in neighbours.items():
        half = len(first) // 2
        (a, b), (c, d) = ((first[part], second[part]) for part in (slice(half), slice(half, 2 * half)))
        excess = _distances(a, d) + _distances(c, b) - _distances(a, b) - _distances(c, d)
        size = np.sqrt((excess**2).sum(axis=0))
        standard = np.divide(excess.sum(axis=0), size, out=np.zeros_like(size), where=size > 0)
        worst = int(np.argmax(np.abs(standard)))
        if abs(standard[worst]) >= enough:
            alike = "more" if standard[worst] > 0 else "less"
            raise MechanismError(
                f"{calls.name}: {what} are {alike} alike than outputs of distant calls (in {count} calls of two outputs; "
                f"once in {1 / FALSE_ALARM:,.0f} for independent ones); every output must be a run of its own, with fresh "
                "noise and nothing kept from the runs before"
            )


def _columns(rows: Floats) -> Floats:
    """Return the rank of every number among those of its column, shape (n, d); NaN ranks last, beside infinity."""
    return np.asarray(rankdata(np.nan_to_num(rows, nan=np.inf), axis=0)) if rows.shape[1] else rows


def _distances(a: Floats, b: Floats) -> Floats:
    """Return the distances between rows of ranks, shape (n, distances)."""
    apart = np.abs(a - b)
    return np.column_stack([apart[:, :COORDINATES], apart.sum(axis=1), (apart > 0).any(axis=1)])
