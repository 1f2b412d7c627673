"""Record a run and replay it, with the same draws and forced releases."""

from __future__ import annotations

import builtins
import inspect
import os
import threading
from collections import Counter
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from auditdp.mechanism.calls.allowance import allowance
from auditdp.mechanism.calls.inputs import Inputs
from auditdp.mechanism.calls.leaves import Raised
from auditdp.mechanism.protocol import PerCall, as_mechanism, name_of, takes_size
from auditdp.tracing import conversions, sources
from auditdp.tracing.alignment import RunAlignment, aligned
from auditdp.tracing.chance import is_sample
from auditdp.tracing.draws import WatchedDraw
from auditdp.tracing.generators import WatchedGenerator, WatchedState
from auditdp.tracing.linear_forms import number
from auditdp.tracing.outputs import plain
from auditdp.tracing.patches import GENERATOR, STATE, Caller, Patches
from auditdp.tracing.sites import CodeLine
from auditdp.tracing.watched_run import TracedRun, WatchedRun

OTHER_SEED = 20240229
"""Seed of runs whose generator has to differ from that of the recorded run."""
MISUSE_OF_NOISE = (TypeError, AttributeError)


class _Sources:
    """The samplers of this process, which are replaced while a trace is entered.

    One thread at a time has them.

    Attributes:
        run: The run under way; None between runs.
    """

    def __init__(self) -> None:
        self.run: WatchedRun | None = None
        self.patches = Patches()
        self._lock = threading.RLock()
        self._depth = 0

    def active(self) -> WatchedRun | None:
        """Return the run under way in this thread.

        Returns:
            The run, or None outside of runs and within a sampler, whose own draws are
            part of its draw.
        """
        run = self.run
        if run is None or run.inside or run.thread != threading.get_ident():
            return None
        return run

    def enter(self) -> None:
        """Replace the samplers, unless they are replaced."""
        self._lock.acquire()
        self._depth += 1
        if self._depth > 1:
            return
        try:
            # These are never removed: functions that are made meanwhile refer to them
            # later.
            vars(builtins).update(conversions.FUNCTIONS)
            sources.watch(self.patches, self.active)
        except BaseException:
            self.leave()
            raise

    def leave(self) -> None:
        """Restore the samplers, if no other trace is entered."""
        self._depth -= 1
        try:
            if self._depth == 0:
                self.patches.undo()
        finally:
            self._lock.release()


_sources = _Sources()


