"""Comparison of a traced training run with the parameters of its claim's accountant.

The parameters are the noise multiplier, the number of steps and the Poisson sampling
rate. Only a claim with the curve of an accountant of Poisson batches has them. A
difference suggests a fault and proves no loss: the run may lose less than the
accountant assumed.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from itertools import chain

import numpy as np

from auditdp.accountants.dp_sgd_parameters import Poisson
from auditdp.claims.curves import AccountedDP
from auditdp.tracing.chance import is_sample
from auditdp.tracing.draws import ALONE, COIN, NOISY, Release
from auditdp.tracing.losses import Moved
from auditdp.tracing.pair_record import PairRecord
from auditdp.tracing.sites import NOWHERE, CodeLine
from auditdp.tracing.trace_limits import ROUNDING_OF_SUMS


def differences(pair: PairRecord) -> Iterator[tuple[CodeLine, str]]:
    """Yield each difference between a run and its accountant: a line and a sentence.

    The line is ``NOWHERE`` if no line draws the records of a batch. Without Gaussian
    noise, and for claims without such an accountant, there are no differences.
    """
    stated = _stated(pair)
    by_line = _gaussian_lines(pair)
    if stated is None or not by_line:
        return
    samples = [release for release in pair.first.releases if is_sample(release)]
    draws = [release for release in pair.first.releases if release.kind == ALONE]
    has_other_draws = not all(map(is_sample, draws))
    if not has_other_draws and not pair.opaque:
        # Other draws may decide which records are in a batch, and how many.
        yield from _batch_differences(samples, stated)
    # The moves are those of equal batches only if each record has a coin of its own,
    # which both inputs share.
    is_matched = (
        all(release.kind == COIN for release in samples)
        and not has_other_draws
        and not pair.second.parted
    )
    is_one_step_a_line = _is_one_step_a_line(by_line.values(), stated)
    for site, moved in by_line.items():
        line = f"line {site.line} adds noise"
        times = min(map(len, _parts(moved, pair)))
        if times != stated.steps and not is_one_step_a_line:
            yield (
                site,
                f"{line} {times:,} times; the accountant assumed {stated.steps:,} steps",
            )
        farthest = max(moved, key=lambda each: each.distance)
        if not is_matched or not farthest.distance:
            continue
        scale = _scale(farthest)
        multiplier = scale / farthest.distance
        if multiplier < stated.noise_multiplier * (1 - ROUNDING_OF_SUMS):
            yield (
                site,
                f"{line} of scale {scale:.6g} to a value that differs by "
                f"{farthest.distance:.6g} between the inputs, a "
                f"multiplier of {multiplier:.6g}; the accountant assumed {stated.noise_multiplier:.6g}",
            )


def _batch_differences(
    samples: Sequence[Release], stated: Poisson
) -> Iterator[tuple[CodeLine, str]]:
    batches = f"the accountant assumed Poisson batches at rate {stated.rate:.6g}"
    if not samples and stated.rate < 1:
        yield NOWHERE, f"no line draws the records of a batch; {batches}"
    for site, release in {release.site: release for release in samples}.items():
        line = f"line {site.line}"
        if release.kind != COIN:
            family = release.law.family
            yield (
                site,
                f"{line} draws records by {family}; {batches}, each record by its own coin",
            )
            continue
        rates = np.unique(np.asarray(release.location, float))
        if not np.allclose(rates, stated.rate, rtol=ROUNDING_OF_SUMS):
            rate = f"{rates[0]:.6g}"
            if len(rates) > 1:
                rate += f" to {rates[-1]:.6g}"
            yield site, f"{line} takes records with probability {rate}; {batches}"


def as_run(pair: PairRecord, rate: float | None = None) -> Poisson | None:
    """Return the noise multiplier, the sampling rate and the steps of a traced run.

    The multiplier is that of the step whose value moves farthest between the inputs.

    Args:
        pair: The pair.
        rate: Sampling rate that counts for batches other than Poisson batches. With
            None, the result is None for a run with such batches.

    Returns:
        The parameters. None if the run samples no records, adds no Gaussian noise or
        has equal values on both inputs. Also None if lines add noise different numbers
        of times, and if sampling rates differ.
    """
    samples = [release for release in pair.first.releases if is_sample(release)]
    # The rate of other batches may be None, which becomes NaN.
    given = [release.location if release.kind == COIN else rate for release in samples]
    rates = {each for some in given for each in np.unique(np.asarray(some, float))}
    lines = list(_gaussian_lines(pair).values())
    stated = _stated(pair)
    if stated is not None and _is_one_step_a_line(lines, stated):
        lines = [list(chain.from_iterable(lines))]
    # Each parameter of a model has its own release in every step.
    parts = [part for moved in lines for part in _parts(moved, pair)]
    if len(rates) != 1 or len({len(part) for part in parts}) != 1:
        return None
    (common,) = rates
    ratios = [[each.distance / _scale(each) for each in part] for part in parts]
    # The releases of one step compose to one release, whose ratio is the norm of
    # theirs.
    farthest = float(np.linalg.norm(ratios, axis=0).max())
    if not 0 < common <= 1 or not farthest:
        return None
    return Poisson(1 / farthest, float(common), len(parts[0]))


def cost_as_run(
    pair: PairRecord, rate: float | None = None
) -> tuple[Poisson, float] | None:
    """Return the parameters and the accounted ε of a run, if this ε exceeds the claim.

    The accounting assumes that every step is released, and that each can move as far as
    the farthest one on the pair.

    Args:
        pair: The pair.
        rate: Sampling rate that counts for batches other than Poisson batches; None to
            return None for a run with such batches.

    Returns:
        The parameters, and the accountant's lower bound of ε at the quoted δ. None if
        the bound does not exceed the claim, if the claim is no curve of an accountant,
        or if the parameters are unknown.
    """
    claim, ran = pair.claim, as_run(pair, rate)
    if ran is None or not isinstance(claim, AccountedDP):
        return None
    lower = _lower_epsilon(ran.noise_multiplier, ran.rate, ran.steps, claim.quoted)
    return None if lower <= claim.level else (ran, lower)


@lru_cache(maxsize=64)
def _lower_epsilon(
    noise_multiplier: float, rate: float, steps: int, delta: float
) -> float:
    # The module is slow to load, so it is imported only if it is needed.
    from auditdp.accountants.dp_sgd_poisson import PLDLower

    return PLDLower(noise_multiplier, rate, steps).epsilon_at(delta)


def is_suspect(pair: PairRecord) -> bool:
    """Return True if a run that samples records may exceed its claim.

    There are two reasons. The sampled records may decide numbers of the output that
    have no noise. Or the accountant's ε for the traced steps exceeds the claim, where
    other batches count as Poisson batches of the stated rate. It is False if the trace
    does not understand a line.
    """
    stated = _stated(pair)
    samples = [release for release in pair.first.releases if is_sample(release)]
    if not samples or pair.opaque:
        return False
    outcomes = pair.outcomes
    is_tried = outcomes is not None and (outcomes.complete or outcomes.matched)
    differs = pair.differ is not None and pair.repeats is not False
    # The coins of randomised response decide outputs as well, for another claim.
    has_coins = any(release.kind == COIN for release in samples)
    is_by_sample = (
        differs and not is_tried and not pair.doubt and not pair.second.parted
    )
    if is_by_sample and (stated is not None or not has_coins):
        return True
    return stated is not None and cost_as_run(pair, stated.rate) is not None


def _stated(pair: PairRecord) -> Poisson | None:
    """Return the parameters of the claim's accountant of Poisson batches, or None."""
    described = getattr(getattr(pair.claim, "curve", None), "describes", None)
    return described if isinstance(described, Poisson) else None


