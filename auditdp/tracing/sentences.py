"""What a trace says, as sentences that name the line."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

import numpy as np

from auditdp.accountants.gaussian import GaussianCurve
from auditdp.claims.base import Claim
from auditdp.claims.curves import ZeroConcentratedDP
from auditdp.claims.statements import ApproxDP, GaussianDP, PureDP
from auditdp.tracing.draws import ALONE, CHOICE, COIN, MAXIMUM, Release
from auditdp.tracing.losses import Moved
from auditdp.tracing.outputs import brief


def scale_of(release: Release) -> str:
    """Return the scale of a release, of all entries where it is one."""
    scales = np.unique(np.abs(np.asarray(release.law.scale, float)))
    if release.law.family in ("geometric", "two-sided geometric"):
        scales = np.unique(-1 / np.log1p(-np.asarray(release.law.parameter, float)))
    if release.law.family in ("rounded Laplace", "discrete Gaussian"):
        scales = np.unique(np.asarray(release.law.parameter, float))
    return f"{scales[0]:.6g}" if len(scales) == 1 else f"{scales[0]:.6g} to {scales[-1]:.6g}"


def what_it_does(release: Release) -> str:
    """Return what a line does, such as 'line 31 adds Laplace noise of scale 1 to a value'."""
    return f"line {release.site.line} {what_is_done(release)}"


def what_is_done(release: Release) -> str:
    """Return what a release does, at whatever line."""
    if release.kind == COIN:
        return "decides by a draw of known probability"
    if release.kind == CHOICE:
        return "chooses by a table of probabilities"
    if release.kind == MAXIMUM:
        return f"takes the largest of scores with Gumbel noise of scale {scale_of(release)}"
    if release.law.declared is not None:
        return f"calls {release.law.family}, which is trusted, on a value"
    if release.law.known is None and release.kind == ALONE:
        return f"uses {release.law.family}, whose law the trace does not know, by itself"
    if release.law.known is None:
        return f"adds {release.law.family}, whose law the trace does not know, to a value"
    noise = f"{release.law.family} noise of scale {scale_of(release)}"
    return f"uses {noise} by itself" if release.kind == ALONE else f"adds {noise} to a value"


def moved_by(pairs: Sequence[Moved]) -> float:
    """Return how far the values of one line, of one family, move together in the norm of their noise."""
    law, moved = max(pairs, key=size).first.law, [pair.distance for pair in pairs]
    return math.hypot(*moved) if law.known is not None and law.known.norm == "L2" else math.fsum(moved)


def of_line(pairs: Iterable[Moved], claim: Claim | None = None) -> str:
    """Return the sentence of the releases of one line on a pair: what moved, and which scale the claim needs."""
    pairs = list(pairs)
    first = max(pairs, key=size)
    release, distance = first.first, moved_by(pairs)
    times = f", {len(pairs)} times" if len(pairs) > 1 else ""
    moves = f"{times}: the values move by {distance:.6g} together" if times else f" that moves by {distance:.6g}"
    doing = what_it_does(release)
    if any(pair.why == "reuse" for pair in pairs):
        said = "with noise that is used before or for another entry: the difference has no noise, and it moves"
        return f"{doing}{times}, {said}"
    if any(pair.why == "scale" for pair in pairs):
        other = scale_of(first.second)
        return f"{doing}{times}; on the other input the scale is {other}: it depends on the data"
    if any(pair.why == "number" for pair in pairs):
        values = f"{brief(release.location)} on one input and {brief(first.second.location)} on the other"
        return f"{doing}{times} that is {values}"
    if any(pair.why == "whole" for pair in pairs):
        return f"{doing}{moves}: whole noise does not hide what is no whole number"
    if release.kind in (COIN, CHOICE, MAXIMUM):
        if not distance:
            return f"{doing}{times}, the same on both inputs"
        logarithms = f"whose logarithms move by {distance:.6g}"
        return f"{doing}{times}, {logarithms if math.isfinite(distance) else 'of which one is 0 on one input alone'}"
    if first.only and size(first):
        loss = math.fsum(pair.loss.epsilon for pair in pairs if pair.loss is not None)
        return f"{doing}{moves}; the output shows only {first.only}, for ε = {loss:.6g}"
    if not distance:
        return f"{doing}{f'{times}, none of which moves' if times else ' that does not move'}"
    return f"{doing}{moves}{_enough(release, distance, claim)}"


def _enough(release: Release, distance: float, claim: Claim | None) -> str:
    """Return which scale would be enough for a claim, where one number says it."""
    if release.law.family == "Gaussian" and isinstance(claim, PureDP) and math.isfinite(distance):
        return "; Gaussian noise is of no finite ε"
    needed = needed_scale(release, distance, claim)
    return "" if needed is None else f"; {claim} needs scale {needed:.6g}"


def needed_scale(release: Release, distance: float, claim: Claim | None) -> float | None:
    """Return the scale of the noise at which a release alone keeps a claim; None where no number says it."""
    law = release.law
    if claim is None or law.known is None or not math.isfinite(distance):
        return None
    if law.family == "Gaussian":
        if isinstance(claim, GaussianDP):
            return distance / claim.level
        if isinstance(claim, ZeroConcentratedDP):
            return distance / math.sqrt(2 * claim.level)
        if isinstance(claim, ApproxDP) and claim.delta > 0:
            return GaussianCurve.sigma_for(claim.epsilon, claim.delta, sensitivity=distance) if distance else 0.0
        return None
    at_once = law.known.norm == "L1" and not law.known.is_part
    return distance / claim.level if at_once and isinstance(claim, PureDP | ApproxDP) and claim.level else None


def size(pair: Moved) -> float:
    """Return a number by which losses of releases are put in order."""
    if pair.loss is None:
        return 0.0
    return pair.loss.epsilon + pair.loss.delta + math.sqrt(pair.loss.squared_mu)
