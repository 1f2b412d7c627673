"""What a run did beside what the accountant of its claim was told of: how often noise was added, how much, to which batches.

Only a claim with the curve of an accountant of Poisson batches says all of that. A difference is where to look, and no loss:
an accountant may have been told more than was done.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from itertools import chain
from typing import TYPE_CHECKING, Any

import numpy as np

from auditdp.accountants.dp_sgd_parameters import Poisson
from auditdp.claims.curves import AccountedDP
from auditdp.tracing.chance import is_sample
from auditdp.tracing.draws import ALONE, COIN, NOISY, Release
from auditdp.tracing.losses import Moved
from auditdp.tracing.sites import NOWHERE, CodeLine

if TYPE_CHECKING:
    from auditdp.tracing.pair import PairTrace

CLOSE = 1e-6
"""How far, relatively, rounding may take what was run from what the accountant was told."""


def differences(trace: PairTrace) -> Iterator[tuple[CodeLine, str]]:
    """Yield where a run differs from what the accountant of its claim was told, each with its line."""
    told = _told(trace)
    noisy = {
        site: _gaussian(pairs)
        for site, pairs in trace.by_line().items()
        if _gaussian(pairs)
    }
    if told is None or not noisy:
        return
    samples = [release for release in trace.first.releases if is_sample(release)]
    other_draws = any(
        release.kind == ALONE and not is_sample(release)
        for release in trace.first.releases
    )
    if (
        not other_draws and not trace.opaque
    ):  # another draw may decide which records are in a batch, and how many
        yield from _batches(samples, told)
    # Moves are those of the same batches only where each record has a coin of its own, which both inputs share.
    matched = (
        all(release.kind == COIN for release in samples)
        and not other_draws
        and not trace.second.parted
    )
    steps_anywhere = _is_anywhere(noisy.values(), told)
    for site, pairs in noisy.items():
        times = min(Counter(pair.first.shape for pair in pairs).values())
        if times != told.steps and not steps_anywhere:
            yield (
                site,
                f"line {site.line} adds noise {times:,} times; the accountant was told of {told.steps:,} steps",
            )
        most = max(pairs, key=lambda pair: pair.distance)
        scale = float(np.min(np.abs(most.first.law.scale)))
        if (
            matched
            and most.distance
            and scale / most.distance < told.noise_multiplier * (1 - CLOSE)
        ):
            yield (
                site,
                f"line {site.line} adds noise of scale {scale:.6g} to a value that moves by {most.distance:.6g}, a "
                f"multiplier of {scale / most.distance:.6g}; the accountant was told of {told.noise_multiplier:.6g}",
            )


def as_run(trace: PairTrace, other: float | None = None) -> Poisson | None:
    """Return what an accountant of Poisson batches is to be told of a run whose every step moves as far as one on the pair.

    None where lines add noise different numbers of times, or batches are others; with ``other`` these have it as their rate.
    """
    rates: list[Any] = [
        r.location if r.kind == COIN else other
        for r in trace.first.releases
        if is_sample(r)
    ]
    lines = [*map(_gaussian, trace.by_line().values())]
    told = _told(trace)
    if told is not None and _is_anywhere(lines, told):
        lines = [[*chain.from_iterable(lines)]]
    parts = [part for pairs in lines for part in _by_shape(pairs)]
    if not rates or not parts or len({len(part) for part in parts}) > 1:
        return None
    if (
        any(rate is None or np.ndim(rate) or rate != rates[0] for rate in rates)
        or not 0 < rates[0] <= 1
    ):
        return None
    ratios = [
        [pair.distance / float(np.min(np.abs(pair.first.law.scale))) for pair in part]
        for part in parts
    ]
    farthest = float(np.linalg.norm(ratios, axis=0).max())
    return Poisson(1 / farthest, float(rates[0]), len(parts[0])) if farthest else None


def cost_as_run(
    trace: PairTrace, other: float | None = None
) -> tuple[Poisson, float] | None:
    """Return what was run, and what it costs at least by an accountant; None where that is no more than the claim.

    That every step is released, and can move as far as one on the pair, is assumed.
    """
    claim, ran = trace.claim, as_run(trace, other)
    if ran is None or not isinstance(claim, AccountedDP):
        return None
    lower = _least(ran.noise_multiplier, ran.rate, ran.steps, claim.quoted)
    return None if lower <= claim.level else (ran, lower)


@lru_cache(maxsize=64)
def _least(noise_multiplier: float, rate: float, steps: int, delta: float) -> float:
    from auditdp.accountants.dp_sgd_poisson import (
        PLDLower,
    )  # slow to load: only where it is needed

    return PLDLower(noise_multiplier, rate, steps).epsilon_at(delta)


def is_suspect(trace: PairTrace) -> bool:
    """Return whether a run was not what the accountant was told, so that the claim may fail where records are drawn.

    Its steps cost more than the claim, shuffled batches as Poisson ones do; or which records were drawn decides numbers of
    the output that no noise is added to.
    """
    told = _told(trace)
    samples = [release for release in trace.first.releases if is_sample(release)]
    if not samples or trace.opaque:
        return False
    shows = (
        trace.differ is not None
        and trace.repeats is not False
        and not trace.doubt
        and not trace.second.parted
    )
    tried = trace.outcomes is not None and (
        trace.outcomes.complete or trace.outcomes.matched
    )
    # The coins of randomised response decide outputs as well, for another claim.
    if (
        shows
        and not tried
        and (told is not None or all(release.kind != COIN for release in samples))
    ):
        return True
    return told is not None and cost_as_run(trace, told.rate) is not None


def _told(trace: PairTrace) -> Poisson | None:
    """Return what the accountant of the claim was told; None where it is none of Poisson batches."""
    told = getattr(getattr(trace.claim, "curve", None), "describes", None)
    return told if isinstance(told, Poisson) else None


def _by_shape(pairs: Sequence[Moved]) -> list[list[Moved]]:
    shapes = dict.fromkeys(pair.first.shape for pair in pairs)
    return [[pair for pair in pairs if pair.first.shape == shape] for shape in shapes]


def _is_anywhere(lines: Iterable[Sequence[Moved]], told: Poisson) -> bool:
    """Return whether lines add noise as often as there are steps together, as where a step is at one of them."""
    return set(
        Counter(pair.first.shape for pairs in lines for pair in pairs).values()
    ) == {told.steps}


def _gaussian(pairs: Sequence[Moved]) -> list[Moved]:
    return [
        pair
        for pair in pairs
        if pair.first.kind == NOISY and pair.first.law.family == "Gaussian"
    ]


def _batches(
    samples: Sequence[Release], told: Poisson
) -> Iterator[tuple[CodeLine, str]]:
    batches = f"the accountant was told of Poisson batches at rate {told.rate:.6g}"
    if not samples and told.rate < 1:
        yield NOWHERE, f"no line draws which records are in a batch; {batches}"
    for site, release in {release.site: release for release in samples}.items():
        if release.kind != COIN:
            by = f"draws records by {release.law.family}; {batches}, each record by its own coin"
            yield site, f"line {site.line} {by}"
        elif not np.allclose(
            np.asarray(release.location, float), told.rate, rtol=CLOSE
        ):
            rates = np.unique(np.asarray(release.location, float))
            chance = f"{rates[0]:.6g}" + f" to {rates[-1]:.6g}" * (len(rates) > 1)
            yield (
                site,
                f"line {site.line} takes records with probability {chance}; {batches}",
            )
