"""What a run did beside what the accountant of its claim was told of: how often noise was added, how much, to which batches.

Only a claim with the curve of an accountant of Poisson batches says all of that. A difference is where to look, and no loss:
an accountant may have been told more than was done.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from auditdp.accountants.dp_sgd.parameters import Poisson
from auditdp.tracing.draws import ALONE, COIN, NOISY, Release
from auditdp.tracing.losses import Moved
from auditdp.tracing.sites import NOWHERE, CodeLine

if TYPE_CHECKING:
    from auditdp.tracing.pair import PairTrace

SAMPLES = ("permutation", "choice of items", "integer")
"""Families of draws by which records are put in order or chosen."""
CLOSE = 1e-6
"""How far, relatively, rounding may take what was run from what the accountant was told."""


def is_sample(release: Release) -> bool:
    """Return whether a release may say which records take part: events of several records, or an order or sample of them."""
    drawn = release.kind == COIN or (release.kind == ALONE and release.law.family in SAMPLES)
    return release.of_record or (drawn and bool(release.shape))


def differences(trace: PairTrace) -> Iterator[tuple[CodeLine, str]]:
    """Yield where a run differs from what the accountant of its claim was told, each with its line."""
    told = getattr(getattr(trace.claim, "curve", None), "describes", None)
    noisy = {site: _gaussian(pairs) for site, pairs in trace.by_line().items() if _gaussian(pairs)}
    if not isinstance(told, Poisson) or not noisy:
        return
    anywhere = Counter(
        pair.first.shape for pairs in noisy.values() for pair in pairs
    )  # a step may be at one of several lines
    for site, pairs in noisy.items():
        times = min(Counter(pair.first.shape for pair in pairs).values())
        if times != told.steps and set(anywhere.values()) != {told.steps}:
            yield site, f"line {site.line} adds noise {times:,} times; the accountant was told of {told.steps:,} steps"
        most = max(pairs, key=lambda pair: pair.distance)
        scale = float(np.min(np.abs(most.first.law.scale)))
        if most.distance and scale / most.distance < told.noise_multiplier * (1 - CLOSE):
            yield (
                site,
                f"line {site.line} adds noise of scale {scale:.6g} to a value that moves by {most.distance:.6g}, a "
                f"multiplier of {scale / most.distance:.6g}; the accountant was told of {told.noise_multiplier:.6g}",
            )
    yield from _batches([release for release in trace.first.releases if is_sample(release)], told)


def as_run(trace: PairTrace) -> Poisson | None:
    """Return what an accountant of Poisson batches is to be told of a run whose every step moves as far as one on the pair.

    None where batches are others, or lines add noise different numbers of times.
    """
    rates: list[Any] = [r.location if r.kind == COIN else None for r in trace.first.releases if is_sample(r)]
    parts = [part for pairs in trace.by_line().values() for part in _by_shape(_gaussian(pairs))]
    if not rates or not parts or len({len(part) for part in parts}) > 1:
        return None
    if any(rate is None or np.ndim(rate) or rate != rates[0] for rate in rates) or not 0 < rates[0] <= 1:
        return None
    ratios = [[pair.distance / float(np.min(np.abs(pair.first.law.scale))) for pair in part] for part in parts]
    farthest = float(np.linalg.norm(ratios, axis=0).max())
    return Poisson(1 / farthest, float(rates[0]), len(parts[0])) if farthest else None


def _by_shape(pairs: Sequence[Moved]) -> list[list[Moved]]:
    shapes = dict.fromkeys(pair.first.shape for pair in pairs)
    return [[pair for pair in pairs if pair.first.shape == shape] for shape in shapes]


def _gaussian(pairs: Sequence[Moved]) -> list[Moved]:
    return [pair for pair in pairs if pair.first.kind == NOISY and pair.first.law.family == "Gaussian"]


def _batches(samples: Sequence[Release], told: Poisson) -> Iterator[tuple[CodeLine, str]]:
    batches = f"the accountant was told of Poisson batches at rate {told.rate:.6g}"
    if not samples and told.rate < 1:
        yield NOWHERE, f"no line draws which records are in a batch; {batches}"
    for site, release in {release.site: release for release in samples}.items():
        if release.kind != COIN:
            yield (
                site,
                f"line {site.line} draws records by {release.law.family}; {batches}, each record by its own coin",
            )
        elif not np.allclose(np.asarray(release.location, float), told.rate, rtol=CLOSE):
            rates = np.unique(np.asarray(release.location, float))
            chance = f"{rates[0]:.6g}" + f" to {rates[-1]:.6g}" * (len(rates) > 1)
            yield site, f"line {site.line} takes records with probability {chance}; {batches}"
