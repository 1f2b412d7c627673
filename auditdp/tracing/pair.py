"""What a trace says of a pair of inputs: what moved, what it loses, and what got round the noise."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import product
from typing import Any, Literal

import numpy as np

from auditdp.claims.claim import Claim
from auditdp.mechanism.calls.leaves import kind, leaves
from auditdp.tracing import findings as sentences
from auditdp.tracing.chance import is_by_chance
from auditdp.tracing.composed_loss import ComposedLoss
from auditdp.tracing.draws import ALONE, NOISY
from auditdp.tracing.findings import (
    Finding,
    Printed,
    of_fixed,
    of_loss,
    of_noise,
    of_outputs,
)
from auditdp.tracing.losses import Moved, compared
from auditdp.tracing.noise_families import Loss, same
from auditdp.tracing.order_statistics import ordered
from auditdp.tracing.outcomes import (
    MOST_RUNS,
    Outcomes,
    ShownTail,
    explored,
    shown,
)
from auditdp.tracing.outputs import occurs, where_differ
from auditdp.tracing.prediction import Prediction, predicted
from auditdp.tracing.sites import NOWHERE, CodeLine
from auditdp.tracing.trace import Trace
from auditdp.tracing.training_steps import differences
from auditdp.tracing.watched_run import TracedRun

SHARED = "what Gaussian noise loses that entries share is not known"
"""Why the loss of Gaussian noise is not known."""
Extent = Literal["full", "part", "none"]
OTHERWISE = -1e6, 0.0
"""Times as large is a noisy constant, for what it is used for to show."""


@dataclass(frozen=True, eq=False)
class PairTrace(Printed):
    """A recorded run and its replay on a neighbour.

    Everything it says is seen on this pair and these runs, and certified for none.

    Attributes:
        first: The recorded run.
        second: The replay.
        moved: The releases that both have, in order.
        claim: The claim that it is compared with; None where there is none.
        differ: Where the outputs differ; None where they are the same.
        outcomes: The law of what chance decides, where it was asked for.
        shown: How often the output shows noisy numbers that one input alone has, where that was asked and is known.
        repeats: Whether a replay on the same input gave the same output; None where it was not asked.
        doubt: What is done with a constant that has noise, where that may be what hides a number that differs.
        fixed: Numbers of the releases whose noise is the same in every run.
        prediction: Which findings other runs confirmed; None where that was not tried.
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
    prediction: Prediction | None = None

    @classmethod
    def of(cls, first: TracedRun, second: TracedRun, claim: Claim | None) -> PairTrace:
        """Return what a recorded run and its replay say by themselves."""
        return cls(
            first,
            second,
            _together(first, second),
            claim,
            where_differ(first.output, second.output),
        )

    @property
    def is_visible(self) -> bool:
        """Whether every noisy value that moved occurs in the output as it is: then it can be recovered from it."""
        lossy = [pair.first for pair in self.noisy if pair.is_lossy]
        return all(occurs(release.result, self.first.output) for release in lossy)

    @cached_property
    def losses(self) -> tuple[Loss | None, ...]:
        """What each release loses; those decided by chance as one, the last, where the law of the output is known."""
        outcomes = self.outcomes
        if outcomes is None or not outcomes.complete:
            return tuple(pair.loss for pair in self.moved)
        noisy = [pair.loss for pair in self.moved if not is_by_chance(pair.first)]
        return (
            *noisy,
            Loss(outcomes.epsilon, outcomes.delta if outcomes.delta > 1e-12 else 0.0),
        )

    @cached_property
    def composed(self) -> ComposedLoss:
        """The releases together."""
        return ComposedLoss.of(self.losses)

    @property
    def level(self) -> float:
        """The smallest level of a claim of this kind that the releases of the pair satisfy.

        Raises:
            ValueError: If there is no claim.
        """
        if self.claim is None:
            raise ValueError(
                "level: expected a claim, whose kind says what a level is; give compare(..., claim=PureDP(1.0))"
            )
        return self.composed.level(self.claim)

    @property
    def is_bound(self) -> bool:
        """Whether the loss of the releases bounds that of the output, in this run and all by which that was tried."""
        return self.prediction is not None and self.prediction.is_bound

    @property
    def covers(self) -> bool:
        """Whether this run alone shows nothing against that: for a search, and before it is tried. See the theorem."""
        settled = self.outcomes is not None and self.outcomes.complete
        known = all(pair.loss is not None for pair in self.moved)
        same_output = self.differ is None or settled
        return (
            self.extent == "full"
            and known
            and same_output
            and (settled or not self.second.parted)
        )

    @cached_property
    def satisfies(self) -> bool | None:
        """Whether the releases that the trace understands keep the claim on this pair; None without a claim."""
        if self.claim is None:
            return None
        found = self.outcomes
        if (
            found is None
            or not found.complete
            or any(pair.loss and any(pair.loss) for pair in self.noisy)
        ):
            return self.composed.satisfies(self.claim)
        return all(
            found.delta_at(float(e) * (1 + 1e-9)) <= float(d) + 1e-12
            for e, d in self.claim.statements()
        )

    @property
    def is_single(self) -> bool:
        """Whether all that moves below noise has single precision, as numbers of torch have in whatever they are kept."""
        moved = [pair.first for pair in self.noisy if pair.is_lossy]
        locations = [
            np.asarray(release.location, float)
            for release in moved
            if release.location is not None
        ]
        return bool(locations) and all(
            np.array_equal(x, x.astype(np.float32), equal_nan=True) for x in locations
        )

    @property
    def share(self) -> float:
        """A number that grows with the loss, 1 at the claim; infinite where something got round the noise: for a search."""
        if self.claim is None:
            return self.composed.statements + math.sqrt(self.composed.squared_mu)
        return (
            math.inf
            if self.differ and not self.by_chance
            else self.composed.share(self.claim)
        )

    @cached_property
    def scales_apart(self) -> float:
        """How far apart noisy values are, by their moves and scales in standard scales: also where no loss is bounded."""
        squares = 0.0
        for moved in self.noisy:
            scales = [
                np.abs(np.asarray(each.law.scale, float))
                for each in (moved.first, moved.second)
            ]
            if (
                moved.first.law.known is not None
                and moved.first.kind == NOISY
                and all(scale.all() for scale in scales)
            ):
                times = max(1, int(np.prod(moved.first.shape)))
                squares += (moved.distance / float(scales[0].min())) ** 2
                squares += times * float(
                    np.mean(np.square(np.log(scales[0].mean() / scales[1].mean())))
                )
        return math.sqrt(squares)

    @cached_property
    def coherence(self) -> float:
        """How far what noise is added to moves one way at each line, 0 to 1: what a final model keeps of its steps."""
        if self.is_visible:
            return 1.0
        kept = moved = 0.0
        for pairs in self.by_line().values():
            if (
                pairs[0].first.kind == NOISY
                and len({pair.first.shape for pair in pairs}) == 1
            ):
                changes = [
                    np.subtract(pair.second.location, pair.first.location, dtype=float)
                    for pair in pairs
                ]
                kept += float(np.sum(np.square(np.sum(changes, axis=0)))) / len(changes)
                moved += float(np.sum(np.square(changes)))
        return math.sqrt(kept / moved) if moved and math.isfinite(moved) else 1.0

    @property
    def apart(self) -> float:
        """How far apart the laws of the releases are, from 0 to 1: what is larger of two losses without bound."""
        return max((pair.apart for pair in self.moved), default=0.0)

    @property
    def is_notable(self) -> bool:
        """Whether a search that looks at two runs of each pair has reason to compare this one with all ``outcomes``.

        Code that decides by chance has reason on its first pair as well: what happens seldom shows there.
        """
        return (
            self.differ is not None or bool(self.second.parted) or self.share > 1 + 1e-9
        )

    @property
    def opaque(self) -> list[tuple[CodeLine, str]]:
        """What the trace does not understand."""
        shared = [
            (p.first.site, SHARED)
            for p in self.moved
            if p.loss is None and p.first.law.family == "Gaussian"
        ]
        other = [
            (
                NOWHERE,
                "the same draws give another output: it depends on something else",
            )
        ]
        return list(
            dict.fromkeys([*self.first.opaque, *self.second.opaque, *shared])
        ) + other * (self.repeats is False)

    @property
    def extent(self) -> Extent:
        """Whether the code is traced in full, in part, or not at all."""
        if self.first.untraceable or self.second.untraceable:
            return "none"
        known = [pair for pair in self.moved if pair.first.is_known]
        return (
            "full"
            if not self.opaque and (self.first.draws or self.second.draws)
            else "part"
            if known
            else "none"
        )

    @cached_property
    def findings(self) -> list[Finding]:
        """What is to be said of the pair, most telling first."""
        found = [*of_fixed(self), *of_noise(self), *of_loss(self), *of_outputs(self)]
        found += [
            Finding("steps", site, sentence, False)
            for site, sentence in differences(self)
        ]
        for site, sentence in dict.fromkeys(self.second.parted):
            seeded = "seeded" in sentence
            found.append(
                Finding(
                    "seed" if seeded else "flow",
                    site,
                    f"line {site.line}: {sentence}",
                    seeded,
                )
            )
        unknown = {
            site: [pair for pair in pairs if not pair.first.is_known]
            for site, pairs in self.by_line().items()
        }
        for site, why in self.opaque:
            line = f"line {site.line}: {why}" if site.line else why
            said = sentences.of_line(unknown[site]) if unknown.get(site) else line
            found.append(Finding("opaque", site, said, False))
        if self.prediction is not None:
            confirmed = self.prediction.confirmed
            found = [
                replace(one, is_confirmed=(one.kind, one.site) in confirmed)
                for one in found
            ]
        return sorted(
            found,
            key=lambda finding: (not finding.is_confirmed, not finding.is_read_off),
        )

    @property
    def proposes(self) -> bool:
        """Whether the trace proposes that the claim fails on this pair, for a reason that it understands."""
        return any(finding.is_read_off for finding in self.findings)

    def by_line(
        self, moved: Sequence[Moved] | None = None
    ) -> dict[CodeLine, list[Moved]]:
        """Return the releases, or some of them, by their line."""
        lines: dict[CodeLine, list[Moved]] = defaultdict(list)
        for pair in self.moved if moved is None else moved:
            lines[pair.first.site].append(pair)
        return dict(lines)

    def __str__(self) -> str:
        """Return every finding as a line, the lines that release anything, and what that comes to."""
        lines = [
            sentences.of_line(pairs, self.claim) for pairs in self.by_line().values()
        ]
        found = [finding.sentence for finding in self.findings]
        return "\n".join(
            [
                *map(str, self.findings),
                *(line for line in lines if line not in found),
                self.summary,
            ]
        )

    @property
    def summary(self) -> str:
        """What all releases lose together, and on what that was seen."""
        if self.claim is None:
            return "on this pair and run; there is no claim to compare it with"
        loss = f"{self.claim.parameter} = {self.level:.6g}"
        if not self.is_bound or self.level == math.inf:
            return f"on this pair and run, what the trace understands loses {loss}; the output may lose more, or less"
        return f"on this pair and run: at most {loss}; the claim is {self.claim}"

    @property
    def noisy(self) -> list[Moved]:
        """The releases that are values with noise."""
        return [pair for pair in self.moved if not is_by_chance(pair.first)]

    @property
    def by_chance(self) -> bool:
        """Whether any release is an event or a choice."""
        return any(is_by_chance(pair.first) for pair in self.moved)

    @property
    def is_hidden(self) -> bool:
        """Whether values may depend on draws that are no noise and have too many outcomes to try, as an order of rows."""
        return any(
            pair.first.kind == ALONE and not is_by_chance(pair.first)
            for pair in self.moved
        )

    @property
    def reordered(self) -> bool:
        """Whether an order or a sample of rows is of another length on the other input: how they correspond is not known."""
        sides = [
            (pair.first.law, pair.second.law)
            for pair in self.moved
            if pair.first.kind == ALONE
        ]
        return any(not same(law.parameter, other.parameter) for law, other in sides)


