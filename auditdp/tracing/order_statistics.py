"""Loss of noisy values of which the output reveals only the order.

There are two cases: the place of the largest score, and answers that are compared with
a noisy threshold. Charged as releases, such values would lose too much. So runs with
other values in the same order test whether the output stays the same. If it does, the
output is taken to reveal only which value is the largest, or which values are above
another one. That is observed, not proved.

**The largest.** Let scores vᵢ have noise of scale b with P(N > t − x) ≤ e^{x/b} P(N >
t) for x ≥ 0, as Laplace and exponential noise have, and let d = v′ − v. Given the other
noisy scores, i is the largest if its noise exceeds some t, and on D′ if it exceeds at
most t + max d − dᵢ. So the name of the largest loses (max d − min d)/b: 2Δ/b, and Δ/b
if all scores move in one direction (Dwork & Roth 2014, Claim 3.9).

**Above a threshold.** Let answers vᵢ + Nᵢ be compared with T + N₀, c of them on the
rarer side. The map N₀ → N₀ + s costs |s|/b₀. With s = max d it keeps all answers below
the threshold there, and with s = min d all answers above. Each of the c answers on the
rarer side needs a shift of its noise by s − dᵢ. So all answers together lose
max |d|/b₀ + c (max d − min d)/b (Lyu, Su & Li 2017, arXiv:1603.01699v4, Theorem 2).
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from auditdp.numerics.arrays import Floats
from auditdp.tracing.draws import NOISY
from auditdp.tracing.losses import Moved
from auditdp.tracing.noise_families import NOTHING, Loss, moves, same
from auditdp.tracing.outputs import where_differ
from auditdp.tracing.plain_values import ndim
from auditdp.tracing.trace import Trace
from auditdp.tracing.trace_limits import LIMITS
from auditdp.tracing.watched_run import TracedRun

LARGEST = "which is largest"
ABOVE = "which are above another one"

Draw = Callable[[np.random.Generator], dict[int, Any]]
"""Function that draws results of releases, by the number of the release."""


class _Scores(NamedTuple):
    """Noisy values with noise of the same scale, as flat arrays.

    Attributes:
        results: The noisy values.
        moved: Move of each value before its noise.
        scale: Scale of the noise.
    """

    results: Floats
    moved: Floats
    scale: float


def ordered(trace: Trace, recorded: TracedRun, moved: Sequence[Moved]) -> list[Moved]:
    """Return releases, with smaller losses for groups that reveal only their order.

    Args:
        trace: Trace of the function.
        recorded: The recorded run of a pair.
        moved: The releases of the pair, with their losses.

    Returns:
        The releases in the same order. In a group of which the output reveals only the
        order, one release has the loss of this order, and the others have no loss.
    """
    found = list(moved)
    by_site: dict[Any, list[int]] = {}
    for k, pair in enumerate(found):
        if _is_score(pair):
            by_site.setdefault(pair.first.site, []).append(k)
    for places in by_site.values():
        # Scores are the entries of one array, or numbers that a loop releases.
        groups = [[k] for k in places if found[k].first.shape]
        numbers = [k for k in places if not found[k].first.shape]
        for group in [numbers, *groups]:
            loss = _loss_of_largest(trace, recorded, [found[k] for k in group])
            if loss is not None:
                _charge(found, group, loss, LARGEST)
    # One line may have the thresholds of the answers of another line.
    for first, second in itertools.permutations(by_site.values(), 2):
        both = [found[k] for k in (*first, *second)]
        if first[0] > second[0] or any(pair.only or pair.first.shape for pair in both):
            continue
        thresholds, answers = both[: len(first)], both[len(first) :]
        loss = _loss_of_above(trace, recorded, thresholds, answers)
        if loss is not None:
            _charge(found, [*first, *second], loss, ABOVE)
    return found


def _is_score(pair: Moved) -> bool:
    release, other = pair.first, pair.second
    law = release.law
    if release.kind != NOISY or release.groups is not None:
        return False
    # A released value with exponential noise loses without bound, but its order does
    # not.
    is_sound = not pair.why or law.family == "exponential"
    if law.family not in ("Laplace", "exponential") or not is_sound:
        return False
    is_same = release.shape == other.shape and same(law.scale, other.law.scale)
    return is_same and ndim(law.scale) == 0 and float(law.scale) > 0


def _charge(found: list[Moved], group: Sequence[int], loss: Loss, only: str) -> None:
    """Replace the losses of a group by the loss of its order, if that is smaller.

    The release that moves farthest gets this loss, and the others get none.

    Args:
        found: All releases; those of the group are replaced in it.
        group: Indices of the group in ``found``.
        loss: Loss of the order.
        only: Phrase for the attribute ``only`` of the releases.
    """
    charged = [found[k].loss for k in group]
    epsilons = [each.epsilon for each in charged if each is not None]
    if len(epsilons) == len(group) and loss.epsilon >= math.fsum(epsilons):
        return
    farthest = max(group, key=lambda k: found[k].distance)
    for k in group:
        own = loss if k == farthest else NOTHING
        found[k] = replace(found[k], loss=own, only=only, why="")


def _scores(pairs: Sequence[Moved]) -> _Scores | None:
    """Return the noisy values, their moves and their scale.

    Returns:
        The scores. None without values, for several scales, and for infinite moves.
    """
    scales = {float(pair.first.law.scale) for pair in pairs}
    if len(scales) != 1:
        return None
    results, moved = [], []
    for pair in pairs:
        first, second = pair.first, pair.second
        move = np.broadcast_to(moves(first.location, second.location), first.shape)
        results.append(np.ravel(first.result).astype(float))
        moved.append(np.ravel(move))
    by = np.concatenate(moved)
    if not np.isfinite(by).all():
        return None
    return _Scores(np.concatenate(results), by, scales.pop())


def _forced(pairs: Sequence[Moved], values: Floats) -> dict[int, Any]:
    """Return results of releases, by the number of the release.

    Args:
        pairs: The releases.
        values: Entries of all results, in the order of ``pairs``, as one flat array.
    """
    forced, start = {}, 0
    for pair in pairs:
        shape = pair.first.shape
        end = start + math.prod(shape)
        forced[pair.first.number] = values[start:end].reshape(shape)[()]
        start = end
    return forced


def _loss_of_largest(
    trace: Trace, recorded: TracedRun, pairs: Sequence[Moved]
) -> Loss | None:
    """Return the loss of the name of the largest or smallest score.

    Returns:
        The loss. None if the output reveals more than this name, for fewer than two
        scores, and if ``_scores`` returns None.
    """
    scores = _scores(pairs)
    if scores is None or len(scores.results) < 2:
        return None
    # Exponential noise has the needed inequality on one side only.
    is_one_sided = pairs[0].first.law.family == "exponential"
    for sign in (1.0,) if is_one_sided else (1.0, -1.0):
        draw = partial(_with_same_largest, pairs, scores, sign)
        if _is_same(trace, recorded, draw):
            return Loss(float(np.ptp(scores.moved)) / scores.scale)
    return None


def _with_same_largest(
    pairs: Sequence[Moved], scores: _Scores, sign: float, rng: np.random.Generator
) -> dict[int, Any]:
    """Draw other results in which the same score is the largest.

    Args:
        pairs: The releases.
        scores: Their noisy values.
        sign: 1; or −1 for results in which the same score is the smallest.
        rng: The generator.

    Returns:
        The results, by the number of the release.
    """
    results, scale = scores.results, scores.scale
    best = np.argmax(sign * results)
    values = rng.permutation(results) + rng.normal(scale=scale, size=len(results))
    # The largest one leads by a tenth of the scale, or more.
    lead = scale * (0.1 + rng.random())
    values[best] = sign * (np.max(sign * values) + lead)
    return _forced(pairs, values)


def _loss_of_above(
    trace: Trace,
    recorded: TracedRun,
    thresholds: Sequence[Moved],
    answers: Sequence[Moved],
) -> Loss | None:
    """Return the loss of answers, each compared with the last threshold before it.

    Returns:
        The loss. None if the output reveals more than which answers are above, and if
        ``_scores`` returns None for the answers or the thresholds.
    """
    scores, levels = _scores(answers), _scores(thresholds)
    if scores is None or levels is None:
        return None
    # An answer is compared with the last threshold that was drawn before it.
    starts = [threshold.first.number for threshold in thresholds]
    numbers = [answer.first.number for answer in answers]
    last = np.maximum(np.searchsorted(starts, numbers) - 1, 0)
    is_above = scores.results >= levels.results[last]

    def on_the_same_side(rng: np.random.Generator) -> dict[int, Any]:
        noise = rng.normal(scale=scores.scale, size=len(thresholds))
        level = levels.results + noise
        # No answer is closer to its threshold than a hundredth of the scale.
        away = scores.scale * (0.01 + rng.exponential(size=len(answers)))
        values = level[last] + np.where(is_above, away, -away)
        return _forced(thresholds, level) | _forced(answers, values)

    if not _is_same(trace, recorded, on_the_same_side):
        return None
    total = 0.0
    for k in np.unique(last):
        own = last == k
        away = scores.moved[own] - levels.moved[k]
        above = int(is_above[own].sum())
        # The theorem charges the rarer side, and the threshold once.
        rarer = max(1, min(above, len(away) - above))
        spread = max(float(away.max()), 0.0) - min(float(away.min()), 0.0)
        total += (
            float(np.abs(away).max()) / levels.scale + rarer * spread / scores.scale
        )
    return Loss(total)


def _is_same(trace: Trace, recorded: TracedRun, draw: Draw) -> bool:
    """Return True if runs that force results of ``draw`` have the recorded output."""
    rng = np.random.default_rng(0)
    for _ in range(LIMITS.runs_in_order):
        run = trace.replay(recorded.data, recorded, forced=draw(rng))
        if where_differ(recorded.output, run.output) is not None:
            return False
    return True
