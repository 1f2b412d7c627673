"""Tests whether a traced run predicts the code, by runs with other draws.

A trace follows noise through the code and assumes that each noisy value is its location
plus noise of its own. The draws of a run are recorded, so that this assumption can be
tested. A run is made again in three ways:

- *Noise is drawn anew and the noisy values keep their recorded results.* Every event,
  every choice and the output have to stay as recorded. Else noise reaches them in
  another way: it is used again, it was copied, or the trace does not observe a draw.
- *Events and choices are drawn anew and the noisy values keep their results.* The
  location and the law of every noisy value have to stay as recorded. Else chance
  decides a scale, a sign or a sample, and the loss of one run is not that of the code.
- *Everything is drawn anew, or each noisy value is moved by a step of its own.* The
  output shows a noisy value if one number of the output, always at the same place, is
  that value. A number of the output has no noise if it never changes. On both inputs
  the outputs have to stay equal. Else the code takes a branch that the recorded run did
  not take.

A statement that fails such a test is only a suspicion. A statement that passes was true
in all runs, and is not proved.
"""

from __future__ import annotations

import io
import pickle
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any

import numpy as np

from auditdp.claims.claim import Claim
from auditdp.claims.curves import RenyiDP, ZeroConcentratedDP
from auditdp.claims.statements import GaussianDP, PureDP
from auditdp.errors import ExhaustedError, Timeout
from auditdp.mechanism.calls.inputs import of_tensor
from auditdp.mechanism.calls.leaves import Raised, kind, leaves
from auditdp.tracing.chance import is_by_chance, other_outcome
from auditdp.tracing.draws import ALONE, NOISY, Release, WatchedDraw
from auditdp.tracing.findings import Finding
from auditdp.tracing.linear_forms import number
from auditdp.tracing.losses import Moved
from auditdp.tracing.noise_families import Loss, same
from auditdp.tracing.order_statistics import ordered
from auditdp.tracing.outputs import where_differ
from auditdp.tracing.pair_record import PairRecord
from auditdp.tracing.trace import Trace
from auditdp.tracing.trace_limits import LIMITS, ROUNDING
from auditdp.tracing.watched_run import TracedRun

MIN_SEEDS = 2**31 - 1
"""Smallest range of a drawn integer that counts as a seed.

The outcomes of a seed are not tried.
"""
STEPS = (-30.0, -10.0, -3.0, -1.0, -0.3, 0.0, 0.3, 1.0, 3.0, 10.0, 30.0)
"""Steps by which noisy values are moved, in scales of their noise.

Small steps keep most comparisons of values, and large ones change them.
"""
FAR_STEPS = (min(STEPS), max(STEPS))

Both = tuple[TracedRun, TracedRun]
"""A run on each of the two inputs, the first input's run first."""


@dataclass(frozen=True)
class Prediction:
    """Statements about a pair that runs with other draws confirmed.

    Attributes:
        confirmed: Kind and line of each confirmed finding.
        is_bound: Whether the loss of the releases bounded that of the output in all
            runs. It is False if this was not tested.
    """

    confirmed: frozenset[tuple[str, Any]]
    is_bound: bool


def predicted(
    trace: Trace, pair: PairRecord, findings: Iterable[Finding]
) -> Prediction:
    """Test findings, and whether the loss of the releases bounds that of the output.

    Findings that are not read off are not tested, and not confirmed. If the runs or the
    time of the audit end, the same holds for the remaining statements.

    Args:
        trace: Trace of the function.
        pair: A recorded run and its replay.
        findings: The findings of the pair.
    """
    experiments = Experiments(trace, pair)
    confirmed, is_bound = set[tuple[str, Any]](), False
    with suppress(ExhaustedError, Timeout):
        for each in findings:
            if each.is_read_off and experiments.confirms(each.kind, each.site):
                confirmed.add((each.kind, each.site))
        is_bound = pair.covers and experiments.is_bound
    return Prediction(frozenset(confirmed), is_bound)


