"""Making calls as evidence needs them: checked, on lent inputs, with outputs as rows; together, or one by one."""

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
"""Calls on each of two inputs that show what outputs look like; what these look like on others, a single call shows."""
MOST_PROBED = 32
"""Inputs that are probed, at most."""
Result = TypeVar("Result")


class Run(NamedTuple):
    """A call that can be made again: its input, how many outputs it has, and the seed of its generator."""

    data: Any
    size: int
    seed: int


class Shown(NamedTuple):
    """What calls show that is no part of their outputs."""

    stream: str
    """Of ``STREAMS``."""
    many: int
    """Lines, messages or files of a call, at most."""
    depends: bool | None
    """Whether they are others on another input, with the same randomness; None where they differ anyway."""


class Calls:
    """Runs one mechanism.

    Attributes:
        seeded: Whether it draws from the generator that it is given.
        like: Rows of the calls that decided how outputs are represented; None before.
        labels: What each number of a row is; none before.
        raising: Whether exceptions are outputs; then every output has a call of its own.
        raised: How often calls raised, by the type of the exception.
        drew: Whether it drew from the generator when it was looked at.
        shown: What it showed then beside its outputs.
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

    def look(self, inputs: Iterable[Any], rng: np.random.Generator) -> None:
        """Decide how outputs are represented, from calls on these inputs, unless that is decided.

        Raises:
            RaisedError: If all calls raise; where only some do, that is an output.
        """
        if self._representation is not None:
            return
        probed = list(islice(inputs, MOST_PROBED))
        before, same = position(rng), copy.deepcopy(rng)
        with showing() as seen:
            self._represent(
                self.outcomes(
                    lambda: [
                        self.outputs(x, 1 if k > 1 else PROBES, rng)
                        for k, x in enumerate(probed)
                    ]
                )
            )
        self.drew = position(rng) != before
        if seen:
            self.shown = self._shown(probed, same)

    def _shown(self, inputs: Sequence[Any], rng: np.random.Generator) -> list[Shown]:
        """Return what single calls on inputs show, all with the same randomness, and on the first input twice."""
        parts = []
        for data in [*inputs[:1], *inputs]:
            with showing(quiet=True) as seen:
                self.outputs(data, 1, copy.deepcopy(rng))
                parts.append(seen.parts)
        found = []
        for stream in STREAMS:
            again, *others = (part[stream] for part in parts)
            many = max(
                len(each.splitlines() if isinstance(each, str) else each)
                for each in others
            )
            if many:
                found.append(
                    Shown(
                        stream,
                        many,
                        None
                        if again != others[0]
                        else any(each != again for each in others),
                    )
                )
        return found

    def outcomes(self, make: Callable[[], Result]) -> Result:
        """Return what makes calls before any is bet on, a second time where it raises: then with exceptions as outputs.

        That has to be settled first. Were a call of many outputs that raised made again one by one, outputs would not have
        the law of single runs: those of the calls that did not raise would be kept.
        """
        try:
            return make()
        except RaisedError:
            if self.raising:
                raise
            self.raising = True
            return make()

    def repeated(self, data: Any, seed: int, size: int) -> tuple[bool, bool]:
        """Return whether calls with two generators of one state gave the same outputs, and drew equally much."""
        generators = [np.random.default_rng(seed) for _ in range(2)]
        once, again = (self.outputs(data, size, rng) for rng in generators)
        equally = position(generators[0]) == position(generators[1])
        return difference(once, again) is None, equally

    @property
    def form(self) -> Representation:
        """How outputs are represented, once that is decided."""
        assert self._representation is not None  # asked after calls were looked at
        return self._representation

    @property
    def offering(self) -> Any:
        """The mechanism for forecasters, which ask with rows for what it offers."""
        return (
            self.mechanism
            if self._representation is None
            else SeenAs(self.mechanism, self._representation)
        )

    def __call__(self, data: Any, size: int, rng: np.random.Generator) -> Array:
        """Return ``size`` outputs as rows, shape (size, ...); the first call decides their kind, if ``look`` did not.

        Raises:
            MechanismError: If the mechanism raises, does not return ``size`` readable outputs, or changes its input.
        """
        if size == 0 and self.like is not None:
            return self.like[:0]
        outputs = self.outputs(data, size, rng)
        if self._representation is None:
            self._represent([outputs])
        return self._rows(outputs)

    def sides(
        self, data: Any, ones: int, neighbour: Any, zeros: int, rng: np.random.Generator
    ) -> tuple[Array, Array]:
        """Return rows of ``ones`` outputs on an input, and then of ``zeros`` on its neighbour."""
        first = self(data, ones, rng)
        return first, self(neighbour, zeros, rng)

    def _represent(self, samples: list[Outputs]) -> None:
        first = next((output for sample in samples for output in sample), None)
        if isinstance(first, Raised) and all(
            isinstance(output, Raised) for sample in samples for output in sample
        ):
            raise self._error(first.error, "every input that was tried")
        try:
            self._representation = Representation.of(samples)
        except MechanismError as error:
            raise MechanismError(f"{self.name}: {error}") from None
        self.like = np.concatenate([self._rows(outputs) for outputs in samples])
        shown = max(samples, key=len)
        self.labels = self._representation.names(shown[0]) if len(shown) else []

    def _rows(self, outputs: Outputs) -> Array:
        assert self._representation is not None  # decided by the first outputs
        try:
            return self._representation.rows(outputs)
        except MechanismError as error:
            raise MechanismError(f"{self.name}: {error}") from None

    def outputs(self, data: Any, size: int, rng: np.random.Generator) -> Outputs:
        """Return what the mechanism returns, checked for being ``size`` outputs."""
        with self.inputs.lent(self.name, data) as (lent,):
            return self._run(self.mechanism, lent, size, rng)

    def _run(
        self, mechanism: Mechanism, data: Any, size: int, rng: np.random.Generator
    ) -> Outputs:
        process = os.getpid()
        try:
            if self.raising:
                return [
                    output
                    for _ in allowance().each(size)
                    for output in self._outcome(mechanism, data, rng)
                ]
            if not is_vectorised(mechanism):
                outputs = [
                    output
                    for _ in allowance().each(size)
                    for output in mechanism(data, 1, rng=rng)
                ]
                return checked_outputs(outputs, size, self.name)
            allowance().spend(size)
            return checked_outputs(mechanism(data, size, rng=rng), size, self.name)
        except AuditError:
            raise
        except Exception as error:
            raise self._error(error, f"input {brief(data)}") from error
        finally:
            if (
                os.getpid() != process
            ):  # the mechanism forked: its copy must not go on with the audit, and fork again
                os._exit(0)

    def _outcome(
        self, mechanism: Mechanism, data: Any, rng: np.random.Generator
    ) -> Outputs:
        """Return the output of one call, which may be that it raised."""
        try:
            raw = mechanism(data, 1, rng=rng)
        except AuditError:
            raise
        except Exception as error:
            self.raised[type(error).__name__] += 1
            return [Raised.of(error)]
        return (
            raw
            if isinstance(mechanism, PerCall) and isinstance(raw, list)
            else checked_outputs(raw, 1, self.name)
        )

    def _error(self, error: Exception, where: str) -> RaisedError:
        late = "; as a function f(data, rng) of one output, it may raise: that is an output then"
        rarely = late if self._representation is not None and not self.raising else ""
        place = f", at {at}" if (at := raised_at(error)) else ""
        found = RaisedError(
            f"{self.name} raised {type(error).__name__}: {error} (on {where}){place}{rarely}"
        )
        found.__cause__ = error
        return found

    def runs(self, wanted: Sequence[Run]) -> Array:
        """Return the rows of some calls."""
        return np.concatenate(
            [
                self(run.data, run.size, np.random.default_rng(run.seed))
                for run in wanted
            ]
        )

    @property
    def decided(self) -> tuple[Representation | None, bool, Counter[str]]:
        """How outputs are represented, whether exceptions are, and which were raised: for other calls to take over."""
        return self._representation, self.raising, self.raised

    @decided.setter
    def decided(
        self, decided: tuple[Representation | None, bool, Counter[str]]
    ) -> None:
        self._representation, self.raising, self.raised = decided

    def anew(self) -> Self:
        """Return the same calls, with nothing decided about how outputs are represented."""
        fresh = copy.copy(self)
        fresh.like = fresh._representation = None
        fresh.labels = []
        return fresh

    def singly(self) -> Calls:
        """Return the same calls made one by one."""
        return SingleCalls(self)


class SingleCalls(Calls):
    """Makes every call by itself, so that outputs share nothing that the outputs of one call may share."""

    def __init__(self, calls: Calls) -> None:
        vars(self).update(vars(calls))

    def outputs(self, data: Any, size: int, rng: np.random.Generator) -> Outputs:
        """Return the outputs of ``size`` calls of one output each."""
        with self.inputs.lent(self.name, data) as (lent,):
            return stacked(
                [self._run(self.mechanism, lent, 1, rng) for _ in range(size)]
            )


def checked_outputs(raw: Any, size: int, name: str) -> Outputs:
    """Return what a call of many outputs returned as these: an array with one row each, or a list of them.

    Raises:
        MechanismError: If it is not so many outputs.
    """
    if isinstance(raw, Mapping):
        columns = {
            key: checked_outputs(column, size, f"{name}, {key!r}")
            for key, column in raw.items()
        }
        return [
            dict(zip(columns, row, strict=True))
            for row in zip(*columns.values(), strict=True)
        ]
    if (
        isinstance(raw, tuple)
        and raw
        and all(isinstance(part, np.ndarray) for part in raw)
    ):
        return list(
            zip(*(checked_outputs(part, size, name) for part in raw), strict=True)
        )
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
        what = f"shape {outputs.shape}" if outputs.dtype.kind in NUMERIC else brief(raw)
        raise MechanismError(
            f"{name}: returned {what}, expected first dimension size={size}: one row per independent run"
        )
    if isinstance(raw, list):  # which may hold numbers of several types
        return raw
    return outputs if outputs.dtype.kind in NUMERIC else list(outputs)
