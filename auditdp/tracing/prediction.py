"""Whether a traced run predicts what the code does: draws are replaced by others, and the code runs again.

A trace follows noise through the code and believes that each noisy value is its location plus noise of its own. The
draws of a run are recorded, so that belief is tried before anything is stated of a release. A run is made again in which

- *noise is drawn anew and the noisy values keep their recorded results*: every event, every choice and the output stay as
  recorded, or noise reaches them in another way (it is used again, it was copied, or a draw is hidden from the trace);
- *events and choices are drawn anew and the noisy values keep their results*: the location and the law of every noisy
  value stay as recorded, or chance decides a scale, a sign or a sample, and the loss of one run is not that of the code;
- *everything is drawn anew, or each noisy value is moved by a step of its own*: an output shows a noisy value where one
  number of it, always the same one, is that value; and a number of it has no noise where it never changes. On both
  inputs the outputs are still the same, or the code takes a branch that the recorded run did not take.

A statement that does not pass is a suspicion, not more. One that passes was true of the runs made, and is not proved.
"""

from __future__ import annotations

import io
import pickle
from collections.abc import Collection, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from auditdp.claims.claim import Claim
from auditdp.claims.curves import RenyiDP, ZeroConcentratedDP
from auditdp.claims.statements import GaussianDP, PureDP
from auditdp.errors import ExhaustedError, Timeout
from auditdp.mechanism.calls.inputs import of_tensor
from auditdp.mechanism.calls.leaves import Raised, kind, leaves
from auditdp.tracing.chance import is_by_chance, other_outcome
from auditdp.tracing.draws import ALONE, NOISY, Release, WatchedDraw
from auditdp.tracing.linear_forms import number
from auditdp.tracing.noise_families import Loss, same
from auditdp.tracing.order_statistics import ordered
from auditdp.tracing.outputs import where_differ
from auditdp.tracing.watched_run import TracedRun

if TYPE_CHECKING:
    from auditdp.tracing.losses import Moved
    from auditdp.tracing.pair import PairTrace
    from auditdp.tracing.trace import Trace