class Experiments:
    """Runs of a pair with other draws, each made when a statement needs it.

    Args:
        trace: Trace of the function.
        pair: A recorded run and its replay.
    """

    def __init__(self, trace: Trace, pair: PairRecord) -> None:
        self._trace, self._pair = trace, pair
        self._sides = (pair.first, pair.second)
        self._moved_runs: list[Both] = []

    # Statements.

    def confirms(self, kind: str, site: Any) -> bool:
        """Return True if runs confirm a finding.

        Args:
            kind: Kind of the finding, as in ``Finding``.
            site: Line of the finding.
        """
        pair = self._pair
        if kind == "round":
            return self.is_own and (self.has_constants or self._is_decided)
        if kind == "loss":
            return self.shows_loss(pair.moved)
        is_about_scale = isinstance(
            pair.claim, PureDP | GaussianDP | ZeroConcentratedDP
        )
        if kind == "scale" and not is_about_scale:
            # Other claims may allow another scale.
            return False
        here = [moved for moved in pair.noisy if moved.first.site == site]
        return self._is_regular and self.shows(here)

    def shows_loss(self, pairs: Sequence[Moved]) -> bool:
        """Return True if the loss of the output equals that of these releases.

        The output has to reveal the releases, each with noise of its own. Their loss is
        then exact for a claim of pure DP, for Gaussian noise, and, for a claim of zCDP,
        for noise whose ρ is known exactly. Other losses are upper bounds. If chance
        alone decides the output, the loss is exact as well.
        """
        # If chance alone decides, the law of the output is exact.
        if self._is_decided:
            return self.is_own
        lossy = [moved for moved in pairs if moved.is_lossy]
        losses = [moved.loss for moved in lossy if moved.loss is not None]
        if any(is_by_chance(moved.first) for moved in lossy):
            return False
        if not _is_exact(losses, self._pair.claim):
            return False
        if not self._is_regular or not self.shows(lossy):
            return False
        # If noise decides the location of a release, that noise has to be shown as
        # well: else it may hide the move.
        return self._is_located(lossy) or self.shows(self._pair.noisy)

    def shows(self, pairs: Sequence[Moved]) -> bool:
        """Return True if the output reveals the results of releases in all runs.

        Each entry of a result has to be one number of the output, at the same place in
        all runs. It is False if there are no releases.
        """
        # A value that is shown by chance would differ in another run.
        runs = [self._pair.first, *(first for first, _ in self._other_runs)]
        try:
            outputs = [np.array(list(leaves(run.output)), float) for run in runs]
        except Exception:
            # An exception, or a type that no output of an audit may have.
            return False
        if not pairs or len({len(output) for output in outputs}) > 1:
            return False
        return all(_stands_in(outputs, runs, moved.first.number) for moved in pairs)

    @cached_property
    def is_bound(self) -> bool:
        """True if the loss of the releases bounded the output's loss in all runs."""
        pair = self._pair
        if not self._is_tried or any(map(_is_coarse, self._sides)):
            return False
        # The joint law of draws that releases share is known only for Gaussian noise.
        released = [moved.first for moved in pair.moved]
        if any(each.earlier and each.law.family != "Gaussian" for each in released):
            return False
        if pair.by_chance:
            return self._is_decided and self.is_own and self._is_random
        if not isinstance(pair.claim, ZeroConcentratedDP | RenyiDP):
            families = [moved.first.law.known for moved in pair.noisy if moved.is_lossy]
            if any(family is not None and family.is_by_rho for family in families):
                return False
        if not self.is_own or not self.is_steady or not self._is_random:
            return False
        if not self._keeps_order():
            return False
        # The last test is the longest: both inputs, many times, with other noisy
        # values.
        runs = (self._sides, *self._with_moved_values(LIMITS.runs_for_bound))
        return all(self._is_same_on_both(*both) for both in runs)

    # Premises of the statements.

    @property
    def _is_decided(self) -> bool:
        """True if chance alone decides the output, and all its outcomes were tried."""
        return self._pair.is_settled and not any(map(_noisy, self._sides))

    @property
    def _is_tried(self) -> bool:
        """True if all draws used by themselves have few outcomes or are seeds."""
        return all(
            release.kind != ALONE or is_by_chance(release) or _is_seed(release)
            for release in self._pair.first.releases
        )

    @property
    def _is_regular(self) -> bool:
        """True if ``_is_tried``, ``is_own`` and ``is_steady`` are all true."""
        return self._is_tried and self.is_own and self.is_steady

    @cached_property
    def is_own(self) -> bool:
        """True if noise influences the output through noisy values alone.

        In runs with new noise and the recorded noisy values, all outputs and releases
        stayed as recorded. So the trace also observes all draws.
        """
        for side in self._sides:
            noisy = _noisy(side)
            draws = _draws_of(side, noisy)
            for k in range(LIMITS.runs):
                run = self._run(side, k, fresh=draws, forced=noisy)
                if not _is_same(side, run) or not _has_same_releases(side, run):
                    return False
            # A seed that was drawn is drawn anew as well: the output may show it, and
            # with it all noise.
            releases = side.releases
            forced = [each.number for each in releases if not _is_seed(each)]
            everything = range(len(side.draws))
            run = self._run(side, LIMITS.runs, fresh=everything, forced=forced)
            if not _is_same(side, run):
                return False
        return True

    @cached_property
    def is_steady(self) -> bool:
        """True if locations and laws of noisy values stayed equal with other chance.

        Chance means events, choices, and draws that are not noise on a value.
        """
        for side in self._sides:
            noisy = _noisy(side)
            for run in self._by_other_chance(side):
                if _noisy(run) != noisy:
                    return False
                if not all(_is_alike(side.releases[n], run.releases[n]) for n in noisy):
                    return False
        return True

    @cached_property
    def has_constants(self) -> bool:
        """True if the outputs differ in a number that has no noise.

        The number is the same in all runs on one input. Outputs of different forms,
        such as two lengths, count as such a difference if each input has one form.
        """
        sides = [
            [recorded.output, *(both[k].output for both in self._other_runs)]
            for k, recorded in enumerate(self._sides)
        ]
        # Outputs of another form, such as another length, differ without noise.
        forms = [set(map(_form, outputs)) for outputs in sides]
        if len(forms[0]) > 1 or len(forms[1]) > 1:
            return False
        if forms[0] != forms[1]:
            return True
        first, second = (
            np.array([list(leaves(output)) for output in outputs], float)
            for outputs in sides
        )
        constant = np.all(first == first[0], axis=0) & np.all(
            second == second[0], axis=0
        )
        return bool(np.any(constant & (first[0] != second[0])))

    def _is_located(self, pairs: Sequence[Moved]) -> bool:
        """Return True if the locations and laws of releases stay as recorded.

        They have to be equal in all runs with other noisy values.
        """
        for runs in self._other_runs:
            for moved in pairs:
                for release, run in zip((moved.first, moved.second), runs, strict=True):
                    if release.number >= len(run.releases):
                        return False
                    if not _is_alike(release, run.releases[release.number]):
                        return False
        return True

    @property
    def _is_random(self) -> bool:
        """True if all continuous draws differ from each other and from another run's.

        The noisy values keep their results in the other run. Noise of a fixed seed, or
        of a seed that an earlier result decides, would be the same again. Generators
        with the same seed would draw the same noise twice in one run.
        """
        first = self._pair.first
        everything = range(len(first.draws))
        again = self._run(first, LIMITS.runs, fresh=everything, forced=_noisy(first))
        # Discrete draws coincide by chance.
        draws = [
            draw
            for draw in first.draws
            if draw.law.known is not None and not draw.law.known.is_whole
        ]
        if len(set(map(_standard_bits, draws))) < len(draws):
            return False
        return not any(
            same(number(draw.numbers), number(again.draws[draw.number].numbers))
            for draw in draws
            if draw.number < len(again.draws)
        )

    def _keeps_order(self) -> bool:
        """Return True if the output reveals only an order in other runs as well.

        It is also True if no loss of the pair assumes this. If all noisy values move by
        the same step, the output has to stay the same. If they move into another order,
        the loss must not exceed that of the pair.
        """
        first = self._pair.first
        if not any(moved.only for moved in self._pair.moved):
            return True
        if any(where_differ(first.output, run.output) for run, _ in self._far_runs):
            return False
        shares = []
        for runs in self._with_moved_values(LIMITS.runs_for_order):
            other = self._compared(*runs)
            moved = ordered(self._trace, other.first, other.moved)
            shares.append(replace(other, moved=moved).share)
        return max(shares) <= self._pair.share * (1 + ROUNDING)

    def _is_same_on_both(self, first: TracedRun, second: TracedRun) -> bool:
        """Return True if a run and its replay agree, and lose no more than the pair.

        They agree if the draws are the same, all code is understood, and the pickled
        outputs are equal.
        """
        again = self._compared(first, second)
        if second.parted or again.extent != "full":
            return False
        if not _is_identical(first.output, second.output):
            return False
        return again.share <= self._own_share * (1 + ROUNDING)

    @cached_property
    def _own_share(self) -> float:
        """``PairRecord.share`` of the recorded run and its replay."""
        return self._compared(*self._sides).share

    def _compared(self, first: TracedRun, second: TracedRun) -> PairRecord:
        return PairRecord.of(first, second, self._pair.claim)

    # Runs.

    def _by_other_chance(self, side: TracedRun) -> Iterator[TracedRun]:
        """Yield runs with the recorded noisy values, but other outcomes of chance.

        In the first run, each event and choice has another outcome. In the other runs,
        all draws except the noise are new. Without such draws there are no runs.
        """
        noisy = _noisy(side)
        others = set(range(len(side.draws))) - set(_draws_of(side, noisy))
        if not others:
            return
        # The noisy values keep their results, and all else is decided otherwise.
        forced = {n: side.releases[n].result for n in noisy}
        for release in side.releases:
            outcome = other_outcome(release)
            if outcome is not None:
                forced[release.number] = outcome
        yield self._trace.redrawn(side, fresh=frozenset(), forced=forced, seed=0)
        for k in range(LIMITS.runs):
            yield self._run(side, k, fresh=others, forced=noisy)

    @cached_property
    def _other_runs(self) -> list[Both]:
        """Pairs of runs with other noisy values, the first input's run first.

        In the first ``LIMITS.runs`` pairs, everything is drawn anew from one seed on
        both inputs. Then the values are moved far in one direction, or entry by entry,
        and the second run is a replay of the first.
        """
        anew = [
            [
                self._run(side, k, fresh=range(len(side.draws)))
                for k in range(LIMITS.runs)
            ]
            for side in self._sides
        ]
        moved = self._with_moved_values(LIMITS.runs_for_output)
        return [*zip(*anew, strict=True), *self._far_runs, *moved]

    @cached_property
    def _far_runs(self) -> list[Both]:
        """Two runs with their replays: all noisy values far lower, then far higher."""
        return [self._with_steps(partial(np.full, fill_value=far)) for far in FAR_STEPS]

    def _with_moved_values(self, count: int) -> list[Both]:
        """Return ``count`` runs with other noisy values, each with its replay.

        Each entry of a noisy value moves by its own step. In every third run,
        everything is drawn anew instead.
        """
        first = self._pair.first
        for k in range(len(self._moved_runs), count):
            if k % 3 == 2:
                run = self._run(first, LIMITS.runs + k, fresh=range(len(first.draws)))
                self._moved_runs.append(self._with_replay(run))
                continue
            # Small steps keep most comparisons of values, and large ones turn them.
            rng = np.random.default_rng(k)

            def steps(shape: tuple[int, ...], rng: np.random.Generator = rng) -> Any:
                return rng.choice(STEPS, size=shape) + rng.normal(scale=0.1, size=shape)

            self._moved_runs.append(self._with_steps(steps))
        return self._moved_runs[:count]

    def _with_steps(self, steps: Callable[[tuple[int, ...]], Any]) -> Both:
        """Return a run with moved noisy values, and its replay.

        Args:
            steps: Function from the shape of a value to the move of each entry, in
                scales of its noise.
        """
        first = self._pair.first
        forced = {}
        for n in _noisy(first):
            release = first.releases[n]
            scale = np.max(np.abs(np.asarray(release.law.scale, float))) or 1.0
            away = np.multiply(steps(release.shape), scale)
            if release.law.known is not None and release.law.known.is_whole:
                away = np.rint(away)
            forced[n] = np.asarray(number(release.result)) + away
        return self._with_replay(self._trace.replay(first.data, first, forced=forced))

    def _with_replay(self, run: TracedRun) -> Both:
        return run, self._trace.replay(self._pair.second.data, run)

    def _run(
        self,
        side: TracedRun,
        seed: int,
        *,
        fresh: Iterable[int],
        forced: Iterable[int] = (),
    ) -> TracedRun:
        """Run the code again on the input of a run, with some draws anew.

        Args:
            side: The run.
            seed: Seed of the new draws.
            fresh: Numbers of the draws that are drawn anew.
            forced: Numbers of the releases that keep their recorded results.
        """
        results = {n: side.releases[n].result for n in forced}
        return self._trace.redrawn(
            side, fresh=frozenset(fresh), forced=results, seed=seed
        )


