"""Counting evidence: an upper bound on the loss of a mechanism with few outputs.

The mechanism is run equally often on every input of the played pairs, and its outputs
are counted. The game bounds the loss from below, and this evidence from above: no event
S of outputs, on any played pair and in either order, has P(S) > e^ε Q(S) + δ
(``counted_events`` has the proof). It needs no law and no list of outputs. It needs a
δ > 0 that is fixed before anything is drawn, because no ε is certain for an event too
rare to occur in these runs. Up to three values of δ are tried, each with its share of
the error. The smallest δ is reported whose ε is at most 0.5 above that of the largest.

If the mechanism states its law, the same runs bound the distance between the law of its
outputs and the stated law (``counted_events``). If the runs refute the stated law, the
evidence is INCONCLUSIVE: a proof about that law is not about the code.

The record also has one event, with a lower bound on its probability on one input and an
upper bound on its neighbour. It is no part of the statement. Only a baseline uses it,
for the comparison with other runs, and it has an error of its own, again alpha.

Null hypothesis: some bound is exceeded, or (for the test of the law) the outputs of
every input follow its stated law. Guarantee: all statements hold with probability at
least 1 - alpha. Assumption: runs are independent. Scope: the played inputs, no others.
The bound is no certificate, even if the played pairs are all pairs of neighbours.
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
from auditdp.numerics.rounding import confidence, outwards
from auditdp.numerics.streams import Streams, prefixed
from auditdp.record.details import CountingDetails, Subject, UpperBound, kind_of
from auditdp.record.results import Evidence, Verdict

FIRST_RUNS = 256
"""Number of first runs on each input; they show whether there are few outputs.