class Trace:
    """Watches one function.

    It is a context manager for callers that make many runs, since entering it replaces
    the samplers once.

    Args:
        function: ``f(data, rng)``, or ``f(data, size, *, rng)``, of which one run of
            size 1 is watched; ``f(data)`` if it draws from other sources.

    Attributes:
        runs: Number of runs of the function so far.
        located: See ``WatchedRun``.
        constants: Lines at which a constant that noise is added to is part of the
            noise: see ``constant_noise``.
        tried: Sets of lines for which that was tried.
        unreached: For such sets, the places of numbers of the output that their noise
            does not reach.

    Raises:
        MechanismError: If it is not callable.
    """

    def __init__(self, function: Any) -> None:
        self.function = function
        self.runs = 0
        self.name = name_of(function)
        self._call = _caller_of(function)
        self._caller: Caller | None = None
        self._patches = Patches()
        self._depth = 0
        self._inputs = Inputs()
        self._fixed: set[tuple[CodeLine, str]] | None = None
        self.located: set[CodeLine] = set()
        self.constants: frozenset[CodeLine] = frozenset()
        self.tried: set[frozenset[CodeLine]] = set()
        self.unreached: dict[frozenset[CodeLine], frozenset[int]] = {}

    def __enter__(self) -> Trace:
        _sources.enter()
        self._depth += 1
        try:
            if self._depth == 1:
                if self._caller is None:
                    self._caller = Caller.of(self.function)
                replaced = _sources.patches.replaced
                self._caller.watch(self._patches, replaced, _sources.active)
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self._depth -= 1
        try:
            if self._depth == 0:
                self._patches.undo()
        finally:
            _sources.leave()

    # Recorded runs.

    def record(
        self,
        data: Any,
        rng: np.random.Generator,
        *,
        constants: frozenset[CodeLine] = frozenset(),
    ) -> TracedRun:
        """Run the function on an input and record every release.

        Args:
            data: The input.
            rng: Its generator; it is left where a plain run leaves it.
            constants: See ``TracedRun``.

        Returns:
            The run. Its output is that of a plain run with the same generator, bit for
            bit.
        """
        state, located = rng.bit_generator.state, len(self.located)
        run = WatchedRun(
            data, constants=constants | self.constants, located=self.located
        )
        run.traced.state = (type(rng.bit_generator), state)
        traced = self._watched(run, rng)
        if len(self.located) > located:
            # A line was given a location. What the run drew there before is a value
            # with noise as well.
            rng.bit_generator.state = state
            return self.record(data, rng, constants=constants)
        if isinstance(traced.output, Raised):
            self._check(traced)
        return traced

    def again(self, recorded: TracedRun, constants: frozenset[CodeLine]) -> TracedRun:
        """Record a run with the same generator once more.

        Args:
            recorded: The run.
            constants: See ``TracedRun``.
        """
        return self.record(recorded.data, _generator(recorded), constants=constants)

    def is_fixed(self, draw: WatchedDraw, recorded: TracedRun) -> bool:
        """Return True if a draw is the same number with another generator.

        One run on the same input decides it. Draws of discrete noise coincide by
        chance, and are never fixed.

        Args:
            draw: The draw.
            recorded: Its run.
        """
        if self._fixed is None:
            kind, _ = recorded.state
            # A line is fixed if all its draws occur in both runs.
            other = self.record(recorded.data, GENERATOR(kind(OTHER_SEED)))
            first, second = (Counter(map(_key, run.draws)) for run in (recorded, other))
            changed = (first - second) + (second - first)
            self._fixed = {key[:2] for key in first} - {key[:2] for key in changed}
        known = draw.law.known
        if known is None or known.is_whole:
            return False
        return (draw.site, draw.method) in self._fixed

    # Replays.

    def replay(
        self,
        neighbour: Any,
        recorded: TracedRun,
        *,
        forced: Mapping[int, Any] | None = None,
    ) -> TracedRun:
        """Run the function on another input with the recorded draws and results.

        Every release is forced to its recorded result.

        Args:
            neighbour: The input.
            recorded: The recorded run.
            forced: Results by the number of the release, instead of the recorded ones.
        """
        # The first replay shows which lines have other numbers of releases.
        traced = self._replayed(neighbour, recorded, forced=forced)
        if forced:
            return traced
        alignment = aligned(recorded, traced)
        if alignment is None:
            return traced
        return self._replayed(neighbour, recorded, alignment)

    def reordered(
        self, neighbour: Any, recorded: TracedRun, replayed: TracedRun
    ) -> TracedRun | None:
        """Replay with the releases of each line in the order that moves values least.

        Args:
            neighbour: The input.
            recorded: The recorded run.
            replayed: Its replay.

        Returns:
            The new replay, or None if the releases correspond in this way already.
        """
        alignment = aligned(recorded, replayed, in_order=False)
        if alignment is None:
            return None
        return self._replayed(neighbour, recorded, alignment)

    def both(
        self, data: Any, neighbour: Any, rng: np.random.Generator
    ) -> tuple[TracedRun, TracedRun]:
        """Run the function on two inputs with the same draws; no release is forced.

        If records are drawn, each record keeps its draws of the first run. A generator
        with the same seed would draw other numbers from the place on at which one input
        has a record more.
        """
        first = self.record(data, rng)
        if any(map(is_sample, first.releases)):
            return first, self._replayed(neighbour, first, free=True)
        return first, self.record(neighbour, _generator(first))

    def redrawn(
        self,
        recorded: TracedRun,
        *,
        fresh: frozenset[int],
        forced: Mapping[int, Any],
        seed: int,
    ) -> TracedRun:
        """Run the function on the input of a recorded run, with some draws anew.

        Args:
            recorded: The run.
            fresh: Numbers of the draws that are drawn anew; the others are as recorded.
            forced: Results of releases by their number; the others are computed.
            seed: Of the generator, so that draws that the trace does not observe differ
                as well.
        """
        run = WatchedRun(
            recorded.data,
            recorded,
            forced=forced,
            located=self.located,
            free=True,
            fresh=fresh,
        )
        kind, _ = recorded.state
        return self._watched(run, GENERATOR(kind([OTHER_SEED, seed])))

    def _replayed(
        self,
        neighbour: Any,
        recorded: TracedRun,
        alignment: RunAlignment | None = None,
        *,
        forced: Mapping[int, Any] | None = None,
        free: bool = False,
    ) -> TracedRun:
        run = WatchedRun(
            neighbour,
            recorded,
            forced=forced,
            releases=None if alignment is None else alignment.releases,
            draws=None if alignment is None else alignment.draws,
            located=self.located,
            free=free,
        )
        traced = self._watched(run, _generator(recorded))
        error = getattr(traced.output, "error", None)
        # Code that meets noise in place of a number raises one of these.
        if isinstance(traced.output, Raised) and isinstance(error, MISUSE_OF_NOISE):
            self._check(traced)
        return traced

    # Single runs.

    def _watched(self, run: WatchedRun, rng: np.random.Generator) -> TracedRun:
        with self, _sources.patches.entered():
            generator = WatchedGenerator(rng, _sources.active)
            run.traced.output = self._output(run.traced.data, generator, run)
        return run.finish()

    def plainly(self, recorded: TracedRun) -> Any:
        """Return the output of an unwatched run like a recorded one.

        It has the same input and generator.
        """
        return self._output(recorded.data, _generator(recorded))

    def outputs(self, data: Any, size: int, rng: np.random.Generator) -> Any:
        """Return the outputs of ``size`` unwatched runs, as the mechanism has them."""
        self._count(size)
        with self._inputs.lent(self.name, data) as (lent,):
            return as_mechanism(self.function)(lent, size, rng=rng)

    def _output(self, data: Any, rng: Any, run: WatchedRun | None = None) -> Any:
        """Call the function once; an exception of its code is an output as well."""
        self._count(1)
        process = os.getpid()
        with self._inputs.lent(self.name, data) as (lent,):
            before = _sources.run
            try:
                if run is None:
                    return self._call(lent, rng)
                _sources.run = run
                return plain(self._call(lent, rng), run)
            except Exception as error:
                return Raised.of(error)
            finally:
                # If the code forked, its copy must not go on with the caller of the
                # trace.
                if os.getpid() != process:
                    os._exit(0)
                _sources.run = before

    def _count(self, runs: int) -> None:
        allowance().spend(runs)
        self.runs += runs

    def _check(self, traced: TracedRun) -> None:
        """Compare an exception with a plain run: only one of both is an output."""
        output = self.plainly(traced)
        if not isinstance(output, Raised) or output != traced.output:
            traced.untraceable = f"the code does not run on watched noise: {traced.output}, {traced.output.error}"
            traced.output = output