def _noisy(run: TracedRun) -> list[int]:
    return [release.number for release in run.releases if release.kind == NOISY]


def _draws_of(run: TracedRun, releases: Collection[int]) -> list[int]:
    """Return the numbers of the draws that were first used in one of these releases."""
    used = [set(draw.used.values()) for draw in run.draws]
    return [k for k, numbers in enumerate(used) if not numbers.isdisjoint(releases)]


def _is_same(recorded: TracedRun, run: TracedRun) -> bool:
    return not run.parted and where_differ(recorded.output, run.output) is None


def _has_same_releases(recorded: TracedRun, run: TracedRun) -> bool:
    return all(
        _is_alike(first, second) and same(first.result, second.result)
        for first, second in zip(recorded.releases, run.releases, strict=False)
    )


def _is_alike(first: Release, second: Release) -> bool:
    """Return True if two releases have the same law and location."""
    if first.kind != second.kind or not first.law.is_same(second.law):
        return False
    return same(first.location, second.location)


def _is_seed(release: Release) -> bool:
    law = release.law
    return law.family == "integer" and bool(np.all(law.parameter >= MIN_SEEDS))


def _is_coarse(run: TracedRun) -> bool:
    """Return True if a noisy value may have digits that its noise does not hide.

    Then the noise has a type of lower precision than the value, or the value is an
    integer with more digits than a double. The trace does not compare these digits.
    """
    if run.coarse:
        return True
    results = {n: np.asarray(of_tensor(run.releases[n].result)) for n in _noisy(run)}
    for result in results.values():
        # Larger integers than 2**53 have more digits than doubles.
        if result.dtype.kind in "iu" and bool(np.any(np.abs(result) > 2**53)):
            return True
    for draw in run.draws:
        noise = np.asarray(of_tensor(draw.numbers))
        for n in results.keys() & draw.used.values():
            are_floats = noise.dtype.kind == results[n].dtype.kind == "f"
            if are_floats and noise.itemsize < results[n].itemsize:
                return True
    return False