def _gaussian_lines(pair: PairRecord) -> dict[CodeLine, list[Moved]]:
    gaussian = [
        each
        for each in pair.moved
        if each.first.kind == NOISY and each.first.law.family == "Gaussian"
    ]
    return pair.by_line(gaussian)


def _parts(moved: Sequence[Moved], pair: PairRecord) -> list[list[Moved]]:
    """Return the releases of a line, one list for each parameter of a model.

    Every step releases each parameter, and parameters of one shape in the same order.
    The rarest shape counts the steps. If batches are vectors of coins, and the
    accountant assumed as many steps, then the batches count them.
    """
    shapes = dict.fromkeys(each.first.shape for each in moved)
    same = [[each for each in moved if each.first.shape == shape] for shape in shapes]
    times, stated = min(map(len, same)), _stated(pair)
    vectors = [each for each in pair.first.releases if each.kind == COIN and each.shape]
    batches = len(vectors)
    if stated is not None and batches == stated.steps and times % batches == 0:
        times = batches
    return [
        each[k :: len(each) // times]
        for each in same
        for k in range(len(each) // times)
    ]


def _is_one_step_a_line(lines: Iterable[Sequence[Moved]], stated: Poisson) -> bool:
    """Return True if all lines together add noise once for each step.

    An unrolled loop, for example, has a line for each step.
    """
    shapes = Counter(each.first.shape for moved in lines for each in moved)
    return set(shapes.values()) == {stated.steps}


def _scale(moved: Moved) -> float:
    return float(np.min(np.abs(moved.first.law.scale)))
