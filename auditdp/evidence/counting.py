"""Counting evidence: what a mechanism of few outputs loses at most on the pairs played, and how well it follows its law.

Every input of the pairs is run equally often, and outputs are counted. With the confidence that is left to it, this evidence
bounds from above what the game bounds from below: no event S of outputs, on any pair played and in either order, has P(S) >
e^ε Q(S) + δ (``counted_events``, with the proof). It needs no law and no list of outputs. The price is δ, which is fixed
before anything is drawn: no ε holds for an event that is too rare to come in these runs. Up to three values of δ are tried,
each with its share of the error, and the smallest is shown whose ε is not far above that of the largest.

Where the mechanism states its law, the same runs bound the distance of what it draws from it (``counted_events``). A law
that the runs refute makes the evidence INCONCLUSIVE: what is proved of that law is not about the code.

For comparison with other runs there is one event, too, with what it has at least on one input and at most on its neighbour.
It is no part of what is stated: nothing but a baseline looks at it, and it has an error of its own, alpha again.

Null hypothesis: some bound is exceeded, or (for the test of the law) every input is drawn from by its law. Guarantee: all
that is stated holds with probability 1 - alpha. Assumes that runs are independent. Scope: the inputs played, no others; it
is no certificate, not even where these are all pairs there are.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from auditdp.adjacency import Adjacency, Pair
from auditdp.adjacency.pair_search import key
from auditdp.betting.game import checked_pairs
from auditdp.claims.claim import Claim
from auditdp.claims.statements import GaussianDP
from auditdp.evidence.counted_events import (
    Tally,
    cdf_of,
    inputs_of,
    kolmogorov,
    kolmogorov_margin,
    largest_losses,
    log_e_value,
    told_apart,
    total_variation,
    unseen,
)
from auditdp.evidence.request import EvidenceRequest, believed
from auditdp.mechanism.calls import Calls
from auditdp.mechanism.calls.independence import check_calls
from auditdp.mechanism.calls.representation import Representation
from auditdp.mechanism.laws import FiniteLaw
from auditdp.mechanism.protocol import Array, Mechanism, brief
from auditdp.numerics.arrays import Floats
from auditdp.numerics.rounding import confidence, outwards
from auditdp.numerics.streams import Streams, prefixed
from auditdp.record.details import CountingDetails, Subject, UpperBound, kind_of
from auditdp.record.results import Evidence, Verdict

SHARE_OF_CALLS = 4
"""Counting has a quarter of the calls of an audit, before its game."""
FIRST_RUNS = 256
"""Runs on every input that show whether outputs are few; the evidence needs as many at least, and counts them too."""
FEW = 64
"""Different outputs in these runs, at most."""
MOST_OUTPUTS = 4096
DELTAS = (1.25, 5.0, 20.0)
"""What δ is tried, in units of what an event may have that never came."""
LARGE = 0.05
"""Only the first of these is tried where it is larger."""
MOST_NAMED = 64
"""Pairs that are named in the record, at most."""
UNLIKE = "The code does not draw from the law that it states"
FAR = 0.5
"""By how much an ε may be above that of the largest δ, to be shown with a smaller δ."""


@dataclass(frozen=True)
class Losses:
    """Upper bounds on the loss over all events of the pairs played."""

    bounds: list[tuple[float, float]]
    """(δ, ε) that hold together, by ascending δ; an ε is infinite where runs are too few."""
    shown: tuple[float, float]
    claimed: float | None
    """For a claim with δ > 0: δ at the claimed ε."""


@dataclass(frozen=True)
class Followed:
    """How well what is drawn follows the stated law."""

    distance: float
    """Upper bound on the distance, over all inputs."""
    kind: str
    refuted: str | None


def gathered(request: EvidenceRequest, alpha: float) -> Evidence | None:
    """Outputs that are counted; of a control none, since counting refutes no claim."""
    if request.control:
        return None
    by_law = any(kind_of(kind).subject is Subject.LAW for kind in request.kinds)
    return counting_evidence(
        request.adapted,
        request.privacy,
        request.adjacency,
        alpha=alpha,
        calls=request.calls // SHARE_OF_CALLS,
        streams=request.streams,
        play=request.game.play,
        law=request.able.law_of_output if by_law else None,
    )


def counting_evidence(
    mechanism: Mechanism,
    claim: Claim,
    adjacency: Adjacency,
    *,
    alpha: float,
    calls: int,
    streams: Streams,
    play: Sequence[Pair] | None = None,
    law: Callable[[Any], Any] | None = None,
) -> Evidence | None:
    """Bound what the pairs played lose from above, by counting outputs, and compare the outputs with the stated law.

    Any of what is stated is wrong with probability at most ``alpha``. Calls are shared equally by the inputs; fewer than
    256 for each give no evidence, nor do outputs that are many where no law can be compared, which takes 256 calls on each
    input to find out. For a Gaussian claim only the ``law``, of an input's output, is looked at.

    Raises:
        AdjacencyError: If a pair is not adjacent.
        MechanismError: If the mechanism misbehaves.
    """
    played = checked_pairs(adjacency, play)
    inputs, ends = inputs_of(played)
    runs = calls // max(len(inputs), 1)
    if runs < FIRST_RUNS:
        return None
    made = Calls(mechanism)
    check_calls(made, inputs, own := prefixed(streams, "counting:"))
    tally = Tally(made, inputs, streams, most=MOST_OUTPUTS)
    rows = tally.add(FIRST_RUNS)
    first_counts = tally.counts.copy()
    few = (
        not tally.full
        and len(tally.outputs) <= FEW
        and not isinstance(claim, GaussianDP)
    )
    compare = (
        None if law is None else _comparison([law(data) for data in inputs], made.form)
    )
    if not few and compare is None:
        return None
    rows = [
        np.concatenate(both)
        for both in zip(rows, tally.add(runs - FIRST_RUNS), strict=True)
    ]
    error = alpha / (few + (compare is not None))
    losses = _losses(tally, ends, claim, error) if few and not tally.full else None
    event = (
        told_apart(first_counts, tally.counts, ends, runs - FIRST_RUNS, alpha)
        if losses is not None
        else None
    )
    followed = compare(tally, rows, error) if compare is not None else None
    if losses is None and followed is None:
        return None
    found = _evidence(losses, event, followed, tally, played, adjacency, claim, alpha)
    return believed(found, made, inputs[:2], own, calls)


def _losses(tally: Tally, ends: NDArray[np.intp], claim: Claim, error: float) -> Losses:
    epsilon, delta = claim.tangents()[0]
    error /= len(DELTAS) + (delta > 0)
    deltas = [times * unseen(tally.runs, error) for times in DELTAS]
    deltas = deltas[:1] + [each for each in deltas[1:] if each <= LARGE]
    if (
        delta >= deltas[0]
    ):  # runs may need more than the claimed δ, where that is what the mechanism needs
        deltas = [delta, min(2 * delta, 1.0)]
    epsilons, claimed = largest_losses(
        tally.counts,
        ends,
        tally.runs,
        error=error,
        deltas=deltas,
        epsilons=[epsilon] if delta > 0 else [],
    )
    bounds = list(zip(deltas, epsilons, strict=True))
    shown = next(bound for bound in bounds if bound[1] <= epsilons[-1] + FAR)
    return Losses(bounds, shown, claimed[0] if claimed else None)


Comparison = Callable[[Tally, Sequence[Array], float], Followed]


def _comparison(laws: Sequence[Any], form: Representation) -> Comparison | None:
    """Return what compares runs with the laws of their inputs, with a given error; None where nothing does."""
    if all(
        isinstance(law, FiniteLaw) and len(law.outcomes) <= MOST_OUTPUTS for law in laws
    ):
        return partial(_by_counts, laws)
    cdfs = [cdf_of(law) for law in laws]
    if all(cdf is not None for cdf in cdfs) and form.longest == 1:
        return partial(_by_values, cdfs)
    return None


def _by_counts(
    laws: Sequence[FiniteLaw], tally: Tally, rows: Sequence[Array], error: float
) -> Followed:
    kind = "total variation"
    if tally.full:
        return Followed(
            1.0,
            kind,
            f"there are more than {MOST_OUTPUTS:,} different outputs, more than the law has",
        )
    split = frozenset[bytes]().union(*(law.split for law in laws))
    places = [law.places(tally.outputs, tally.calls.form, split) for law in laws]
    stated: Floats = np.array(
        [np.append(law.floats, 0.0)[at] for law, at in zip(laws, places, strict=True)]
    )
    largest: Floats = np.array(
        [law.largest[at] for law, at in zip(laws, places, strict=True)]
    )
    log_e = log_e_value(tally.counts, largest)
    refuted = None
    if math.isinf(log_e):
        which, output = np.argwhere((tally.counts > 0) & (largest == 0))[0]
        times = int(tally.counts[which, output])
        often = f"{times:,} time{'s' * (times != 1)} in {tally.runs:,} runs"
        refuted = (
            f"{UNLIKE}: an output to which the law gives probability 0 came {often}"
        )
    elif log_e >= math.log(2 / error):
        once_in = f"10^{log_e / math.log(10):.1f}"
        seldom = f"{tally.runs:,} runs on each input come out so at most once in {once_in} times"
        refuted = f"{UNLIKE}: from that law, {seldom}"
    elif (several := _several_forms(places)) is not None:
        k, outcome, forms = several
        refuted = (
            f"The law that it states is not that of its whole output: what it lists as {brief(laws[k].outcomes[outcome])} "
            f"came in {forms} forms, differing in a type, the order of keys or the sign of a zero; list each or return one"
        )
    return Followed(
        total_variation(tally.counts, stated, tally.runs, error / 2), kind, refuted
    )


def _several_forms(places: Sequence[NDArray[np.intp]]) -> tuple[int, int, int] | None:
    """Return (law, outcome, forms) of an outcome that came in several forms, on one input or over all; None where none did.

    What the law says of the outcome is then true of all forms together, and each of them may lose more.
    """
    for k, found in enumerate(places):
        times = np.bincount(found[found >= 0])
        if (times > 1).any():
            return k, int(times.argmax()), int(times.max())
    return None


def _by_values(
    cdfs: Sequence[Any], tally: Tally, rows: Sequence[Array], error: float
) -> Followed:
    """Compare one number per run: both the bound and the test rest on one event per input."""
    kind = "Kolmogorov distance"
    numbers = [tally.calls.form.numbers(each).astype(np.float64) for each in rows]
    found = [
        kolmogorov(each.ravel(), cdf) for each, cdf in zip(numbers, cdfs, strict=True)
    ]
    margin, largest = kolmogorov_margin(tally.runs, error / len(found)), max(found)
    seen = f"the {kind} of {tally.runs:,} runs from it is {largest:.4g}, of which chance explains {margin:.4g}"
    refuted = f"{UNLIKE}: {seen}" if largest > margin else None
    return Followed(largest + margin, kind, refuted)


def _evidence(
    losses: Losses | None,
    event: tuple[float, float] | None,
    followed: Followed | None,
    tally: Tally,
    played: Sequence[Pair],
    adjacency: Adjacency,
    claim: Claim,
    alpha: float,
) -> Evidence:
    inputs = (
        "the input" if len(tally.inputs) == 1 else f"the {len(tally.inputs):,} inputs"
    )
    sure = confidence(alpha)
    details = CountingDetails(runs_per_input=tally.runs, confidence=1 - alpha)
    parts = []
    if losses is not None:
        delta, epsilon = losses.shown
        scope = _scope(played, adjacency)
        details = replace(
            details,
            scope=scope,
            outputs=len(tally.outputs),
            upper_bounds=[UpperBound(delta=d, epsilon=e) for d, e in losses.bounds],
            delta_upper=delta,
            delta_at_claim=losses.claimed,
            counted_pairs=list(map(str, played)) if len(played) <= MOST_NAMED else None,
            event_at_least=None if event is None else event[0],
            event_at_most=None if event is None else event[1],
        )
        bound = (
            f"no set of outputs loses more than ε = {outwards(epsilon, up=True)}, but for a probability of "
            f"δ = {outwards(delta, up=True, digits=2)},"
        )
        parts.append(
            f"{bound if math.isfinite(epsilon) else 'they give no upper bound on ε'} on {scope}"
        )
        if losses.claimed is not None:
            parts.append(
                f"δ ≤ {outwards(losses.claimed, up=True, digits=2)} at ε = {claim.level:.6g}"
            )
    if followed is not None:
        details = replace(
            details, law_distance=followed.distance, law_distance_is=followed.kind
        )
        if followed.refuted is None:
            distance = (
                f"{followed.kind} {outwards(followed.distance, up=True, digits=2)}"
            )
            seen = f"the code was seen to follow its law within {distance} on {inputs} played"
            details = replace(details, followed=f"{seen} ({sure})")
            parts.append(seen)
    statement = f"Counting {tally.runs:,} runs on each of {inputs} played: {'; '.join(parts)} ({sure})"
    if followed is not None and followed.refuted is not None:
        statement = f"{followed.refuted} ({sure})"
    return Evidence(
        kind="counting",
        verdict=Verdict.NOT_REFUTED
        if followed is None or followed.refuted is None
        else Verdict.INCONCLUSIVE,
        statement=statement,
        assumptions=[
            "the outputs of one call are independent runs of the mechanism",
            "scope: the inputs played; nothing is said of others",
        ],
        epsilon_upper=None
        if losses is None or math.isinf(losses.shown[1])
        else losses.shown[1],
        calls=tally.runs * len(tally.inputs),
        details=details,
    )


def _scope(played: Sequence[Pair], adjacency: Adjacency) -> str:
    """Return which pairs these are, in words; that they are all there are only where the adjacency enumerates no more."""
    count = "the only pair" if len(played) == 1 else f"all {len(played):,} pairs"
    everything = adjacency.exhaustive()
    listed = {key(each) for pair in played for each in (pair, pair.swapped())}
    if everything is not None and all(key(pair) in listed for pair in everything):
        return f"{count} of neighbours"
    return (
        "the counted pair" if len(played) == 1 else f"the {len(played):,} counted pairs"
    )
