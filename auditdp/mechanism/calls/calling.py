"""Calls of a mechanism: checked, on lent inputs, with outputs as rows."""

from __future__ import annotations

import copy
import os
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import islice
from typing import Any, NamedTuple, Self, TypeVar

import numpy as np

from auditdp.errors import AuditError, MechanismError, RaisedError, raised_at
from auditdp.mechanism.calls.allowance import allowance
from auditdp.mechanism.calls.inputs import Inputs, difference, of_tensor
from auditdp.mechanism.calls.leaves import NUMERIC, Raised
from auditdp.mechanism.calls.representation import (
    Outputs,
    Representation,
    SeenAs,
    stacked,
)
from auditdp.mechanism.calls.side_outputs import STREAMS, showing
from auditdp.mechanism.protocol import (
    Array,
    Mechanism,
    PerCall,
    brief,
    is_seeded,
    is_vectorised,
    name_of,
)
from auditdp.numerics.streams import position

PROBES = 8
"""Number of outputs on each of the first two inputs, from which rows get their form.

One output on each further input is added (``MOST_PROBED``).
"""
MOST_PROBED = 32
"""Largest number of inputs whose outputs decide the form of rows."""
Result = TypeVar("Result")
Decided = tuple[Representation | None, bool, Counter[str]]


class Run(NamedTuple):
    """A repeatable call: input, number of outputs, and seed of the generator."""

    data: Any
    size: int
    seed: int


class Shown(NamedTuple):
    """Summary of the side outputs of calls on one stream: prints, logs or files."""

    stream: str
    """One of ``STREAMS``."""
    many: int
    """Largest number of lines, messages or files of a call."""
    depends: bool | None
    """True if inputs had different side outputs in calls with the same randomness.

    False if all inputs had the same ones. None if two such calls on one input had
    different ones, so that their dependence on the input is not known.
    """