def compare(
    trace: Trace,
    data: Any,
    neighbour: Any,
    rng: np.random.Generator,
    *,
    claim: Claim | None = None,
    outcomes: int = MOST_RUNS,
) -> PairTrace:
    """Record a run on an input, replay it on a neighbour, and return what that says of the pair.

    Args:
        trace: Of the function; entered by the caller where many pairs follow.
        data: The input.
        neighbour: The other one.
        rng: The generator of the recorded run.
        claim: What the function is to satisfy.
        outcomes: Runs on each input for other outcomes of events and choices; 0 looks at the recorded ones alone, in
            two runs. Else what is said of the pair is tried by further runs.
    """
    with trace:
        recorded = trace.record(data, rng)
        found = replayed(trace, recorded, neighbour, claim=claim, outcomes=outcomes)
        return checked(trace, found) if outcomes else found


def checked(trace: Trace, seen: PairTrace) -> PairTrace:
    """Return what a trace says of a pair once runs with other draws have confirmed it, or not."""
    if seen.prediction is not None:
        return seen
    with trace:
        return replace(seen, prediction=predicted(trace, seen))


def replayed(
    trace: Trace,
    recorded: TracedRun,
    neighbour: Any,
    *,
    claim: Claim | None = None,
    outcomes: int = MOST_RUNS,
) -> PairTrace:
    """Replay a recorded run on a neighbour: ``compare`` where the run is there already, for a search from one input."""
    with trace:
        located = len(trace.located)
        second = trace.replay(neighbour, recorded)
        if len(trace.located) > located:
            again = trace.again(recorded, recorded.constants)
            return replayed(trace, again, neighbour, claim=claim, outcomes=outcomes)
        found = _best_order(trace, PairTrace.of(recorded, second, claim))
        if (
            found.differ is not None
            and not outcomes
            and _still(found) not in trace.tried
        ):
            found = _with_constants(trace, found)
        return in_full(trace, found, outcomes) if outcomes else found