def _key(draw: WatchedDraw) -> tuple[CodeLine, str, bytes]:
    return draw.site, draw.method, np.asarray(number(draw.numbers)).tobytes()


def _generator(recorded: TracedRun) -> np.random.Generator:
    """Return a generator in the state in which a recorded run began."""
    kind, state = recorded.state
    made = kind(0)
    made.state = state
    return GENERATOR(made)


def _caller_of(function: Any) -> Callable[[Any, Any], Any]:
    """Return ``call(data, rng)``, which calls a function for one output."""
    single = function.function if isinstance(function, PerCall) else function
    try:
        parameters = inspect.signature(single).parameters
    except (TypeError, ValueError):
        parameters = None
    if parameters is not None and "rng" not in parameters:
        # Functions without a generator draw from global state.
        if takes_size(single):
            return lambda data, rng: single(data, size=1)
        positional = [
            p
            for p in parameters.values()
            if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)
        ]
        optional = [p for p in positional[1:] if p.default is not p.empty]
        if positional and len(optional) == len(positional) - 1:
            return lambda data, rng: single(_with_watched_generators(data))
    mechanism = as_mechanism(function)
    if isinstance(mechanism, PerCall):
        return lambda data, rng: single(data, rng=rng)
    return lambda data, rng: mechanism(data, 1, rng=rng)


def _with_watched_generators(data: Any) -> Any:
    """Return an input in which every generator is watched."""
    if type(data) is GENERATOR:
        return WatchedGenerator(data, _sources.active)
    if type(data) is STATE:
        return WatchedState(data, _sources.active)
    if type(data) in (list, tuple):
        return type(data)(_with_watched_generators(item) for item in data)
    if type(data) is dict:
        return {key: _with_watched_generators(item) for key, item in data.items()}
    return data
