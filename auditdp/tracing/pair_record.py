"""Data of a pair: a recorded run, its replay, and the quantities computed from both.

Findings (`findings`) and the runs that confirm them (`prediction`) start from this
record.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Literal, Self

import numpy as np

from auditdp.claims.claim import Claim
from auditdp.tracing.chance import is_by_chance
from auditdp.tracing.composed_loss import ComposedLoss
from auditdp.tracing.draws import ALONE, NOISY
from auditdp.tracing.losses import Moved, compared
from auditdp.tracing.noise_families import Loss, same
from auditdp.tracing.outcomes import Outcomes
from auditdp.tracing.outputs import occurs, where_differ
from auditdp.tracing.sites import NOWHERE, CodeLine
from auditdp.tracing.threshold_tails import ShownTail
from auditdp.tracing.trace_limits import ABSOLUTE_ROUNDING, ROUNDING
from auditdp.tracing.watched_run import TracedRun

CORRELATED_NOISE = "the loss of Gaussian noise that entries share is not known"
"""Message for Gaussian noise that entries share in a way that is not computed."""
HIDDEN_DRAWS = "the same draws give another output, so it depends on something else"
"""Message for a replay on the same input that gives another output."""
Extent = Literal["full", "part", "none"]


@dataclass(frozen=True, eq=False)
class PairRecord:
    """A recorded run and its replay on a neighbour.

    Everything in it holds for this pair and these runs, and is certified for no other.

    Attributes:
        first: The recorded run.
        second: The replay.
        moved: The releases that both runs have, in the order of the first run, each
            with its loss.
        claim: The claim with which the pair is compared, or None.
        differ: Phrase about the first difference of the outputs (see ``where_differ``);
            None if they are equal.
        outcomes: Law of the output over the outcomes of events and choices; None if it
            was not computed.
        shown: Noisy numbers that one input alone has, each with the probability that
            the output reveals it; empty if this was not computed.
        repeats: Whether a replay on the same input gave the same output; None if there
            was no such replay.
        doubt: Clause on noise that is added to a constant and may hide a differing
            number; else empty.
        fixed: Numbers of the releases whose noise is the same with another generator.
    """

    first: TracedRun
    second: TracedRun
    moved: Sequence[Moved]
    claim: Claim | None = None
    differ: str | None = None
    outcomes: Outcomes | None = None
    shown: Sequence[ShownTail] = ()
    repeats: bool | None = None
    doubt: str = ""
    fixed: frozenset[int] = frozenset()

    @classmethod
    def of(cls, first: TracedRun, second: TracedRun, claim: Claim | None) -> Self:
        """Return the comparison of a recorded run and its replay.

        No further runs are made, so only the first five attributes are set.
        """
        differ = where_differ(first.output, second.output)
        return cls(first, second, _common_releases(first, second), claim, differ)

    @property
    def noisy(self) -> list[Moved]:
        """The releases that are not by chance (see ``is_by_chance``)."""
        return [pair for pair in self.moved if not is_by_chance(pair.first)]

    @property
    def by_chance(self) -> bool:
        """True if any release is by chance, such as an event (see ``is_by_chance``)."""
        return any(is_by_chance(pair.first) for pair in self.moved)

    @property
    def is_settled(self) -> bool:
        """True if runs tried every outcome of events and choices."""
        return self.outcomes is not None and self.outcomes.complete

    def by_line(
        self, moved: Sequence[Moved] | None = None
    ) -> dict[CodeLine, list[Moved]]:
        """Return releases by their line.

        Args:
            moved: The releases; None for all of the pair.
        """
        lines: dict[CodeLine, list[Moved]] = defaultdict(list)
        for pair in self.moved if moved is None else moved:
            lines[pair.first.site].append(pair)
        return dict(lines)

    # Losses.

    @cached_property
    def losses(self) -> tuple[Loss | None, ...]:
        """Loss of each release; None for a release that the trace does not understand.

        The order is that of ``moved``. If all outcomes of events and choices were
        tried, the last item is the joint loss of these, and they have no items of their
        own.
        """
        outcomes = self.outcomes
        if outcomes is None or not outcomes.complete:
            return tuple(pair.loss for pair in self.moved)
        delta = outcomes.delta if outcomes.delta > ABSOLUTE_ROUNDING else 0.0
        return (*(pair.loss for pair in self.noisy), Loss(outcomes.epsilon, delta))

    @cached_property
    def composed(self) -> ComposedLoss:
        """The composition of the losses of all releases."""
        return ComposedLoss.of(self.losses)

    @property
    def level(self) -> float:
        """Upper bound of the smallest level, such as ε, that the losses satisfy.

        The kind of the claim says what the level is.

        Raises:
            ValueError: If there is no claim.
        """
        if self.claim is None:
            raise ValueError(
                "level: expected a claim, whose kind says what a level is; "
                "give compare(..., claim=PureDP(1.0))"
            )
        return self.composed.level(self.claim)

    @cached_property
    def satisfies(self) -> bool | None:
        """True if the losses satisfy the claim on this pair; None without a claim."""
        claim, outcomes = self.claim, self.outcomes
        if claim is None:
            return None
        has_noise = any(pair.loss and any(pair.loss) for pair in self.noisy)
        if outcomes is None or not outcomes.complete or has_noise:
            return self.composed.satisfies(claim)
        # Chance alone decides, so the whole curve of the output is known.
        return all(
            outcomes.delta_at(float(e) * (1 + ROUNDING)) <= float(d) + ABSOLUTE_ROUNDING
            for e, d in claim.statements()
        )

    @property
    def share(self) -> float:
        """Loss divided by the claimed loss, by which a search ranks pairs.

        It is infinite if the outputs differ although no release is by chance. Without a
        claim it is Σ ε_i + √Σ μ_i² over all releases, whatever the outputs are.
        """
        if self.claim is None:
            return self.composed.statements + math.sqrt(self.composed.squared_mu)
        if self.differ and not self.by_chance:
            return math.inf
        return self.composed.share(self.claim)

    @property
    def covers(self) -> bool:
        """True if the losses of the releases bound that of the output in these runs.

        The trace has to understand all code and all losses. Also, either outputs and
        draws are the same on both inputs, or all outcomes of events and choices were
        tried. Other runs may contradict it. See the theorem in `auditdp.tracing`.
        """
        known = all(pair.loss is not None for pair in self.moved)
        if self.extent != "full" or not known:
            return False
        return self.is_settled or (self.differ is None and not self.second.parted)

    # Ranks, for searches among pairs.

    @property
    def apart(self) -> float:
        """Largest distance of the laws of a release on the two inputs, from 0 to 1.

        It ranks pairs whose loss is unbounded.
        """
        return max((pair.apart for pair in self.moved), default=0.0)

    @cached_property
    def scales_apart(self) -> float:
        """Distance of the laws of all noisy values on the two inputs.

        It is the L2 norm of all moves, in scales of their noise, and of the log ratios
        of all scales. Values with noise of unknown law are left out. It also ranks
        pairs whose loss is unbounded.
        """
        squares = 0.0
        for moved in self.noisy:
            sides = (moved.first.law, moved.second.law)
            scales = [np.abs(np.asarray(law.scale, float)) for law in sides]
            is_noise = moved.first.kind == NOISY and sides[0].known is not None
            if not is_noise or not all(scale.all() for scale in scales):
                continue
            # The ratio of scales counts once for each entry.
            times = max(1, math.prod(moved.first.shape))
            ratio = np.log(scales[0].mean() / scales[1].mean())
            squares += _squared_move(moved, float(scales[0].min()))
            squares += times * float(np.square(ratio))
        return math.sqrt(squares)

    @cached_property
    def coherence(self) -> float:
        """Alignment of the moves of each line, from 0 to 1: 1 if all are equal.

        If the output reveals only the sum of many steps, as a final model does, moves
        in other directions cancel in it. If every noisy value with a loss is in the
        output, the alignment does not matter, and is 1. It is also 1 without moves.
        """
        if self.is_visible:
            return 1.0
        total = summed = 0.0
        for pairs in self.by_line().values():
            shapes = {pair.first.shape for pair in pairs}
            if pairs[0].first.kind != NOISY or len(shapes) > 1:
                continue
            changes = [
                np.subtract(pair.second.location, pair.first.location, dtype=float)
                for pair in pairs
            ]
            # Moves in one direction add up, and moves in random directions cancel.
            squared_sum = float(np.sum(np.square(np.sum(changes, axis=0))))
            summed += squared_sum / len(changes)
            total += float(np.sum(np.square(changes)))
        return math.sqrt(summed / total) if total and math.isfinite(total) else 1.0

    @property
    def is_notable(self) -> bool:
        """True if outputs differ, draws differ, or ``share`` exceeds 1.

        A search makes only two runs for most pairs, and further ones for such a pair.
        """
        is_above = self.share > 1 + ROUNDING
        return self.differ is not None or bool(self.second.parted) or is_above

    # The extent to which the trace understands the code.

    @property
    def opaque(self) -> list[tuple[CodeLine, str]]:
        """Lines that the trace does not understand, each with the reason."""
        found = [*self.first.opaque, *self.second.opaque]
        for pair in self.moved:
            if pair.loss is None and pair.first.law.family == "Gaussian":
                found.append((pair.first.site, CORRELATED_NOISE))
        found = list(dict.fromkeys(found))
        if self.repeats is False:
            found.append((NOWHERE, HIDDEN_DRAWS))
        return found

    @property
    def extent(self) -> Extent:
        """Extent to which the trace understands the code: "full", "part" or "none".

        It is "full" if there are draws and no line is opaque, and "part" if there are
        opaque lines or no draws, but at least one release is understood. It is "none"
        otherwise, and for code that does not run on watched noise.
        """
        if self.first.untraceable or self.second.untraceable:
            return "none"
        if not self.opaque and (self.first.draws or self.second.draws):
            return "full"
        return "part" if any(pair.first.is_known for pair in self.moved) else "none"

    @property
    def is_visible(self) -> bool:
        """True if every number of each noisy value with a loss occurs in the output."""
        lossy = [pair.first for pair in self.noisy if pair.is_lossy]
        return all(occurs(release.result, self.first.output) for release in lossy)

    @property
    def is_single(self) -> bool:
        """True if all values with a loss have single precision before their noise.

        A number of any type has single precision if its conversion to ``float32`` is
        exact. It is False if no value has a loss.
        """
        moved = [pair.first for pair in self.noisy if pair.is_lossy]
        values = [
            np.asarray(release.location, float)
            for release in moved
            if release.location is not None
        ]
        return bool(values) and all(
            np.array_equal(x, x.astype(np.float32), equal_nan=True) for x in values
        )

    @property
    def is_hidden(self) -> bool:
        """True if the code uses a draw by itself with too many outcomes to try all.

        An order of many rows is such a draw. Values may depend on it.
        """
        draws = [pair.first for pair in self.moved if pair.first.kind == ALONE]
        return not all(map(is_by_chance, draws))

    @property
    def reordered(self) -> bool:
        """True if an order or a sample is of more rows on one input than on the other.

        It is then not known which rows correspond. The same holds for any draw that the
        code uses by itself, if its shape parameter differs between the inputs.
        """
        draws = [pair for pair in self.moved if pair.first.kind == ALONE]
        return not all(
            same(pair.first.law.parameter, pair.second.law.parameter) for pair in draws
        )


def _squared_move(moved: Moved, scale: float) -> float:
    """Return the square of the move of a value in scales of its noise.

    If the noise was used before, only the part that earlier releases do not predict
    counts.
    """
    if moved.first.earlier and moved.loss is not None and moved.loss.squared_mu:
        return moved.loss.squared_mu
    return (moved.distance / scale) ** 2


def _common_releases(first: TracedRun, second: TracedRun) -> list[Moved]:
    """Return the recorded releases that the replay also has, each with its loss."""
    replayed = {release.recorded: release for release in second.releases}
    found: list[Moved] = []
    for release in first.releases:
        if (other := replayed.get(release.number)) is not None:
            found.append(compared(release, other, found))
    return found
