"""Whether a traced run predicts what the code does: draws are replaced by others, and the code runs again.

A trace follows noise through the code and believes that each noisy value is its location plus noise of its own. The
draws of a run are recorded, so that belief is tried before anything is stated of a release. A run is made again in which

- *noise is drawn anew and the noisy values keep their recorded results*: every event, every choice and the output stay as
  recorded, or noise reaches them in another way (it is used again, it was copied, or a draw is hidden from the trace);
- *events and choices are drawn anew and the noisy values keep their results*: the location and the law of every noisy
  value stay as recorded, or chance decides a scale, a sign or a sample, and the loss of one run is not that of the code;
- *everything is drawn anew*: the output shows the noisy values again, or they cancel before it; and numbers of the output
  that are the same in all runs have no noise;
- *the noisy values get results far from the recorded ones, on both inputs*: outputs are still the same, or the code takes
  a branch that the recorded run did not take.

A statement that does not pass is a suspicion, not more. One that passes was true of the runs made, and is not proved.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from auditdp.claims.base import Claim
from auditdp.claims.curves import RenyiDP, ZeroConcentratedDP
from auditdp.claims.statements import PureDP
from auditdp.mechanism.calls.leaves import Raised, kind, leaves
from auditdp.tracing.draws import ALONE, LARGEST, NOISY, Release, WatchedDraw
from auditdp.tracing.exploring import is_by_chance, other_outcome
from auditdp.tracing.families import Loss, same
from auditdp.tracing.forms import number
from auditdp.tracing.outputs import occurs, where_differ
from auditdp.tracing.run import TracedRun

if TYPE_CHECKING:
    from auditdp.tracing.losses import Moved
    from auditdp.tracing.pair import PairTrace
    from auditdp.tracing.trace import Trace

TRIES = 2
"""Runs of each kind on each input."""
RECORDINGS = 8
"""Other runs of which the loss is compared with that of the recorded one, before it is a bound."""
FAR = (-30.0, 30.0)
"""Distances, in scales of the noise, to which noisy values are forced in search of other branches."""


@dataclass(frozen=True)
class Prediction:
    """The statements about a pair that passed.

    Attributes:
        confirmed: Kind and line of each finding that the runs confirm.
        is_bound: Whether the loss of the releases bounds that of the output, in every run that was made.
    """

    confirmed: frozenset[tuple[str, Any]]
    is_bound: bool


def predicted(trace: Trace, pair: PairTrace) -> Prediction:
    """Try the findings of a pair, and whether the loss of its releases bounds that of the output.

    Args:
        trace: Of the function.
        pair: A recorded run and its replay.
    """
    tried = Experiments(trace, pair)
    confirmed = {
        (one.kind, one.site) for one in pair.findings if one.is_read_off and tried.confirms(one.kind, one.site)
    }
    return Prediction(frozenset(confirmed), pair.covers and tried.is_bound)


class Experiments:
    """Runs of a pair with other draws, each made when a statement needs it.

    Args:
        trace: Of the function.
        pair: A recorded run and its replay.
    """

    def __init__(self, trace: Trace, pair: PairTrace) -> None:
        self._trace, self._pair = trace, pair
        self._sides = (pair.first, pair.second)

    def confirms(self, kind: str, site: Any) -> bool:
        """Return whether runs confirm a finding.

        Args:
            kind: As ``Finding`` has it.
            site: Its line.
        """
        pair = self._pair
        if kind == "round":
            return self.is_own and (self.has_constants or self._is_decided)
        if kind == "loss":
            return self.shows_loss(pair.moved)
        here = [moved for moved in pair.moved if moved.first.site == site and not is_by_chance(moved.first)]
        return self.is_own and self.is_steady and self.shows(here)

    @property
    def _is_decided(self) -> bool:
        """Whether chance alone decides the output, and all its outcomes were tried."""
        outcomes = self._pair.outcomes
        return outcomes is not None and outcomes.complete and not any(map(_is_lossy, self._pair.noisy))

    def shows_loss(self, pairs: Sequence[Moved]) -> bool:
        """Return whether the output shows a loss of some releases above the claim, and the loss is exact.

        The loss of releases that the output shows, each with noise of its own, is exact in pure DP, of Gaussian noise, and
        in zero-concentrated DP of noise whose own parameter is known. Other losses are upper bounds.
        """
        if self._is_decided:
            return self.is_own
        lossy = [moved for moved in pairs if _is_lossy(moved)]
        losses = [moved.loss for moved in lossy if moved.loss is not None]
        if any(is_by_chance(moved.first) for moved in lossy) or not _is_exact(losses, self._pair.claim):
            return False
        if not self.is_own or not self.is_steady or not self.shows(lossy):
            return False
        # Where noise decides the location of a release, that noise has to be shown as well: else it may hide the move.
        return self._is_located(lossy) or self.shows(self._pair.noisy)

    def _is_located(self, pairs: Sequence[Moved]) -> bool:
        """Return whether locations and laws of some releases are the same with other noise."""
        return all(_is_alike(one.first, run.releases[one.first.number]) for run in self._anew[0] for one in pairs)

    @cached_property
    def is_own(self) -> bool:
        """Whether noise reaches the code through the noisy values alone, and no draw is hidden."""
        for side in self._sides:
            noisy = _noisy(side)
            for k in range(TRIES):
                if not _is_same(side, self._run(side, k, fresh=_draws_of(side, noisy), forced=noisy), releases=True):
                    return False
            # A seed that was drawn is drawn anew as well: the output may show it, and with it all noise.
            forced = [release.number for release in side.releases if not _is_seed(release)]
            everything_anew = self._run(side, TRIES, fresh=range(len(side.draws)), forced=forced)
            if not _is_same(side, everything_anew, releases=False):
                return False
        return True

    @cached_property
    def is_steady(self) -> bool:
        """Whether locations and laws of noisy values do not depend on events, choices and other draws."""
        return all(
            _noisy(run) == _noisy(side) and all(_is_alike(side.releases[n], run.releases[n]) for n in _noisy(side))
            for side in self._sides
            for run in self._by_other_chance(side)
        )

    def _by_other_chance(self, side: TracedRun) -> Iterator[TracedRun]:
        """Yield runs in which chance decides otherwise: each event and choice gets another outcome, then all are anew."""
        noisy = {n: side.releases[n].result for n in _noisy(side)}
        others = set(range(len(side.draws))) - set(_draws_of(side, noisy))
        if not others:
            return
        otherwise = {one.number: outcome for one in side.releases if (outcome := other_outcome(one)) is not None}
        yield self._trace.redrawn(side, fresh=frozenset(), forced=noisy | otherwise, seed=0)
        for k in range(TRIES):
            yield self._trace.redrawn(side, fresh=frozenset(others), forced=noisy, seed=k)

    @cached_property
    def _anew(self) -> tuple[list[TracedRun], list[TracedRun]]:
        """Runs on both inputs in which everything is drawn anew."""
        first, second = (
            [self._run(side, k, fresh=range(len(side.draws))) for k in range(TRIES)] for side in self._sides
        )
        return first, second

    def shows(self, pairs: Sequence[Moved]) -> bool:
        """Return whether the output shows the results of some releases as they are, with other noise as well."""
        numbers = [moved.first.number for moved in pairs]
        return bool(numbers) and all(
            n < len(run.releases) and occurs(run.releases[n].result, run.output)
            for run in (self._pair.first, *self._anew[0])
            for n in numbers
        )

    @cached_property
    def has_constants(self) -> bool:
        """Whether a difference of the outputs is the same in all runs of either input, so that no noise reaches it."""
        outputs = [
            [side.output, *(run.output for run in runs)] for side, runs in zip(self._sides, self._anew, strict=True)
        ]
        forms = [set(map(_form, side)) for side in outputs]
        if len(forms[0]) > 1 or len(forms[1]) > 1:
            return False
        if forms[0] != forms[1]:
            return True
        one, other = ([np.array(list(leaves(output)), float) for output in side] for side in outputs)
        constant = np.all(np.equal(one, one[0]), axis=0) & np.all(np.equal(other, other[0]), axis=0)
        return bool(np.any(constant & (one[0] != other[0])))

    @cached_property
    def is_bound(self) -> bool:
        """Whether no run shows a way past the releases, or noise that is not that of one release alone."""
        pair = self._pair
        if any(_is_untried(moved.first) or _is_shared(moved.first) for moved in pair.moved):
            return False
        if pair.by_chance:
            return self._is_decided and not _noisy(pair.first) and self.is_own
        lossy = [moved for moved in pair.noisy if _is_lossy(moved)]
        if not isinstance(pair.claim, ZeroConcentratedDP | RenyiDP) and any(map(_is_by_rho, lossy)):
            return False
        if not self.is_own or not self.is_steady or not self._is_random(lossy):
            return False
        return all(map(self._is_far_alike, FAR)) and all(map(self._is_alike_on_both, self._recordings()))

    def _is_random(self, lossy: Sequence[Moved]) -> bool:
        """Return whether no draw of some releases is the same number in all runs, as those of a fixed seed are."""
        first = self._pair.first
        return all(
            any(k >= len(run.draws) or not _is_equal(first.draws[k], run.draws[k]) for run in self._anew[0])
            for k in _draws_of(first, [moved.first.number for moved in lossy])
        )

    def _is_far_alike(self, far: float) -> bool:
        """Return whether nothing differs or loses more with all noisy values far from the recorded ones."""
        first = self._pair.first
        given = {n: _far(first.releases[n], far) for n in _noisy(first)}
        one = self._trace.replay(first.data, first, forced=given)
        # Values that are moved together keep their order, and so the output where it shows that order alone.
        in_order = any(moved.only for moved in self._pair.moved)
        return self._is_alike_on_both(one) and not (in_order and where_differ(first.output, one.output))

    def _recordings(self) -> Iterator[TracedRun]:
        """Yield other recorded runs on the first input."""
        first = self._pair.first
        return (self._run(first, k, fresh=range(len(first.draws))) for k in range(RECORDINGS))

    def _is_alike_on_both(self, one: TracedRun) -> bool:
        """Return whether nothing differs or loses more where another run on the first input is replayed on the second."""
        pair = self._pair
        other = self._trace.replay(pair.second.data, one)
        again = type(pair).of(one, other, pair.claim)
        if again.differ is not None or other.parted or again.extent != "full":
            return False
        return again.share <= type(pair).of(pair.first, pair.second, pair.claim).share * (1 + 1e-9)

    def _run(self, side: TracedRun, k: int, *, fresh: Collection[int], forced: Collection[int] = ()) -> TracedRun:
        given = {n: side.releases[n].result for n in forced}
        return self._trace.redrawn(side, fresh=frozenset(fresh), forced=given, seed=k)


def _noisy(run: TracedRun) -> list[int]:
    return [release.number for release in run.releases if release.kind == NOISY]


def _draws_of(run: TracedRun, releases: Collection[int]) -> list[int]:
    """Return the numbers of the draws that went into some releases."""
    wanted = set(releases)
    return [number for number, draw in enumerate(run.draws) if not wanted.isdisjoint(draw.used.values())]


def _is_same(recorded: TracedRun, run: TracedRun, *, releases: bool) -> bool:
    """Return whether a run has the recorded output and, if asked for, releases with the recorded results."""
    if where_differ(recorded.output, run.output) is not None or run.parted:
        return False
    both = list(zip(recorded.releases, run.releases, strict=False)) if releases else []
    return all(_is_alike(one, other) and same(one.result, other.result) for one, other in both)


def _is_alike(one: Release, other: Release) -> bool:
    """Return whether two releases have the same law and location."""
    values = zip(_law_and_location(one), _law_and_location(other), strict=True)
    return (one.kind, one.law.family) == (other.kind, other.law.family) and all(a is b or same(a, b) for a, b in values)


def _law_and_location(release: Release) -> tuple[Any, Any, Any]:
    return release.law.scale, release.law.parameter, release.location


def _is_equal(one: WatchedDraw, other: WatchedDraw) -> bool:
    return same(number(one.numbers), number(other.numbers))


def _is_lossy(moved: Moved) -> bool:
    return moved.loss is None or any(moved.loss)


def _is_untried(release: Release) -> bool:
    """Return whether chance decides something and has too many outcomes to try them all; a seed decides draws alone."""
    return release.kind == ALONE and not is_by_chance(release) and not _is_seed(release)


def _is_seed(release: Release) -> bool:
    return release.law.family == "integer" and bool(np.all(release.law.parameter > LARGEST))


def _is_shared(release: Release) -> bool:
    """Return whether draws of a release went into an earlier one, other than Gaussian noise, whose joint law is known."""
    return bool(release.earlier) and release.law.family != "Gaussian"


def _is_by_rho(moved: Moved) -> bool:
    known = moved.first.law.known
    return known is not None and known.is_by_rho


def _is_exact(losses: Sequence[Loss], claim: Claim | None) -> bool:
    """Return whether the composition of losses is no upper bound alone, where the output shows all releases."""
    if isinstance(claim, PureDP) or all(loss.squared_mu and not loss.epsilon and not loss.delta for loss in losses):
        return True
    return isinstance(claim, ZeroConcentratedDP) and all(loss.squared_mu or loss.rho is not None for loss in losses)


def _far(release: Release, far: float) -> Any:
    """Return a result far from the recorded one; a whole number where the noise is whole."""
    scale = float(np.max(np.abs(np.asarray(release.law.scale, float))))
    away = far * (scale or 1.0)
    known = release.law.known
    return np.asarray(release.result) + (np.rint(away) if known is not None and known.is_whole else away)


def _form(output: Any) -> str:
    """Return a text that outputs share which differ in numbers alone."""
    if isinstance(output, Raised):
        return str(output)
    try:
        return f"{kind(output)} {sum(1 for _ in leaves(output))}"
    except Exception:  # of a type that no output of an audit may have
        return type(output).__name__