def in_full(trace: Trace, seen: PairTrace, outcomes: int) -> PairTrace:
    """Return what a trace says of a pair with other outcomes of events and choices, where two runs of it are there."""
    with trace:
        if seen.differ is not None and not seen.doubt:
            seen = _with_constants(trace, seen)
        recorded, second, moved, found = seen.first, seen.second, seen.moved, None
        fixed: frozenset[int] = frozenset()
        if any(pair.loss and any(pair.loss) for pair in moved):
            same_noise = (
                draw for draw in recorded.draws if trace.is_fixed(draw, recorded)
            )
            fixed = frozenset(n for draw in same_noise for n in draw.used.values())
        repeats = seen.repeats
        if seen.differ is not None and repeats is None:
            repeats = (
                where_differ(
                    recorded.output, trace.replay(recorded.data, recorded).output
                )
                is None
            )
        if seen.satisfies is False:
            moved = ordered(trace, recorded, moved)
        if any(map(is_by_chance, [*recorded.releases, *second.releases])):
            found = explored(trace, recorded, second.data, outcomes)
        tails: Sequence[ShownTail] = ()
        if found is None and seen.claim is not None and second.parted:
            tails = shown(trace, recorded, second) or ()
        return replace(
            seen, moved=moved, outcomes=found, shown=tails, repeats=repeats, fixed=fixed
        )


