"""Record a run and replay it: the same draws, every release forced to what was recorded."""

from __future__ import annotations

import builtins
import inspect
import os
import threading
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from auditdp.mechanism.calls.allowance import allowance
from auditdp.mechanism.calls.inputs import Inputs
from auditdp.mechanism.calls.leaves import Raised
from auditdp.mechanism.protocol import PerCall, as_mechanism, name_of, takes_size
from auditdp.tracing import array_functions, sources
from auditdp.tracing.alignment import aligned, aligned_draws
from auditdp.tracing.chance import is_sample
from auditdp.tracing.draws import WatchedDraw
from auditdp.tracing.generators import WatchedGenerator, WatchedState
from auditdp.tracing.linear_forms import number
from auditdp.tracing.outputs import plain
from auditdp.tracing.patches import GENERATOR, STATE, Caller, Patches
from auditdp.tracing.sites import CodeLine
from auditdp.tracing.watched_run import Key, TracedRun, WatchedRun

OTHER_SEED = 20240229
"""Of a run in which noise that depends on the generator is other noise."""


class _Sources:
    """What draws in this process, replaced while any trace is watched: one thread has it at a time.

    Attributes:
        run: The run under way; None between runs.
    """

    def __init__(self) -> None:
        self.run: WatchedRun | None = None
        self.patches = Patches()
        self._lock = threading.RLock()
        self._depth = 0

    def active(self) -> WatchedRun | None:
        """Return the run under way in this thread; None within a sampler, whose own draws are part of it."""
        run = self.run
        return (
            run
            if run is not None
            and not run.inside
            and run.thread == threading.get_ident()
            else None
        )

    def enter(self) -> None:
        """Replace all that draws, unless that was done."""
        self._lock.acquire()
        self._depth += 1
        if self._depth > 1:
            return
        try:
            vars(builtins).update(
                array_functions.FUNCTIONS
            )  # for good: functions that are made meanwhile name them later
            sources.watch(self.patches, self.active)
        except BaseException:
            self.leave()
            raise

    def leave(self) -> None:
        """Put it back, where no other trace is watched."""
        self._depth -= 1
        try:
            if self._depth == 0:
                self.patches.undo()
        finally:
            self._lock.release()


_sources = _Sources()