class Calls:
    """Calls of one mechanism, which return outputs as rows of one form.

    The first calls decide the form of the rows (``look``).

    Attributes:
        mechanism: The mechanism.
        name: Its name in reports.
        seeded: Whether the mechanism draws from the generator of the audit.
        inputs: The copies of inputs that the mechanism gets.
        like: Rows of the calls that decided the form, or None before the decision.
        labels: A label of each number of a row; empty before the decision.
        raising: Whether exceptions are outputs. Each output is then made by one call.
        raised: Number of calls that raised, by the type of the exception.
        drew: Whether the calls that decided the form drew from the generator; True
            before the decision.
        shown: Summary of the side outputs on the inputs of these calls, one item a
            stream; streams without side outputs are left out.
    """

    def __init__(self, mechanism: Mechanism) -> None:
        self.mechanism = mechanism
        self.name = name_of(mechanism)
        self.seeded = is_seeded(mechanism)
        self.inputs = Inputs()
        self.like: Array | None = None
        self.labels: list[str] = []
        self.raising = not is_vectorised(mechanism)
        self.raised: Counter[str] = Counter()
        self.drew = True
        self.shown: list[Shown] = []
        self._representation: Representation | None = None
        self._singly = False

    def look(self, inputs: Iterable[Any], rng: np.random.Generator) -> None:
        """Decide the form of rows from first outputs, unless it is decided.

        Args:
            inputs: The mechanism is called on the first ``MOST_PROBED`` of these.
            rng: The generator of the calls.

        Raises:
            RaisedError: If all calls raise. If only some calls raise, an exception is
                an output.
            MechanismError: If an output cannot be read, or an input is changed.
        """
        if self._representation is not None:
            return
        probed = list(islice(inputs, MOST_PROBED))
        before = copy.deepcopy(rng)

        def probe() -> list[Outputs]:
            # The form depends mostly on the outputs of the first two inputs.
            return [
                self.outputs(data, 1 if place > 1 else PROBES, rng)
                for place, data in enumerate(probed)
            ]

        with showing() as showed:
            self._represent(self.outcomes(probe))
        self.drew = position(rng) != position(before)
        if showed:
            self.shown = self._side_outputs(probed, before)

    def _side_outputs(
        self, inputs: Sequence[Any], rng: np.random.Generator
    ) -> list[Shown]:
        """Return a summary of the side outputs on inputs, with the same randomness."""
        calls = []
        # The first input is called twice: side outputs may differ by themselves.
        for data in [*inputs[:1], *inputs]:
            with showing(quiet=True) as showed:
                self.outputs(data, 1, copy.deepcopy(rng))
                calls.append(showed.parts)
        found = []
        for stream in STREAMS:
            again, *others = (call[stream] for call in calls)
            items = [x.splitlines() if isinstance(x, str) else x for x in others]
            many = max(map(len, items))
            depends = None
            if again == others[0]:
                depends = any(each != again for each in others)
            if many:
                found.append(Shown(stream, many, depends))
        return found

    def outcomes(self, make: Callable[[], Result]) -> Result:
        """Return the result of ``make``, which calls the mechanism.

        If ``make`` raises a ``RaisedError``, exceptions become outputs (``raising``),
        and ``make`` is called once more. This is only valid before any bet. Later, only
        calls that raise would be repeated, so outputs would not have the law of single
        runs.

        Raises:
            RaisedError: If ``make`` raises it although exceptions are outputs already.
        """
        try:
            return make()
        except RaisedError:
            if self.raising:
                raise
            self.raising = True
            return make()

    def repeated(self, data: Any, seed: int, size: int) -> tuple[bool, bool]:
        """Call the mechanism twice with one seed.

        Returns:
            Whether the outputs are equal, and whether the generators end in the same
            state.
        """
        generators = [np.random.default_rng(seed) for _ in range(2)]
        once, again = (self.outputs(data, size, rng) for rng in generators)
        first, second = map(position, generators)
        return difference(once, again) is None, first == second

    @property
    def form(self) -> Representation:
        """The form of the rows of outputs; the first call decides it."""
        assert self._representation is not None
        return self._representation

    @property
    def offering(self) -> Any:
        """The mechanism for forecasters, which call its optional methods with rows.

        Before the decision it is the mechanism itself.
        """
        if self._representation is None:
            return self.mechanism
        return SeenAs(self.mechanism, self._representation)

    def __call__(self, data: Any, size: int, rng: np.random.Generator) -> Array:
        """Return ``size`` outputs as rows, shape (size, ...).

        The first call decides the form of the rows, if ``look`` did not.

        Raises:
            MechanismError: If the mechanism does not return ``size`` readable outputs,
                changes its input, or raises although exceptions are no outputs.
            ExhaustedError: If the allowance has fewer runs or no time left.
        """
        # A call of no outputs still has rows of the decided shape and type.
        if size == 0 and self.like is not None:
            return self.like[:0]
        outputs = self.outputs(data, size, rng)
        if self._representation is None:
            self._represent([outputs])
        return self._rows(outputs)

    def sides(
        self, data: Any, ones: int, neighbour: Any, zeros: int, rng: np.random.Generator
    ) -> tuple[Array, Array]:
        """Return rows of outputs on both inputs of a pair.

        There are ``ones`` rows on the input, and ``zeros`` rows on its neighbour.
        """
        first = self(data, ones, rng)
        return first, self(neighbour, zeros, rng)

    def _represent(self, samples: list[Outputs]) -> None:
        outputs = [output for sample in samples for output in sample]
        if outputs and all(isinstance(output, Raised) for output in outputs):
            raise self._error(outputs[0].error, "every tested input")
        try:
            self._representation = Representation.of(samples)
        except MechanismError as error:
            raise MechanismError(f"{self.name}: {error}") from None
        self.like = np.concatenate([self._rows(sample) for sample in samples])
        longest = max(samples, key=len)
        if len(longest):
            self.labels = self.form.names(longest[0])

    def _rows(self, outputs: Outputs) -> Array:
        try:
            return self.form.rows(outputs)
        except MechanismError as error:
            raise MechanismError(f"{self.name}: {error}") from None

    def outputs(self, data: Any, size: int, rng: np.random.Generator) -> Outputs:
        """Return ``size`` outputs as an array or a list, before they become rows.

        The exceptions are those of a call of this object.
        """
        with self.inputs.lent(self.name, data) as (lent,):
            if not self._singly:
                return self._run(lent, size, rng)
            return stacked([self._run(lent, 1, rng) for _ in range(size)])

    def _run(self, data: Any, size: int, rng: np.random.Generator) -> Outputs:
        process = os.getpid()
        try:
            # Runs are counted before they are made, so that none exceeds the allowance.
            if is_vectorised(self.mechanism) and not self.raising:
                allowance().spend(size)
                raw = self.mechanism(data, size, rng=rng)
                return checked_outputs(raw, size, self.name)
            outputs: list[Any] = []
            for _ in allowance().each(size):
                outputs.extend(self._outcome(data, rng))
            return (
                outputs if self.raising else checked_outputs(outputs, size, self.name)
            )
        except AuditError:
            raise
        except Exception as error:
            raise self._error(error, f"input {brief(data)}") from error
        finally:
            # If the mechanism forked, its copy must not go on with the audit.
            if os.getpid() != process:
                os._exit(0)

    def _outcome(self, data: Any, rng: np.random.Generator) -> Outputs:
        """Return the one output of a call in a list or array; it may be ``Raised``."""
        try:
            raw: Any = self.mechanism(data, 1, rng=rng)
        except AuditError:
            raise
        except Exception as error:
            if not self.raising:
                raise
            self.raised[type(error).__name__] += 1
            return [Raised.of(error)]
        # A function of one output may return anything, so nothing is checked.
        if isinstance(self.mechanism, PerCall) and isinstance(raw, list):
            return raw
        return checked_outputs(raw, 1, self.name)

    def _error(self, error: Exception, where: str) -> RaisedError:
        at, place = raised_at(error), ""
        if at:
            place = f", at {at}"
        if self._representation is not None and not self.raising:
            place += "; as a function f(data, rng) of one output, it may raise: that is an output then"
        found = RaisedError(
            f"{self.name} raised {type(error).__name__} on {where}: {error}{place}"
        )
        found.__cause__ = error
        return found

    def runs(self, wanted: Sequence[Run]) -> Array:
        """Return the rows of repeatable calls, one after the other in one array."""
        rows = [
            self(data, size, np.random.default_rng(seed)) for data, size, seed in wanted
        ]
        return np.concatenate(rows)

    @property
    def decided(self) -> Decided:
        """The form of rows, ``raising`` and ``raised``, to set in other ``Calls``."""
        return self._representation, self.raising, self.raised

    @decided.setter
    def decided(self, decided: Decided) -> None:
        self._representation, self.raising, self.raised = decided

    def anew(self) -> Self:
        """Return calls of the same mechanism whose form of rows is not decided yet."""
        fresh = copy.copy(self)
        fresh.like = fresh._representation = None
        fresh.labels = []
        return fresh

    def singly(self) -> Self:
        """Return a copy of this object that calls the mechanism once for each output.

        Outputs then cannot share the draws of one call.
        """
        single = copy.copy(self)
        single._singly = True
        return single