def _with_constants(trace: Trace, seen: PairTrace) -> PairTrace:
    """Return a pair whose outputs differ as it is where constants that have noise are part of the noise.

    Then the noise may hide the difference, and the runs are made again, or there is a doubt; but not where it is known not
    to reach a number that differs.
    """
    still = _still(seen)
    if not still:
        return seen
    alike = _same_form(seen.first.output, seen.second.output)
    differ = _unlike(seen.first.output, seen.second.output) if alike else frozenset()
    unreached = trace.unreached.get(still, frozenset())
    if differ & unreached:
        return seen
    trace.tried.add(still)
    again = trace.again(seen.first, still)
    other = trace.replay(seen.second.data, again)
    anew = PairTrace.of(again, other, seen.claim)
    if anew.differ is None:
        trace.constants |= still  # for searches, which look at two runs of a pair
        return anew
    if not alike:
        return seen
    doubt = _hiding(still, anew)
    free = _unreached(trace, seen, still, differ) if doubt else differ
    trace.unreached[still] = unreached | free
    return seen if free else replace(seen, doubt=doubt)


def _still(seen: PairTrace) -> frozenset[CodeLine]:
    """Return the lines that add noise to what moves nowhere, such as zeros that are filled: that is no release yet."""
    noisy = [pair for pair in seen.moved if pair.first.kind == NOISY]
    return frozenset(
        {pair.first.site for pair in noisy}
        - {pair.first.site for pair in noisy if pair.distance or pair.why}
    )