class Trace:
    """Watches one function; used as a context manager where many runs follow, since that installs what watches once.

    Args:
        function: ``f(data, rng)``, or ``f(data, size, *, rng)``, of which one run of size 1 is watched; ``f(data)`` where
            it draws from elsewhere.

    Attributes:
        runs: Runs of the function so far.
        located: See ``WatchedRun``.

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
        """Lines at which what is added to noise was seen to be part of the noise: see ``TracedRun``."""
        self.tried: set[frozenset[CodeLine]] = set()
        """Lines of which that was tried."""
        self.unreached: dict[frozenset[CodeLine], frozenset[int]] = {}
        """Numbers of outputs, by their place among all, that the noise of such lines was seen not to reach."""

    def __enter__(self) -> Trace:
        _sources.enter()
        self._depth += 1
        try:
            if self._depth == 1:
                if self._caller is None:
                    self._caller = Caller.of(self.function)
                self._caller.watch(
                    self._patches, _sources.patches.replaced, _sources.active
                )
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

    def record(
        self,
        data: Any,
        rng: np.random.Generator,
        *,
        forced: Mapping[int, Any] | None = None,
        constants: frozenset[CodeLine] = frozenset(),
    ) -> TracedRun:
        """Run the function on an input and keep every release.

        Args:
            data: The input.
            rng: Its generator; it is left where a plain run leaves it.
            forced: Results of events and choices by the number of the release, in place of what was drawn.
            constants: See ``TracedRun``.

        Returns:
            The run; its output is that of a plain run with the same generator, bit for bit, unless results were forced.
        """
        state, located = rng.bit_generator.state, len(self.located)
        known = constants | self.constants
        traced = self._watched(
            WatchedRun(data, None, forced, None, known, self.located), data, rng
        )
        if (
            len(self.located) > located
        ):  # what the run drew there before is a value as well
            rng.bit_generator.state = state
            return self.record(data, rng, forced=forced, constants=constants)
        traced.state = (type(rng.bit_generator), state)
        if isinstance(traced.output, Raised) and not forced:
            self._check(traced)
        return traced

    def outputs(self, data: Any, size: int, rng: np.random.Generator) -> Any:
        """Return the outputs of so many plain runs, as the mechanism returns them."""
        self._count(size)
        with self._inputs.lent(self.name, data) as (lent,):
            return as_mechanism(self.function)(lent, size, rng=rng)

    def again(self, recorded: TracedRun, constants: frozenset[CodeLine]) -> TracedRun:
        """Record a run with the same generator once more.

        Args:
            recorded: What ``record`` returned.
            constants: See ``TracedRun``.
        """
        return self.record(recorded.data, _generator(recorded), constants=constants)

    def is_fixed(self, draw: WatchedDraw, recorded: TracedRun) -> bool:
        """Return whether a draw is the same number with another generator, as a run on the same input shows once.

        Args:
            draw: One of continuous noise; others coincide by chance, and none of them is said to be fixed.
            recorded: The run that it is of.
        """
        if self._fixed is None:
            other = self.record(
                recorded.data,
                GENERATOR(type(_generator(recorded).bit_generator)(OTHER_SEED)),
            )
            first, second = (
                Counter(map(_number, run.draws)) for run in (recorded, other)
            )
            changed = (first - second) + (second - first)
            self._fixed = {key[:2] for key in first} - {key[:2] for key in changed}
        known = draw.law.known
        return (
            known is not None
            and not known.is_whole
            and (draw.site, draw.method) in self._fixed
        )

    def reordered(
        self, neighbour: Any, recorded: TracedRun, replayed: TracedRun
    ) -> TracedRun | None:
        """Replay with the releases of every line put together as values move least; None where they are so already.

        Args:
            neighbour: The input.
            recorded: What ``record`` returned.
            replayed: What ``replay`` returned.
        """
        numbers = aligned(recorded, replayed, in_order=False)
        now: dict[Key, list[int | None]] = {}
        for release in replayed.releases:
            now.setdefault((release.site, release.law.family), []).append(
                release.recorded
            )
        if all(now.get(key) == given for key, given in numbers.items()):
            return None
        return self._replayed(
            neighbour, recorded, None, numbers, aligned_draws(recorded, replayed)
        )

    def replay(
        self,
        neighbour: Any,
        recorded: TracedRun,
        *,
        forced: Mapping[int, Any] | None = None,
    ) -> TracedRun:
        """Run the function on another input with the recorded draws, every release forced to its recorded result.

        Args:
            neighbour: The input.
            recorded: What ``record`` returned.
            forced: As in ``record``.
        """
        traced = self._replayed(neighbour, recorded, forced, None)
        if not forced and (numbers := aligned(recorded, traced)):
            traced = self._replayed(
                neighbour, recorded, forced, numbers, aligned_draws(recorded, traced)
            )
        return traced

    def both(
        self, data: Any, neighbour: Any, rng: np.random.Generator
    ) -> tuple[TracedRun, TracedRun]:
        """Run the function on two inputs with the same draws, and keep every release; none is forced.

        Where records are drawn, the draws of the first run are used again, those of each record with it: the same generator
        draws other numbers from then on, where one input has a record more.
        """
        first = self.record(data, rng)
        if any(map(is_sample, first.releases)):
            return first, self._replayed(neighbour, first, None, None, free=True)
        return first, self.record(neighbour, _generator(first))

    def redrawn(
        self,
        recorded: TracedRun,
        *,
        fresh: frozenset[int],
        forced: Mapping[int, Any],
        seed: int,
    ) -> TracedRun:
        """Run the function on the input of a recorded run again, with some draws drawn anew.

        Args:
            recorded: The run.
            fresh: Numbers of the draws that are drawn anew; the others are as recorded.
            forced: Results of releases by their number; the others are computed.
            seed: Of the generator, so that draws that the trace does not see are others as well.
        """
        run = WatchedRun(
            recorded.data,
            recorded,
            forced,
            located=self.located,
            free=True,
            fresh=fresh,
        )
        run.traced.state = recorded.state
        kind = type(_generator(recorded).bit_generator)
        return self._watched(run, recorded.data, GENERATOR(kind([OTHER_SEED, seed])))

    def _replayed(
        self,
        neighbour: Any,
        recorded: TracedRun,
        forced: Mapping[int, Any] | None,
        numbers: Mapping[Key, Sequence[int | None]] | None,
        draws: Mapping[Key, Sequence[int | None]] | None = None,
        *,
        free: bool = False,
    ) -> TracedRun:
        run = WatchedRun(
            neighbour,
            recorded,
            forced,
            numbers,
            located=self.located,
            draws=draws,
            free=free,
        )
        run.traced.state = recorded.state
        traced = self._watched(run, neighbour, _generator(recorded))
        if isinstance(traced.output, Raised) and isinstance(
            traced.output.error, TypeError | AttributeError
        ):
            self._check(
                traced
            )  # what code raises that meets noise in place of a number
        return traced

    def _count(self, runs: int) -> None:
        """Count runs that are about to be made, of those that are left."""
        allowance().spend(runs)
        self.runs += runs

    def _watched(
        self, run: WatchedRun, data: Any, rng: np.random.Generator
    ) -> TracedRun:
        self._count(1)
        process = os.getpid()
        with (
            self,
            _sources.patches.entered(),
            self._inputs.lent(self.name, data) as (lent,),
        ):
            before, _sources.run = _sources.run, run
            try:
                run.traced.output = plain(
                    self._call(lent, WatchedGenerator(rng, _sources.active)), run
                )
            except Exception as error:
                run.traced.output = Raised.of(error)
            finally:
                _ends_in_copy(process)
                _sources.run = before
        return run.finish()

    def plainly(self, recorded: TracedRun) -> Any:
        """Return the output of a run without being watched: on the input of a recorded one, with its generator."""
        self._count(1)
        process = os.getpid()
        try:
            with self._inputs.lent(self.name, recorded.data) as (lent,):
                return self._call(lent, _generator(recorded))
        except Exception as error:
            return Raised.of(error)
        finally:
            _ends_in_copy(process)

    def _check(self, traced: TracedRun) -> None:
        """Run the function plainly where the watched run raised: only what both raise is an output."""
        output = self.plainly(traced)
        if not isinstance(output, Raised) or output != traced.output:
            traced.untraceable = f"the code does not run on watched noise: {traced.output}, {traced.output.error}"
            traced.output = output


def _ends_in_copy(process: int) -> None:
    """End this process at once where the code forked: its copy must not go on with whatever traces it."""
    if os.getpid() != process:
        os._exit(0)


def _number(draw: WatchedDraw) -> tuple[CodeLine, str, bytes]:
    """Return a draw as its line, sampler and bits."""
    return draw.site, draw.method, np.asarray(number(draw.numbers)).tobytes()


def _generator(recorded: TracedRun) -> np.random.Generator:
    """Return a generator in the state in which a recorded run began."""
    kind, state = recorded.state
    made = kind(0)
    made.state = state
    return GENERATOR(made)


def _caller_of(function: Any) -> Callable[[Any, Any], Any]:
    """Return how a function is called for one output: ``call(data, rng)``."""
    single = function.function if isinstance(function, PerCall) else function
    parameters: Mapping[str, inspect.Parameter] | None
    try:
        parameters = inspect.signature(single).parameters
    except (TypeError, ValueError):
        parameters = None
    if parameters is not None and "rng" not in parameters:
        positional = [
            p
            for p in parameters.values()
            if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)
        ]
        if takes_size(single):
            return lambda data, rng: single(data, size=1)
        if len(positional) == 1 or all(
            p.default is not p.empty for p in positional[1:]
        ):
            return lambda data, rng: single(_swapped(data))
    mechanism = as_mechanism(function)
    if isinstance(mechanism, PerCall):
        return lambda data, rng: single(data, rng=rng)
    return lambda data, rng: mechanism(data, 1, rng=rng)


def _swapped(data: Any) -> Any:
    """Return an input in which a generator, where it holds one, is watched."""
    active = _sources.active
    if type(data) is GENERATOR:
        return WatchedGenerator(data, active)
    if type(data) is STATE:
        return WatchedState(data, active)
    if type(data) in (list, tuple):
        return type(data)(_swapped(item) for item in data)
    if type(data) is dict:
        return {key: _swapped(item) for key, item in data.items()}
    return data