The evidence needs at least this number of runs on each input, and counts them too.
"""
MOST_OUTPUTS = 4096
"""Largest number of different outputs that are counted."""
UNLIKE = "The code does not draw from its stated law"


@dataclass(frozen=True)
class Losses:
    """Upper bounds on the loss over all events of the pairs played."""

    bounds: list[tuple[float, float]]
    """All tried (δ, ε), by ascending δ, which hold together.

    ε is infinite if runs are too few for its δ.
    """
    shown: tuple[float, float]
    """The reported (δ, ε)."""
    claimed: float | None
    """Upper bound on δ at the claimed ε; None for a claim with δ = 0."""


@dataclass(frozen=True)
class Followed:
    """The comparison of outputs with the stated law."""

    distance: float
    """Upper bound on the distance from the stated law, over all inputs."""
    kind: str
    """The name of the distance: total variation or Kolmogorov distance."""
    refuted: str | None
    """The statement that the law is refuted, or None if it is not."""


def gathered(request: EvidenceRequest, alpha: float) -> Evidence | None:
    """Return the evidence from counts.

    Returns:
        The evidence. None for a control, because counts never refute a claim, and
        whenever ``counting_evidence`` returns None.
    """
    if request.control:
        return None
    by_law = any(kind_of(kind).subject is Subject.LAW for kind in request.kinds)
    return counting_evidence(
        request.adapted,
        request.privacy,
        request.adjacency,
        alpha=alpha,
        # A quarter of the audit's calls, before its game.
        calls=request.calls // 4,
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
    """Bound the loss of the played pairs from above, and compare outputs with the law.

    Any of the statements is wrong with probability at most ``alpha``. For a Gaussian
    claim the loss is not bounded, and outputs are only compared with their law.

    Args:
        mechanism: The mechanism.
        claim: Its claim.
        adjacency: The adjacency of the pairs.
        alpha: Largest probability of a wrong statement.
        calls: Number of counted calls, shared equally by the inputs. The checks of the
            calls come in addition.
        streams: Random streams by purpose and batch.
        play: The pairs to be counted; by default ``adjacency.pairs()``.
        law: Returns the stated law of the output on an input; None for no comparison.

    Returns:
        The evidence. Its verdict is NOT_REFUTED, or INCONCLUSIVE if runs refute the law
        or depend on each other. The result is None if there are fewer than 256 calls
        for each input. It is also None if there is nothing to state, after at least 256
        calls on each input: no law can be compared, and the claim is Gaussian or there
        are too many different outputs.

    Raises:
        AdjacencyError: If a pair is not adjacent.
        MechanismError: If the mechanism misbehaves.
    """
    played = checked_pairs(adjacency, play)
    inputs, ends = inputs_of(played)
    later = calls // max(len(inputs), 1) - FIRST_RUNS
    if later < 0:
        return None
    caller, own = Calls(mechanism), prefixed(streams, "counting:")
    check_calls(caller, inputs, own)
    tally = Tally(caller, inputs, streams, most=MOST_OUTPUTS)
    first = tally.add(FIRST_RUNS)
    first_counts = tally.counts.copy()
    # Over 64 different outputs in the first runs are too many to bound all events.
    has_few_outputs = not tally.full and len(tally.outputs) <= 64
    has_few_outputs = has_few_outputs and not isinstance(claim, GaussianDP)
    compare = None
    if law is not None:
        compare = _comparison([law(data) for data in inputs], caller.form)
    if not has_few_outputs and compare is None:
        return None
    both = zip(first, tally.add(later), strict=True)
    rows = [np.concatenate(parts) for parts in both]
    # The bounds and the test of the law share the error equally.
    error = alpha / (has_few_outputs + (compare is not None))
    losses = event = followed = None
    if has_few_outputs and not tally.full:
        losses = _losses(tally, ends, claim, error)
        event = told_apart(first_counts, tally.counts, ends, later, alpha)
    if compare is not None:
        followed = compare(tally, rows, error)
    if losses is None and followed is None:
        return None
    # Dependent calls would make every bound wrong.
    found = _evidence(losses, event, followed, tally, played, adjacency, claim, alpha)
    return believed(found, caller, inputs[:2], own, calls)


def _losses(tally: Tally, ends: NDArray[np.intp], claim: Claim, error: float) -> Losses:
    epsilon, delta = claim.tangents()[0]
    # Three values of δ are tried, as multiples of the largest probability of an event
    # that never came. Except for the first, a δ above 0.05 is too large to be of use.
    units = (1.25, 5.0, 20.0)
    error /= len(units) + (delta > 0)
    smallest, *larger = (times * unseen(tally.runs, error) for times in units)
    deltas = [smallest, *(each for each in larger if each <= 0.05)]
    if delta >= smallest:
        # The mechanism may need more than the claimed δ, so twice that is tried too.
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
    # The smallest δ is reported whose ε is at most 0.5 above that of the largest δ.
    shown = next(bound for bound in bounds if bound[1] <= epsilons[-1] + 0.5)
    return Losses(bounds, shown, claimed[0] if claimed else None)


Comparison = Callable[[Tally, Sequence[Array], float], Followed]


def _comparison(laws: Sequence[Any], form: Representation) -> Comparison | None:
    """Return the test of runs against the laws of their inputs.

    Returns:
        The test, or None if there is no test for such laws.
    """
    finite = [law for law in laws if isinstance(law, FiniteLaw)]
    # Finite laws are compared output by output, and laws of numbers by distribution
    # functions.
    if len(finite) == len(laws):
        if all(len(law.outcomes) <= MOST_OUTPUTS for law in finite):
            return partial(_by_counts, finite)
        return None
    cdfs = [cdf_of(law) for law in laws]
    if None not in cdfs and form.longest == 1:
        return partial(_by_values, cdfs)
    return None


def _by_counts(
    laws: Sequence[FiniteLaw], tally: Tally, rows: Sequence[Array], error: float
) -> Followed:
    kind = "total variation"
    if tally.full:
        many = f"there are more than {MOST_OUTPUTS:,} different outputs, more than the law has"
        return Followed(1.0, kind, many)
    split = frozenset[bytes]().union(*(law.split for law in laws))
    places = [law.places(tally.outputs, tally.calls.form, split) for law in laws]
    both = list(zip(laws, places, strict=True))
    stated = np.array([np.append(law.floats, 0.0)[at] for law, at in both])
    largest = np.array([law.largest[at] for law, at in both])
    log_e = log_e_value(tally.counts, largest)
    refuted = _several_forms(laws, places)
    if math.isinf(log_e):
        which, output = np.argwhere((tally.counts > 0) & (largest == 0))[0]
        times = int(tally.counts[which, output])
        often = f"{times:,} time{'s' * (times != 1)} in {tally.runs:,} runs"
        refuted = (
            f"{UNLIKE}: an output to which the law gives probability 0 occurred {often}"
        )
    # Half of the error is for the test, and half for the distance.
    elif log_e >= math.log(2 / error):
        once_in = f"10^{log_e / math.log(10):.1f}"
        seldom = (
            f"{tally.runs:,} runs on each input do this at most once in {once_in} times"
        )
        refuted = f"{UNLIKE}: from that law, {seldom}"
    distance = total_variation(tally.counts, stated, tally.runs, error / 2)
    return Followed(distance, kind, refuted)


def _several_forms(
    laws: Sequence[FiniteLaw], places: Sequence[NDArray[np.intp]]
) -> str | None:
    """Return a sentence on an outcome that occurred in several forms on one input.

    The stated probability is then that of all forms together, and a single form may
    lose more.

    Returns:
        The sentence, or None if there is no such outcome.
    """
    for law, found in zip(laws, places, strict=True):
        times = np.bincount(found[found >= 0])
        if (times > 1).any():
            outcome, forms = law.outcomes[int(times.argmax())], int(times.max())
            return (
                "Its stated law is not that of its whole output: the listed "
                f"output {brief(outcome)} occurred in {forms} forms, differing in a "
                "type, the order of keys or the sign of a zero; list each "
                "or return one"
            )
    return None


def _by_values(
    cdfs: Sequence[Any], tally: Tally, rows: Sequence[Array], error: float
) -> Followed:
    """Compare the distribution functions of outputs of one number with the laws.

    The inputs share the error equally. The bound and the test need no shares of their
    own, since both hold if the outputs of each input are near their law's function.
    """
    kind, largest = "Kolmogorov distance", 0.0
    for each, cdf in zip(rows, cdfs, strict=True):
        numbers = tally.calls.form.numbers(each).astype(np.float64)
        largest = max(largest, kolmogorov(numbers.ravel(), cdf))
    margin = kolmogorov_margin(tally.runs, error / len(cdfs))
    found = (
        f"the {kind} of {tally.runs:,} runs from it is {largest:.4g}, of which chance "
        f"explains at most {margin:.4g}"
    )
    refuted = f"{UNLIKE}: {found}" if largest > margin else None
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
    inputs = f"the {len(tally.inputs):,} inputs"
    if len(tally.inputs) == 1:
        inputs = "the input"
    sure = confidence(alpha)
    details = CountingDetails(runs_per_input=tally.runs, confidence=1 - alpha)
    parts, refuted, upper = [], None, None
    if losses is not None:
        delta, epsilon = losses.shown
        scope = _scope(played, adjacency)
        lower, higher = event or (None, None)
        details = replace(
            details,
            scope=scope,
            outputs=len(tally.outputs),
            upper_bounds=[UpperBound(delta=d, epsilon=e) for d, e in losses.bounds],
            delta_upper=delta,
            delta_at_claim=losses.claimed,
            # More than 64 pairs are not named in the record.
            counted_pairs=list(map(str, played)) if len(played) <= 64 else None,
            event_at_least=lower,
            event_at_most=higher,
        )
        bound = "they give no upper bound on ε"
        if math.isfinite(epsilon):
            upper = epsilon
            bound = (
                f"no set of outputs loses more than ε = {outwards(epsilon, up=True)}, "
                "but for a probability of "
                f"δ = {outwards(delta, up=True, digits=2)},"
            )
        parts.append(f"{bound} on {scope}")
        if losses.claimed is not None:
            parts.append(
                f"δ ≤ {outwards(losses.claimed, up=True, digits=2)} at ε = {claim.level:.6g}"
            )
    if followed is not None:
        refuted, kind = followed.refuted, followed.kind
        details = replace(details, law_distance=followed.distance, law_distance_is=kind)
        if refuted is None:
            distance = f"{kind} {outwards(followed.distance, up=True, digits=2)}"
            part = f"the code was observed to follow its law within {distance} on {inputs} tested"
            details = replace(details, followed=f"{part} ({sure})")
            parts.append(part)
    counted = (
        f"Counting {tally.runs:,} runs on each of {inputs} played: {'; '.join(parts)}"
    )
    return Evidence(
        kind="counting",
        verdict=Verdict.NOT_REFUTED if refuted is None else Verdict.INCONCLUSIVE,
        statement=f"{refuted or counted} ({sure})",
        assumptions=[
            "the outputs of one call are independent runs of the mechanism",
            "scope: the tested inputs only",
        ],
        epsilon_upper=upper,
        calls=tally.runs * len(tally.inputs),
        details=details,
    )


def _scope(played: Sequence[Pair], adjacency: Adjacency) -> str:
    """Return a phrase for the counted pairs.

    It is "all pairs" only if the adjacency enumerates its pairs and all were played.
    """
    everything = adjacency.exhaustive()
    listed = {key(each) for pair in played for each in (pair, pair.swapped())}
    complete = everything is not None and all(
        key(pair) in listed for pair in everything
    )
    many = len(played)
    if complete:
        return (
            f"{'the only pair' if many == 1 else f'all {many:,} pairs'} of neighbours"
        )
    return "the counted pair" if many == 1 else f"the {many:,} counted pairs"