def _is_exact(losses: Sequence[Loss], claim: Claim | None) -> bool:
    """Return True if the composed loss is exact for an output that reveals everything.

    Args:
        losses: The losses of the releases.
        claim: The claim, whose kind says how losses compose.
    """
    if isinstance(claim, PureDP):
        return True
    if all(loss.squared_mu and not loss.epsilon and not loss.delta for loss in losses):
        return True
    is_known = all(loss.squared_mu or loss.rho is not None for loss in losses)
    return isinstance(claim, ZeroConcentratedDP) and is_known


def _stands_in(outputs: Sequence[Any], runs: Sequence[TracedRun], release: int) -> bool:
    """Return True if each entry of a release is a number of the output in all runs.

    Its place in the output has to be the same in all runs.

    Args:
        outputs: The numbers of each output, one array for each run.
        runs: The runs.
        release: Number of the release.
    """
    if any(release >= len(run.releases) for run in runs):
        return False
    results = [np.ravel(np.real(run.releases[release].result)) for run in runs]
    if len({len(result) for result in results}) > 1:
        return False
    # One row for each entry, with its value in each run.
    entries = np.stack(results, axis=1).astype(float)
    numbers = np.transpose(outputs)
    return all(np.any(np.all(numbers == entry, axis=1)) for entry in entries)