def _hiding(still: frozenset[CodeLine], seen: PairTrace) -> str:
    """Return which line adds noise to a constant that the output does not show: what it is used for may hide a number."""
    lines = [
        pair.first.site.line
        for pair in seen.moved
        if pair.first.site in still
        and not pair.distance
        and not occurs(pair.first.result, seen.first.output)
    ]
    return (
        f"what line {lines[0]} adds noise to does not move, and may hide it"
        if lines
        else ""
    )


def _unreached(
    trace: Trace, seen: PairTrace, lines: frozenset[CodeLine], differ: frozenset[int]
) -> frozenset[int]:
    """Return which numbers by which outputs differ the noise of some lines does not reach, by their place among all.

    They are the same on either input where that noise is huge or absent, as where weights are overwritten after they were
    initialised; so it does not hide them.
    """
    for times, run in product(OTHERWISE, (seen.first, seen.second)):
        forced = {
            each.number: times * np.asarray(each.result)
            for each in run.releases
            if each.site in lines
        }
        other = trace.replay(run.data, seen.first, forced=forced).output
        if not _same_form(run.output, other):
            return frozenset()
        differ -= _unlike(run.output, other)
        if not differ:
            break
    return differ


def _unlike(first: Any, second: Any) -> frozenset[int]:
    """Return which numbers of two outputs of one form differ, by their place among all."""
    return frozenset(
        k
        for k, (a, b) in enumerate(zip(leaves(first), leaves(second), strict=True))
        if a != b
    )


def _same_form(first: Any, second: Any) -> bool:
    """Return whether two outputs differ in numbers alone."""
    try:
        return kind(first) == kind(second) and len(list(leaves(first))) == len(
            list(leaves(second))
        )
    except Exception:  # of a type that no output of an audit may have
        return False


def _best_order(trace: Trace, seen: PairTrace) -> PairTrace:
    """Return a replay with the releases of each line in another order, where that shows less: a coupling as good as any."""
    loss, claim = seen.composed, seen.claim
    if seen.differ is None and (claim is None or loss.satisfies(claim)):
        return seen
    other = trace.reordered(seen.second.data, seen.first, seen.second)
    if other is None:
        return seen
    anew = PairTrace.of(seen.first, other, claim)
    moves_less = claim is not None and anew.composed.share(claim) < loss.share(claim)
    is_better = (
        seen.differ is not None or moves_less
        if anew.differ is None
        else seen.differ and other.parted and moves_less
    )
    return anew if is_better else seen


def _together(first: TracedRun, second: TracedRun) -> list[Moved]:
    """Return the releases that two runs share."""
    replayed_as = {
        release.recorded: release
        for release in second.releases
        if release.recorded is not None
    }
    found: list[Moved] = []
    for release in first.releases:
        if release.number in replayed_as:
            found.append(compared(release, replayed_as[release.number], found))
    return found