TRIES = 2
"""Runs of each kind on each input."""
MOVED = 24
"""Runs with moved or new noisy values on both inputs, before a loss is called a bound."""
FEWEST_SEEDS = 2**31 - 1
"""Seeds that may be drawn, at least, or they are outcomes that are not all tried."""
EXACT = 2**53
"""Whole numbers up to this one are exact in double precision."""
OTHERS = 8
"""Runs with moved or new noisy values, before an output is said to show a noisy value."""
ORDERED = 5
"""Runs whose order of noisy values is looked at."""
STEPS = (-30.0, -10.0, -3.0, -1.0, -0.3, 0.0, 0.3, 1.0, 3.0, 10.0, 30.0)
"""Steps by which noisy values are moved, in scales of their noise: near, to cross other values, and far."""


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

    What is not tried, since too few runs or too little time are left, did not pass.

    Args:
        trace: Of the function.
        pair: A recorded run and its replay.
    """
    tried = Experiments(trace, pair)
    confirmed, is_bound = set[tuple[str, Any]](), False
    with suppress(ExhaustedError, Timeout):
        for one in pair.findings:
            if one.is_read_off and tried.confirms(one.kind, one.site):
                confirmed.add((one.kind, one.site))
        is_bound = pair.covers and tried.is_bound
    return Prediction(frozenset(confirmed), is_bound)


class Experiments:
    """Runs of a pair with other draws, each made when a statement needs it.

    Args:
        trace: Of the function.
        pair: A recorded run and its replay.
    """

    def __init__(self, trace: Trace, pair: PairTrace) -> None:
        self._trace, self._pair = trace, pair
        self._sides = (pair.first, pair.second)
        self._runs: list[tuple[TracedRun, TracedRun]] = []

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
        if kind == "scale" and not isinstance(
            pair.claim, PureDP | GaussianDP | ZeroConcentratedDP
        ):
            return False  # other claims may allow another scale
        here = [
            moved
            for moved in pair.moved
            if moved.first.site == site and not is_by_chance(moved.first)
        ]
        return self._is_tried and self.is_own and self.is_steady and self.shows(here)

    @property
    def _is_decided(self) -> bool:
        """Whether chance alone decides the output, and all its outcomes were tried."""
        outcomes = self._pair.outcomes
        return (
            outcomes is not None
            and outcomes.complete
            and not any(map(_noisy, self._sides))
        )

    @property
    def _is_tried(self) -> bool:
        """Whether every draw that is no noise has few outcomes, or is a seed."""
        return not any(map(_is_untried, self._pair.first.releases))

    def shows_loss(self, pairs: Sequence[Moved]) -> bool:
        """Return whether the output shows a loss of some releases above the claim, and the loss is exact.

        The loss of releases that the output shows, each with noise of its own, is exact in pure DP, of Gaussian noise, and
        in zero-concentrated DP of noise whose own parameter is known. Other losses are upper bounds.
        """
        if self._is_decided:
            return self.is_own
        lossy = [moved for moved in pairs if moved.is_lossy]
        losses = [moved.loss for moved in lossy if moved.loss is not None]
        if any(is_by_chance(moved.first) for moved in lossy) or not _is_exact(
            losses, self._pair.claim
        ):
            return False
        if (
            not self._is_tried
            or not self.is_own
            or not self.is_steady
            or not self.shows(lossy)
        ):
            return False
        # Where noise decides the location of a release, that noise has to be shown as well: else it may hide the move.
        return self._is_located(lossy) or self.shows(self._pair.noisy)

    def _is_located(self, pairs: Sequence[Moved]) -> bool:
        """Return whether locations and laws of some releases are the same with other noise."""
        return all(
            release.number < len(run.releases)
            and _is_alike(release, run.releases[release.number])
            for both in self._others
            for moved in pairs
            for release, run in zip((moved.first, moved.second), both, strict=True)
        )

    @cached_property
    def is_own(self) -> bool:
        """Whether noise reaches the code through the noisy values alone, and no draw is hidden."""
        for side in self._sides:
            noisy = _noisy(side)
            for k in range(TRIES):
                if not _is_same(
                    side,
                    self._run(side, k, fresh=_draws_of(side, noisy), forced=noisy),
                    releases=True,
                ):
                    return False
            # A seed that was drawn is drawn anew as well: the output may show it, and with it all noise.
            forced = [
                release.number for release in side.releases if not _is_seed(release)
            ]
            everything_anew = self._run(
                side, TRIES, fresh=range(len(side.draws)), forced=forced
            )
            if not _is_same(side, everything_anew, releases=False):
                return False
        return True

    @cached_property
    def is_steady(self) -> bool:
        """Whether locations and laws of noisy values do not depend on events, choices and other draws."""
        return all(
            _noisy(run) == _noisy(side)
            and all(_is_alike(side.releases[n], run.releases[n]) for n in _noisy(side))
            for side in self._sides
            for run in self._by_other_chance(side)
        )

    def _by_other_chance(self, side: TracedRun) -> Iterator[TracedRun]:
        """Yield runs in which chance decides otherwise: each event and choice gets another outcome, then all are anew."""
        noisy = {n: side.releases[n].result for n in _noisy(side)}
        others = set(range(len(side.draws))) - set(_draws_of(side, noisy))
        if not others:
            return
        otherwise = {
            one.number: outcome
            for one in side.releases
            if (outcome := other_outcome(one)) is not None
        }
        yield self._trace.redrawn(
            side, fresh=frozenset(), forced=noisy | otherwise, seed=0
        )
        yield from (
            self._run(side, k, fresh=others, forced=noisy) for k in range(TRIES)
        )

    @cached_property
    def _anew(self) -> list[tuple[TracedRun, TracedRun]]:
        """Runs on both inputs in which everything is drawn anew, on each of them by itself."""
        one, other = (
            [self._run(side, k, fresh=range(len(side.draws))) for k in range(TRIES)]
            for side in self._sides
        )
        return list(zip(one, other, strict=True))

    def _moved(self, most: int) -> list[tuple[TracedRun, TracedRun]]:
        """Return so many runs on the first input with other noisy values, each with its replay on the second.

        Each entry of a noisy value is moved by a step of its own; in every third run all is drawn anew instead.
        """
        first = self._pair.first
        for k in range(len(self._runs), most):
            if k % 3 == TRIES:
                one = self._run(first, TRIES + k, fresh=range(len(first.draws)))
            else:
                rng = np.random.default_rng(k)
                given = {
                    n: _moved_by_steps(first.releases[n], rng) for n in _noisy(first)
                }
                one = self._trace.replay(first.data, first, forced=given)
            self._runs.append(self._replayed(one))
        return self._runs[:most]

    def shows(self, pairs: Sequence[Moved]) -> bool:
        """Return whether the output shows the results of some releases as they are, with other noise as well.

        Each entry of a result has to be one number of the output, which stands at the same place in all runs.
        """
        runs = [self._pair.first, *(one for one, _ in self._others)]
        try:
            outputs = [np.array(list(leaves(run.output)), float) for run in runs]
        except (
            Exception
        ):  # an exception, or of a type that no output of an audit may have
            return False
        if not pairs or len({len(output) for output in outputs}) > 1:
            return False
        return all(_stands_there(moved.first.number, runs, outputs) for moved in pairs)

    @cached_property
    def has_constants(self) -> bool:
        """Whether a difference of the outputs is the same in all runs of either input, so that no noise reaches it."""
        outputs = [
            [side.output, *(both[k].output for both in self._others)]
            for k, side in enumerate(self._sides)
        ]
        forms = [set(map(_form, side)) for side in outputs]
        if len(forms[0]) > 1 or len(forms[1]) > 1:
            return False
        if forms[0] != forms[1]:
            return True
        one, other = (
            [np.array(list(leaves(output)), float) for output in side]
            for side in outputs
        )
        constant = np.all(np.equal(one, one[0]), axis=0) & np.all(
            np.equal(other, other[0]), axis=0
        )
        return bool(np.any(constant & (one[0] != other[0])))

    @cached_property
    def is_bound(self) -> bool:
        """Whether no run shows a way past the releases, or noise that is not that of one release alone."""
        pair = self._pair
        if (
            not self._is_tried
            or any(_is_shared(moved.first) for moved in pair.moved)
            or any(map(_is_coarse, self._sides))
        ):
            return False
        if pair.by_chance:
            return self._is_decided and self.is_own and self._is_random
        lossy = [moved for moved in pair.noisy if moved.is_lossy]
        if not isinstance(pair.claim, ZeroConcentratedDP | RenyiDP) and any(
            map(_is_by_rho, lossy)
        ):
            return False
        if not self.is_own or not self.is_steady or not self._is_random:
            return False
        return self._keeps_order() and all(
            self._is_same_on_both(*both) for both in (self._sides, *self._moved(MOVED))
        )

    @property
    def _is_random(self) -> bool:
        """Whether continuous noise is drawn anew each time, and no number of it is drawn twice.

        Noise of a fixed seed, or of a seed that an earlier result decides, is the same number again where the noisy values
        keep their results. Noise of two generators with one seed is one number twice.
        """
        first = self._pair.first
        again = self._run(
            first, TRIES, fresh=range(len(first.draws)), forced=_noisy(first)
        )
        continuous = [
            draw
            for draw in first.draws
            if draw.law.known is not None and not draw.law.known.is_whole
        ]
        repeated = (draw for draw in continuous if draw.number < len(again.draws))
        return len(set(map(_standard, continuous))) == len(continuous) and not any(
            same(number(draw.numbers), number(again.draws[draw.number].numbers))
            for draw in repeated
        )

    @cached_property
    def _far(self) -> list[tuple[TracedRun, TracedRun]]:
        """Runs on both inputs with all noisy values far below the recorded ones, and far above."""
        first = self._pair.first
        given = (
            {n: _moved_by(first.releases[n], far) for n in _noisy(first)}
            for far in (min(STEPS), max(STEPS))
        )
        return [
            self._replayed(self._trace.replay(first.data, first, forced=forced))
            for forced in given
        ]

    def _replayed(self, one: TracedRun) -> tuple[TracedRun, TracedRun]:
        """Return a run on the first input with its replay on the second."""
        return one, self._trace.replay(self._pair.second.data, one)

    @cached_property
    def _others(self) -> list[tuple[TracedRun, TracedRun]]:
        """Runs on both inputs with other noise: anew, far, and moved entry by entry."""
        return [*self._anew, *self._far, *self._moved(OTHERS)]

    def _keeps_order(self) -> bool:
        """Return whether the output shows no more than an order in other runs as well, if it is to show that alone.

        It stays where all noisy values move together. In another order, what is shown of it loses no more.
        """
        first = self._pair.first
        if not any(moved.only for moved in self._pair.moved):
            return True
        if any(
            where_differ(first.output, run.output) is not None for run, _ in self._far
        ):
            return False
        others = (self._compared(*both) for both in self._moved(ORDERED))
        shares = (
            replace(other, moved=ordered(self._trace, other.first, other.moved)).share
            for other in others
        )
        return max(shares) <= self._pair.share * (1 + 1e-9)

    def _is_same_on_both(self, one: TracedRun, other: TracedRun) -> bool:
        """Return whether a run and its replay have the same output to the last attribute, and lose no more than the pair."""
        again = self._compared(one, other)
        if (
            other.parted
            or again.extent != "full"
            or not _is_identical(one.output, other.output)
        ):
            return False
        return again.share <= self._share * (1 + 1e-9)

    def _compared(self, one: TracedRun, other: TracedRun) -> PairTrace:
        return type(self._pair).of(one, other, self._pair.claim)

    @cached_property
    def _share(self) -> float:
        """The loss of the recorded run and its replay by themselves, without outcomes and orders that were tried."""
        return self._compared(*self._sides).share

    def _run(
        self,
        side: TracedRun,
        k: int,
        *,
        fresh: Collection[int],
        forced: Collection[int] = (),
    ) -> TracedRun:
        given = {n: side.releases[n].result for n in forced}
        return self._trace.redrawn(side, fresh=frozenset(fresh), forced=given, seed=k)


def _noisy(run: TracedRun) -> list[int]:
    return [release.number for release in run.releases if release.kind == NOISY]


def _draws_of(run: TracedRun, releases: Collection[int]) -> list[int]:
    """Return the numbers of the draws that went into some releases."""
    wanted = set(releases)
    return [
        number
        for number, draw in enumerate(run.draws)
        if not wanted.isdisjoint(draw.used.values())
    ]


def _is_same(recorded: TracedRun, run: TracedRun, *, releases: bool) -> bool:
    """Return whether a run has the recorded output and, if asked for, releases with the recorded results."""
    if where_differ(recorded.output, run.output) is not None or run.parted:
        return False
    both = list(zip(recorded.releases, run.releases, strict=False)) if releases else []
    return all(
        _is_alike(one, other) and same(one.result, other.result) for one, other in both
    )


def _is_alike(one: Release, other: Release) -> bool:
    """Return whether two releases have the same law and location."""
    return (
        (one.kind, one.law.family) == (other.kind, other.law.family)
        and same(one.law.scale, other.law.scale)
        and same(one.law.parameter, other.law.parameter)
        and same(one.location, other.location)
    )


def _is_untried(release: Release) -> bool:
    """Return whether chance decides something and has too many outcomes to try them all; a seed decides draws alone."""
    return release.kind == ALONE and not is_by_chance(release) and not _is_seed(release)


def _is_seed(release: Release) -> bool:
    return release.law.family == "integer" and bool(
        np.all(release.law.parameter >= FEWEST_SEEDS)
    )


def _is_coarse(run: TracedRun) -> bool:
    """Return whether values have more digits than their noise, or than doubles: these digits are not looked at."""
    results = {n: np.asarray(of_tensor(run.releases[n].result)) for n in _noisy(run)}
    with_noise = (
        (results[n], np.asarray(of_tensor(draw.numbers)))
        for draw in run.draws
        for n in results.keys() & draw.used.values()
    )
    return (
        run.coarse
        or any(
            each.dtype.kind in "iu" and bool(np.any(np.abs(each) > EXACT))
            for each in results.values()
        )
        or any(
            noise.dtype.kind == value.dtype.kind == "f"
            and noise.itemsize < value.itemsize
            for value, noise in with_noise
        )
    )


def _is_shared(release: Release) -> bool:
    """Return whether draws of a release went into an earlier one, other than Gaussian noise, whose joint law is known."""
    return bool(release.earlier) and release.law.family != "Gaussian"


def _is_by_rho(moved: Moved) -> bool:
    known = moved.first.law.known
    return known is not None and known.is_by_rho


def _is_exact(losses: Sequence[Loss], claim: Claim | None) -> bool:
    """Return whether the composition of losses is no upper bound alone, where the output shows all releases."""
    if isinstance(claim, PureDP) or all(
        loss.squared_mu and not loss.epsilon and not loss.delta for loss in losses
    ):
        return True
    return isinstance(claim, ZeroConcentratedDP) and all(
        loss.squared_mu or loss.rho is not None for loss in losses
    )


def _moved_by(release: Release, steps: Any) -> Any:
    """Return a result that is moved by some scales of its noise; by whole numbers where the noise is whole."""
    known = release.law.known
    away = np.multiply(
        steps, np.max(np.abs(np.asarray(release.law.scale, float))) or 1.0
    )
    return np.asarray(number(release.result)) + (
        np.rint(away) if known is not None and known.is_whole else away
    )


def _moved_by_steps(release: Release, rng: np.random.Generator) -> Any:
    """Return a result whose entries are moved by a random step each, and a little more."""
    steps = rng.choice(STEPS, size=release.shape) + rng.normal(
        scale=0.1, size=release.shape
    )
    return _moved_by(release, steps)


def _stands_there(
    number: int, runs: Sequence[TracedRun], outputs: Sequence[Any]
) -> bool:
    """Return whether every entry of a release is one number of the output, at the same place in all runs."""
    if any(number >= len(run.releases) for run in runs):
        return False
    results = [
        np.ravel(np.real(run.releases[number].result)).astype(float) for run in runs
    ]
    if len({len(result) for result in results}) > 1:
        return False
    entries = np.stack(results, axis=1)
    return all(
        np.any(np.all(np.transpose(outputs) == entry, axis=1)) for entry in entries
    )


def _standard(draw: WatchedDraw) -> bytes:
    """Return the bits of a draw without its location and scale."""
    with np.errstate(all="ignore"):
        return np.asarray(
            (number(draw.numbers) - number(draw.location)) / number(draw.law.scale),
            float,
        ).tobytes()


def _is_identical(one: Any, other: Any) -> bool:
    """Return whether two outputs are the same in all that can be stored of them."""
    try:
        return _Storing.bytes_of(one) == _Storing.bytes_of(other)
    except Exception:  # such as a function or a generator: nobody knows what it holds
        return False


class _Storing(pickle.Pickler):
    """Stores an output for a comparison: an exception with its arguments, a tensor without its place in memory."""

    @classmethod
    def bytes_of(cls, output: Any) -> bytes:
        """Return all of an output."""
        stored = io.BytesIO()
        cls(stored).dump(
            (str(output), output.error.args) if isinstance(output, Raised) else output
        )
        return stored.getvalue()

    def reducer_override(self, part: Any) -> Any:
        """Return how a part is stored."""
        return (
            (str, (str(part.dtype), of_tensor(part)))
            if hasattr(part, "detach")
            else NotImplemented
        )


def _form(output: Any) -> str:
    """Return a text that outputs share which differ in numbers alone."""
    if isinstance(output, Raised):
        return str(output)
    try:
        return f"{kind(output)} {sum(1 for _ in leaves(output))}"
    except Exception:  # of a type that no output of an audit may have
        return type(output).__name__