def _standard_bits(draw: WatchedDraw) -> bytes:
    """Return the bytes of the standard draw: without location and scale."""
    with np.errstate(all="ignore"):
        centred = number(draw.numbers) - number(draw.location)
        return np.asarray(centred / number(draw.law.scale), float).tobytes()


def _form(output: Any) -> str:
    """Return a text that is equal for two outputs that differ in numbers alone."""
    if isinstance(output, Raised):
        return str(output)
    try:
        return f"{kind(output)} {sum(1 for _ in leaves(output))}"
    except Exception:
        # A type that no output of an audit may have.
        return type(output).__name__


def _is_identical(first: Any, second: Any) -> bool:
    """Return True if the pickled forms of two outputs are equal.

    It is False if an output cannot be pickled.
    """
    try:
        return _stored(first) == _stored(second)
    except Exception:
        # An example is a function or a generator, whose content is unknown.
        return False


def _stored(output: Any) -> bytes:
    if isinstance(output, Raised):
        output = (str(output), output.error.args)
    stored = io.BytesIO()
    _OutputPickler(stored).dump(output)
    return stored.getvalue()


class _OutputPickler(pickle.Pickler):
    """Pickler that stores a tensor as its type and its numbers."""

    def reducer_override(self, part: Any) -> Any:
        """Return the stored form of a tensor; other parts are pickled as usual."""
        if hasattr(part, "detach"):
            return str, (str(part.dtype), of_tensor(part))
        return NotImplemented
