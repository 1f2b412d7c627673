"""Recorded runs of a function, and their replays with the same draws.

`Trace` watches one function. `Trace.record` runs it on an input, and `Trace.replay`
runs it on a neighbour with the recorded draws and results. While a trace is entered,
watched samplers take the place of the samplers of this process.
"""

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
from auditdp.tracing.watched_run import Locations, TracedRun, WatchedRun

OTHER_SEED = 20240229
"""Seed of runs whose generator has to differ from that of the recorded run."""
MISUSE_OF_NOISE = (TypeError, AttributeError)


class _Sources:
    """The samplers of this process, which are replaced while a trace is entered.

    A lock lets one thread at a time enter traces.

    Attributes:
        run: The run under way; None between runs.
    """

    def __init__(self) -> None:
        self.run: WatchedRun | None = None
        self.patches = Patches()
        self._lock = threading.RLock()
        self._depth = 0

    def active(self) -> WatchedRun | None:
        """Return the run under way in this thread, or None.

        Within a sampler it is None as well, because draws of the sampler's own code are
        parts of its draw.
        """
        run = self.run
        if run is None or run.inside or run.thread != threading.get_ident():
            return None
        return run

    def enter(self) -> None:
        """Replace the samplers, unless another entered trace has replaced them."""
        self._lock.acquire()
        self._depth += 1
        if self._depth > 1:
            return
        try:
            # These names are never removed: functions that watched code defines may use
            # them later.
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
    """A function, with recorded runs and replays of it.

    Each watched run enters the trace, which replaces the samplers. Callers that make
    many runs enter it as a context manager, so that the samplers are replaced once.

    Args:
        function: ``f(data, rng)``; or ``f(data, size, *, rng)``, which is called with
            size 1; or ``f(data)`` or ``f(data, size)``, if it draws from global state.
            ``f(data)`` may also draw from generators in its data.

    Attributes:
        runs: Number of runs of the function so far, watched and unwatched.
        locations: The lines at which samplers drew around a location.
        constants: Lines at which the sum of a constant and noise counts as noise, not
            as a release; see `constant_noise`.
        tried: Sets of lines that runs have tested as such lines.
        unreached: For a set of lines that failed this test, the indices of output
            numbers that differ on a pair and do not depend on the noise of the lines.

    Raises:
        MechanismError: If the function is not callable, or has none of these forms.
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
        self.locations = Locations()
        self.constants: frozenset[CodeLine] = frozenset()
        self.tried: set[frozenset[CodeLine]] = set()
        self.unreached: dict[frozenset[CodeLine], frozenset[int]] = {}

    def __enter__(self) -> Trace:
        _sources.enter()
        self._depth += 1
        try:
            # Contexts may be nested, and only the outermost one replaces code.
            if self._depth == 1:
                if self._caller is None:
                    self._caller = Caller.of(self.function)
                replaced = _sources.patches.replaced
                self._caller.watch(self._patches, replaced, _sources.active)
        # Python does not call ``__exit__`` after an error in ``__enter__``.
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
            rng: Generator of the run. The run leaves it in the state in which a plain
                run leaves it.
            constants: Lines that this run treats as those in the attribute
                ``constants``, in addition to these.

        Returns:
            The recorded run. Its output is that of a plain run with the same generator,
            bit for bit (code of jax may differ in the last bits). An exception of the
            function is an output.

        Raises:
            MechanismError: If the function changes its input.
        """
        state, ambiguous = rng.bit_generator.state, self.locations.ambiguous
        run = WatchedRun(
            data, constants=constants | self.constants, locations=self.locations
        )
        run.traced.state = (type(rng.bit_generator), state)
        traced = self._watched(run, rng)
        if self.locations.ambiguous > ambiguous:
            # The run drew around 0 at a line, and later around another location.
            rng.bit_generator.state = state
            return self.record(data, rng, constants=constants)
        if isinstance(traced.output, Raised):
            self._check(traced)
        return traced

    def again(self, recorded: TracedRun, constants: frozenset[CodeLine]) -> TracedRun:
        """Record a run once more, on its input and with its generator.

        Args:
            recorded: The run.
            constants: Lines that the new run treats as those in the attribute
                ``constants``, in addition to these.
        """
        return self.record(recorded.data, _generator(recorded), constants=constants)

    def is_fixed(self, draw: WatchedDraw, recorded: TracedRun) -> bool:
        """Return True if a draw gives the same numbers with another generator.

        The first call makes a run with another seed on the same input. It decides this
        for all lines and samplers, also in later calls. Draws of whole numbers may
        coincide by chance, so the result is False for these. It is also False for draws
        of an unknown law.

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
        """Run the function on an input with the recorded draws and results.

        Every release gets the result of the recorded release that corresponds to it.
        The releases of a line correspond in order. If the two runs have different
        numbers of them, `alignment` decides which ones correspond.

        Args:
            neighbour: The input, usually a neighbour of the recorded one.
            recorded: The recorded run.
            forced: Results that replace the recorded ones, by the number of the release
                in the replay. The releases of each line then correspond in order.
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
        """Replay with the releases of each line matched so that values move least.

        Args:
            neighbour: The input.
            recorded: The recorded run.
            replayed: Its replay.

        Returns:
            The new replay. None if ``replayed`` already matches them so, or if no line
            has several releases.
        """
        alignment = aligned(recorded, replayed, in_order=False)
        if alignment is None:
            return None
        return self._replayed(neighbour, recorded, alignment)

    def both(
        self, data: Any, neighbour: Any, rng: np.random.Generator
    ) -> tuple[TracedRun, TracedRun]:
        """Run the function on two inputs with the same draws; no release is forced.

        Usually both runs start with a generator in the same state. If the first run
        samples records, the second run is a replay instead. In the replay each record
        keeps its draws, also if one input has one record more.
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
            forced: Results of some releases, by their number. The other releases are
                computed.
            seed: Seed of the run's generator, for the new draws and for all draws that
                the trace does not observe.
        """
        run = WatchedRun(
            recorded.data,
            recorded,
            forced=forced,
            locations=self.locations,
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
            locations=self.locations,
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
        """Return the output of an unwatched run with a record's input and generator.

        For an exception it is an ``auditdp.mechanism.calls.leaves.Raised``.
        """
        return self._output(recorded.data, _generator(recorded))

    def outputs(self, data: Any, size: int, rng: np.random.Generator) -> Any:
        """Return the outputs of ``size`` unwatched runs, in one batch.

        An exception of the function is raised.
        """
        self._count(size)
        with self._inputs.lent(self.name, data) as (lent,):
            return as_mechanism(self.function)(lent, size, rng=rng)

    def _output(self, data: Any, rng: Any, run: WatchedRun | None = None) -> Any:
        """Return the output of one call of the function; a ``Raised`` for an exception.

        Args:
            data: The input.
            rng: The generator.
            run: The watched run to which the call belongs; None for an unwatched one.
        """
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
        """Test by an unwatched run whether the code itself raises an exception.

        If the unwatched run does not raise the same one, noise in place of numbers
        caused it. The traced run then gets the output of the unwatched one, and is
        untraceable.
        """
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
    """Return an input whose generators are watched, also in lists, tuples and dicts."""
    if type(data) is GENERATOR:
        return WatchedGenerator(data, _sources.active)
    if type(data) is STATE:
        return WatchedState(data, _sources.active)
    if type(data) in (list, tuple):
        return type(data)(_with_watched_generators(item) for item in data)
    if type(data) is dict:
        return {key: _with_watched_generators(item) for key, item in data.items()}
    return data