def checked_outputs(raw: Any, size: int, name: str) -> Outputs:
    """Return the result of a call as an array or list with one item for each output.

    A mapping of columns becomes a list of dicts, and a tuple of arrays a list of
    tuples, one for each output.

    Args:
        raw: The result of the mechanism.
        size: The number of outputs that were requested.
        name: The name of the mechanism, for errors.

    Raises:
        MechanismError: If the result does not have ``size`` outputs.
    """
    # Columns of outputs become one mapping for each run.
    if isinstance(raw, Mapping):
        columns = {}
        for key, column in raw.items():
            columns[key] = checked_outputs(column, size, f"{name}, {key!r}")
        rows = zip(*columns.values(), strict=True)
        return [dict(zip(columns, row, strict=True)) for row in rows]
    # Arrays that come as a tuple become one tuple for each run.
    is_tuple = isinstance(raw, tuple) and len(raw) > 0
    if is_tuple and all(isinstance(part, np.ndarray) for part in raw):
        parts = [checked_outputs(part, size, name) for part in raw]
        return list(zip(*parts, strict=True))
    raw = of_tensor(raw)
    try:
        outputs = np.asarray(raw)
    except ValueError as error:
        if isinstance(raw, list) and len(raw) == size:
            return raw
        raise MechanismError(
            f"{name}: returned ragged outputs ({error}), expected {size}: an array or a list with one for each run"
        ) from error
    if outputs.ndim == 0 or outputs.shape[0] != size:
        what = brief(raw)
        if outputs.dtype.kind in NUMERIC:
            what = f"shape {outputs.shape}"
        raise MechanismError(
            f"{name}: returned {what}, expected first dimension size={size}: one row per independent run"
        )
    # A list may hold numbers of several types.
    if isinstance(raw, list):
        return raw
    return outputs if outputs.dtype.kind in NUMERIC else list(outputs)
