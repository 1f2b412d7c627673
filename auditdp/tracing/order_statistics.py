"""Noisy values of which the output shows the order alone: the largest of scores, and answers against a noisy threshold.

Such values are charged too much as releases. Whether an output shows only which of them is largest, or which are above
another one, is tried: with other values in the same order the code has to return the same. That is seen, not proved.

**The largest.** Let scores vᵢ have noise of scale b with P(N > t − x) ≤ e^{x/b} P(N > t) for x ≥ 0, as Laplace and
exponential noise have, and let d = v′ − v. Given the other noisy scores, i is the largest where its noise exceeds some t,
and on D′ where it exceeds at most t + max d − dᵢ. So the name of the largest loses (max d − min d)/b: 2Δ/b, and Δ/b where
all scores move in one direction (Dwork & Roth 2014, Claim 3.9).

**Above a threshold.** Let answers vᵢ + Nᵢ be compared with T + N₀, c of them on the rarer side. The map N₀ → N₀ + s with
s = max d on one input, −min d on the other, keeps all on the common side there, at the cost of |s|/b₀; each of the c others
needs s − dᵢ more, so all of it loses max |d|/b₀ + c (max d − min d)/b (Lyu, Su & Li 2017, arXiv:1603.01699v4, Theorem 2).
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from auditdp.numerics.arrays import Floats
from auditdp.tracing.draws import NOISY
from auditdp.tracing.losses import Moved
from auditdp.tracing.noise_families import NOTHING, Loss, moves, same
from auditdp.tracing.outputs import where_differ
from auditdp.tracing.plain_values import ndim
from auditdp.tracing.trace import Trace
from auditdp.tracing.watched_run import TracedRun

TRIALS = 4
"""Other values in the same order that are tried."""
LARGEST, ABOVE = "which is largest", "which are above another one"


def ordered(trace: Trace, recorded: TracedRun, moved: Sequence[Moved]) -> list[Moved]:
    """Return releases with what they lose where the output shows their order alone; the same where it shows more.

    Args:
        trace: Of the function.
        recorded: A run.
        moved: Its releases and those of a replay.
    """
    found = list(moved)
    fit = [k for k, pair in enumerate(found) if _is_score(pair)]
    sites = {found[k].first.site for k in fit}
    by_site = [[k for k in fit if found[k].first.site == site] for site in sites]
    for places in by_site:
        scalars = [k for k in places if not found[k].first.shape]
        for group in ([scalars] if len(scalars) > 1 else []) + [
            [k] for k in places if found[k].first.shape
        ]:
            loss = _of_largest(trace, recorded, [found[k] for k in group])
            if loss is not None:
                _charge(found, group, loss, LARGEST)
    for first, second in itertools.permutations(by_site, 2):
        if (
            any(found[k].only or found[k].first.shape for k in (*first, *second))
            or first[0] > second[0]
        ):
            continue
        loss = _of_above(
            trace, recorded, [found[k] for k in first], [found[k] for k in second]
        )
        if loss is not None:
            _charge(found, [*first, *second], loss, ABOVE)
    return found


def _is_score(pair: Moved) -> bool:
    law = pair.first.law
    return (
        pair.first.kind == NOISY
        and law.family in ("Laplace", "exponential")
        and (not pair.why or law.family == "exponential")
        and ndim(law.scale) == 0
        and float(law.scale) > 0
        and same(law.scale, pair.second.law.scale)
        and pair.first.shape == pair.second.shape
        and pair.first.groups is None
    )


def _charge(found: list[Moved], group: Sequence[int], loss: Loss, only: str) -> None:
    """Put the loss of a group to the release that moves furthest, where it is less than what the releases lose."""
    charged = [pair.loss.epsilon for k in group if (pair := found[k]).loss is not None]
    if len(charged) == len(group) and loss.epsilon >= math.fsum(charged):
        return
    furthest = max(group, key=lambda k: found[k].distance)
    for k in group:
        found[k] = replace(
            found[k], loss=loss if k == furthest else NOTHING, only=only, why=""
        )


def _values(pairs: Sequence[Moved]) -> tuple[Floats, Floats, float] | None:
    """Return the noisy values, how far each moved, and their scale; None where they have several."""
    scales = {float(pair.first.law.scale) for pair in pairs}
    if len(scales) > 1:
        return None
    results = np.concatenate(
        [np.ravel(pair.first.result).astype(float) for pair in pairs]
    )
    moved = [
        (moves(pair.first.location, pair.second.location), pair.first.shape)
        for pair in pairs
    ]
    by = np.concatenate([np.ravel(np.broadcast_to(*each)) for each in moved])
    return (results, by, scales.pop()) if np.isfinite(by).all() else None


def _forced(pairs: Sequence[Moved], values: Floats) -> dict[int, Any]:
    shapes = [pair.first.shape for pair in pairs]
    parts = np.split(values, np.cumsum([int(np.prod(shape)) for shape in shapes])[:-1])
    return {
        p.first.number: v.reshape(s) if s else float(v[0])
        for p, v, s in zip(pairs, parts, shapes, strict=True)
    }


def _of_largest(
    trace: Trace, recorded: TracedRun, pairs: Sequence[Moved]
) -> Loss | None:
    found = _values(pairs)
    if found is None or len(found[0]) < 2:
        return None
    results, by, scale = found
    for sign in (1.0,) if pairs[0].first.law.family == "exponential" else (1.0, -1.0):

        def in_order(rng: np.random.Generator, sign: float = sign) -> Floats:
            best = int(np.argmax(sign * results))
            values = rng.permutation(results) + rng.normal(
                scale=scale, size=len(results)
            )
            values[best] = sign * (np.max(sign * values) + scale * (0.1 + rng.random()))
            return np.asarray(values)

        def forced(
            rng: np.random.Generator, draw: Callable[..., Floats] = in_order
        ) -> dict[int, Any]:
            return _forced(pairs, draw(rng))

        if _is_same(trace, recorded, forced):
            return Loss(float(by.max() - by.min()) / scale)
    return None


def _of_above(
    trace: Trace,
    recorded: TracedRun,
    thresholds: Sequence[Moved],
    answers: Sequence[Moved],
) -> Loss | None:
    found, levels = _values(answers), _values(thresholds)
    if found is None or levels is None:
        return None
    results, by, scale = found
    last = [
        max(
            (k for k, t in enumerate(thresholds) if t.first.number < a.first.number),
            default=0,
        )
        for a in answers
    ]
    above = results >= levels[0][last]

    def on_the_same_side(rng: np.random.Generator) -> dict[int, Any]:
        level = levels[0] + rng.normal(scale=scale, size=len(thresholds))
        away = scale * (0.01 + rng.exponential(size=len(answers)))
        return _forced(thresholds, level) | _forced(
            answers, level[last] + np.where(above, away, -away)
        )

    if not _is_same(trace, recorded, on_the_same_side):
        return None
    total = 0.0
    for k in set(last):
        own = np.array(last) == k
        away = by[own] - levels[1][k]
        rarer = max(1, min(above[own].sum(), (~above[own]).sum()))
        total += (
            float(np.abs(away).max()) / levels[2]
            + rarer * float(max(away.max(), 0) - min(away.min(), 0)) / scale
        )
    return Loss(total)


def _is_same(
    trace: Trace,
    recorded: TracedRun,
    draw: Callable[[np.random.Generator], dict[int, Any]],
) -> bool:
    """Return whether the code returns the same with other noisy values."""
    rng = np.random.default_rng(0)
    tried = (
        trace.replay(recorded.data, recorded, forced=draw(rng)) for _ in range(TRIALS)
    )
    return all(where_differ(recorded.output, run.output) is None for run in tried)
