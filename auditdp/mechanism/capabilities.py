"""What a mechanism can do beside being called: its optional methods and numbers, looked up and checked in one place.

`auditdp.mechanism.protocol` says what each of them means. An attribute that is missing, or is None, is not offered.
One that is offered is refused here, with its name and what was expected, where it is no method of these arguments, or
where what it returns is of another type or shape.
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from auditdp.errors import AuditError, MechanismError
from auditdp.mechanism.calls.remote_mechanism import MechanismElsewhere
from auditdp.mechanism.calls.representation import Representation, SeenAs
from auditdp.mechanism.laws import Envelope, FiniteLaw, GaussianLaw, LaplaceLaw, StepLaw
from auditdp.mechanism.protocol import Array, brief, name_of

Law = FiniteLaw | StepLaw | LaplaceLaw | GaussianLaw
LawOf = Callable[[Any], Law]

ARGUMENTS = {
    "distribution": ("data",),
    "before_processing": ("data",),
    "laplace": ("data",),
    "envelope": (),
    "log_prob": ("outputs", "data"),
    "score": ("outputs", "pair"),
    "possible": ("outputs", "data"),
    "output_range": ("data",),
    "query": ("data", "rng"),
}
"""The optional methods, and what they are called with."""
NORMS = {"l1": 1.0, "l2": 2.0, "linf": math.inf}


@dataclass(frozen=True)
class Norm:
    """A norm in which a sensitivity is measured: its order, and what reports call it."""

    order: float
    name: str


@dataclass(frozen=True)
class Capabilities:
    """What a mechanism offers. What is looked up is kept, and methods that are not offered are None."""

    mechanism: Any
    form: Representation | None = None
    """How outputs are represented, where what is computed of them is asked for with rows; the mechanism gets numbers."""

    @cached_property
    def name(self) -> str:
        """What reports call the mechanism."""
        return name_of(self.mechanism)

    @cached_property
    def law_of_output(self) -> LawOf | None:
        """The law of the output, by the input."""
        return self._law("distribution")

    @cached_property
    def law(self) -> LawOf | None:
        """The law of the output where that is stated, else the law before post-processing."""
        return (
            self.law_of_output or self._law("before_processing") or self._law("laplace")
        )

    @cached_property
    def envelope(self) -> Callable[[], Envelope] | None:
        """The least and the most that any input of a domain gives each output."""
        method = self._method("envelope")
        return (
            None
            if method is None
            else lambda: self._of_type("envelope", method(), Envelope)
        )

    @cached_property
    def log_prob(self) -> Callable[[Array, Any], Array] | None:
        """The log density, or probability, of outputs on an input, shape (outputs,)."""
        return self._number_each("log_prob")

    @property
    def knows_odds(self) -> bool:
        """Whether the mechanism states how likely outputs are."""
        if isinstance(self.mechanism, MechanismElsewhere):
            return self.mechanism.held.knows_odds
        return self.log_prob is not None or self.law_of_output is not None

    @cached_property
    def score(self) -> Callable[[Array, Any], Array] | None:
        """One number per output that keeps what tells a pair apart, shape (outputs,)."""
        return self._number_each("score")

    @cached_property
    def possible(self) -> Callable[[Array, Any], Array] | None:
        """Whether an input can give exactly these outputs, shape (outputs,)."""
        return self._number_each("possible")

    @cached_property
    def output_range(self) -> Callable[[Any], Any] | None:
        """What every output lies between on an input, (low, high) or None."""
        return self._method("output_range")

    @cached_property
    def query(self) -> Callable[[Any, np.random.Generator], Any] | None:
        """What is computed before the noise."""
        return self._method("query")

    @cached_property
    def is_calibrated(self) -> bool:
        """Whether the mechanism says what it computes before its noise and what the noise is calibrated to."""
        return (
            self.query is not None
            and getattr(self.mechanism, "sensitivity", None) is not None
        )

    @cached_property
    def finite_sensitivity(self) -> float | None:
        """The number that the noise is calibrated to; None where none that can be is declared."""
        value = getattr(self.mechanism, "sensitivity", None)
        if (
            not isinstance(value, int | float | np.integer | np.floating)
            or not 0 < value < math.inf
        ):
            return None
        return float(value)

    @property
    def sensitivity(self) -> float:
        """The number that the noise is calibrated to.

        Raises:
            AuditError: If it is no finite number > 0.
        """
        if self.finite_sensitivity is None:
            declared = getattr(self.mechanism, "sensitivity", None)
            raise AuditError(
                f"{self.name}: expected a finite sensitivity > 0, got sensitivity={declared!r}"
            )
        return self.finite_sensitivity

    @cached_property
    def declared_norm(self) -> Any:
        """The norm as it is declared: 'l1', 'l2', 'linf' or an order; None where none is."""
        return getattr(self.mechanism, "norm", None)

    @property
    def norm(self) -> Norm:
        """The norm in which the sensitivity bounds the change of the query.

        Raises:
            AuditError: If it is no norm.
        """
        norm = self.declared_norm
        if isinstance(norm, str) and norm in NORMS:
            return Norm(NORMS[norm], norm)
        if isinstance(norm, int | float | np.integer | np.floating) and norm >= 1:
            return Norm(float(norm), f"l{norm:g}")
        raise AuditError(
            f"{self.name}: expected norm 'l1', 'l2', 'linf' or an order >= 1, in which its sensitivity is measured; "
            f"got norm={norm!r}"
        )

    def log_prob_by(self, law: Law, outputs: Array) -> Array:
        """Return the log density or probability of outputs by a stated law, shape (outputs,)."""
        if isinstance(law, FiniteLaw):
            return law.log_prob(outputs, self.form)
        return law.log_prob(self._numbers(outputs))

    def _numbers(self, outputs: Array) -> Array:
        return outputs if self.form is None else self.form.numbers(outputs)

    def offered(self) -> list[str]:
        """Return what the mechanism offers, each as a reader would call it.

        Raises:
            AuditError: If an attribute is not what its name promises.
        """
        found = [
            f"{name}({', '.join(given)})"
            for name, given in ARGUMENTS.items()
            if self._method(name) is not None
        ]
        if self.is_calibrated:
            found.append(f"{self.norm.name} sensitivity {self.sensitivity:.6g}")
        return found

    def _method(self, name: str) -> Callable[..., Any] | None:
        method: Callable[..., Any] | None = getattr(self.mechanism, name, None)
        if method is None:
            return None
        given = ARGUMENTS[name]
        wanted = f"{self.name}: expected a method {name}({', '.join(given)})"
        if not callable(method):
            raise MechanismError(
                f"{wanted}, got {name}={brief(method)}; rename the attribute, or make it such a method"
            )
        try:
            signature = inspect.signature(method)
        except (TypeError, ValueError):  # a builtin that tells none
            return method
        try:
            signature.bind(*given)
        except TypeError as error:
            raise MechanismError(
                f"{wanted}, got {name}{signature}: {error}; change its arguments, or rename it"
            ) from None
        return method

    def _law(self, name: str) -> LawOf | None:
        method = self._method(name)
        return (
            None
            if method is None
            else lambda data: self._of_type(name, method(data), Law)
        )

    def _of_type(self, name: str, found: Any, kind: Any) -> Any:
        if isinstance(found, kind):
            return found
        families = " or ".join(
            each.__name__ for each in getattr(kind, "__args__", (kind,))
        )
        raise MechanismError(
            f"{self.name}.{name}: returned {brief(found)}, expected {families} of auditdp.mechanism.laws"
        )

    def _number_each(self, name: str) -> Callable[[Array, Any], Array] | None:
        method = self._method(name)
        if method is None:
            return None

        def of(outputs: Array, given: Any) -> Array:
            found = np.asarray(method(self._numbers(outputs), given))
            if found.shape != (len(outputs),):
                raise MechanismError(
                    f"{self.name}.{name}: returned shape {found.shape} for {len(outputs):,} outputs, expected one number "
                    f"each, shape ({len(outputs)},)"
                )
            return found

        return of


def capabilities(mechanism: Any) -> Capabilities:
    """Return what a mechanism offers.

    >>> from auditdp.testing import LaplaceMechanism
    >>> capabilities(LaplaceMechanism(scale=1.0)).offered()
    ['distribution(data)', 'log_prob(outputs, data)']
    """
    return (
        Capabilities(mechanism.mechanism, mechanism.form)
        if isinstance(mechanism, SeenAs)
        else Capabilities(mechanism)
    )
