"""The optional methods and numbers of a mechanism, found and checked in one place.

`auditdp.mechanism.protocol` defines each of them. An attribute that is missing, or is
None, is not offered. An offered attribute raises an error here if it is no method of
the defined arguments, or if its result has another type or shape. The error names the
attribute and the expected form.
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
NumberEach = Callable[[Array, Any], Array]
Number = int | float | np.integer | np.floating

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
"""The names of the arguments of every optional method."""
NORMS = {"l1": 1.0, "l2": 2.0, "linf": math.inf}


@dataclass(frozen=True)
class Norm:
    """Norm of a sensitivity: the order p of an ℓp norm, and the name in reports."""

    order: float
    name: str


@dataclass(frozen=True)
class Capabilities:
    """The optional methods of a mechanism, checked; None for a method it lacks.

    An attribute that has not the form that its name promises raises a
    ``MechanismError``, and so does a result of another type or shape.
    """

    mechanism: Any
    form: Representation | None = None
    """The representation of outputs, if the methods here are called with rows.

    Rows are then converted to numbers before a method of the mechanism is called.
    """

    @cached_property
    def name(self) -> str:
        """The name of the mechanism in reports."""
        return name_of(self.mechanism)

    @cached_property
    def law_of_output(self) -> LawOf | None:
        """The method ``distribution``: the law of the output on an input."""
        return self._law("distribution")

    @cached_property
    def law(self) -> LawOf | None:
        """The method ``distribution``, or else ``before_processing`` or ``laplace``."""
        law = self.law_of_output or self._law("before_processing")
        return law or self._law("laplace")

    @cached_property
    def envelope(self) -> Callable[[], Envelope] | None:
        """The method ``envelope``: extreme probabilities of outputs over all inputs."""
        return self._checked("envelope", Envelope)

    @cached_property
    def log_prob(self) -> NumberEach | None:
        """The method ``log_prob``: log density or probability of each output."""
        return self._number_each("log_prob")

    @property
    def knows_odds(self) -> bool:
        """True if the mechanism has ``log_prob`` or ``distribution``."""
        # The other process states this before the first call.
        if isinstance(self.mechanism, MechanismElsewhere):
            return self.mechanism.held.knows_odds
        return self.log_prob is not None or self.law_of_output is not None

    @cached_property
    def score(self) -> NumberEach | None:
        """The method ``score``: one number per output, which separates two inputs."""
        return self._number_each("score")

    @cached_property
    def possible(self) -> NumberEach | None:
        """The method ``possible``: one bool per output.

        It is True if the input can give the output.
        """
        return self._number_each("possible")

    @cached_property
    def output_range(self) -> Callable[[Any], Any] | None:
        """The method ``output_range``: an interval of all outputs on an input."""
        return self._method("output_range")

    @cached_property
    def query(self) -> Callable[[Any, np.random.Generator], Any] | None:
        """The method ``query``: the value before the noise."""
        return self._method("query")

    @property
    def is_calibrated(self) -> bool:
        """True if the mechanism has a query and states a sensitivity, valid or not."""
        return self.query is not None and self._declared_sensitivity is not None

    @property
    def _declared_sensitivity(self) -> Any:
        return getattr(self.mechanism, "sensitivity", None)

    @cached_property
    def finite_sensitivity(self) -> float | None:
        """The stated sensitivity, or None if it is no finite number > 0."""
        value = self._declared_sensitivity
        if not isinstance(value, Number) or not 0 < value < math.inf:
            return None
        return float(value)

    @property
    def sensitivity(self) -> float:
        """The stated sensitivity, to which the noise is calibrated.

        Raises:
            AuditError: If it is no finite number > 0.
        """
        if self.finite_sensitivity is None:
            raise AuditError(
                f"{self.name}: expected a finite sensitivity > 0, got sensitivity={self._declared_sensitivity!r}"
            )
        return self.finite_sensitivity

    @cached_property
    def declared_norm(self) -> Any:
        """The mechanism's attribute ``norm``, unchecked; None if it has none."""
        return getattr(self.mechanism, "norm", None)

    @property
    def norm(self) -> Norm:
        """The norm in which the sensitivity bounds the change of the query.

        Raises:
            AuditError: If the declared norm is missing or no norm.
        """
        norm = self.declared_norm
        if isinstance(norm, str) and norm in NORMS:
            return Norm(NORMS[norm], norm)
        # A number is the order of an ℓp norm.
        if isinstance(norm, Number) and norm >= 1:
            return Norm(float(norm), f"l{norm:g}")
        raise AuditError(
            f"{self.name}: expected norm 'l1', 'l2', 'linf' or an order >= 1, in which its sensitivity is measured; "
            f"got norm={norm!r}"
        )

    def log_prob_by(self, law: Law, outputs: Array) -> Array:
        """Return the log density or probability of outputs under a law.

        Args:
            law: A law that the mechanism stated.
            outputs: The outputs, or rows of them if there is a ``form``.

        Returns:
            One number per output, shape (outputs,).
        """
        # A finite law compares rows by value, and others take numbers.
        if isinstance(law, FiniteLaw):
            return law.log_prob(outputs, self.form)
        return law.log_prob(self._numbers(outputs))

    def _numbers(self, outputs: Array) -> Array:
        return outputs if self.form is None else self.form.numbers(outputs)

    def offered(self) -> list[str]:
        """Return one text for each offered method, such as 'query(data, rng)'.

        A query with a sensitivity adds a text of the sensitivity and its norm.

        Raises:
            AuditError: If an attribute has not the form that its name promises.
        """
        found = []
        for name, given in ARGUMENTS.items():
            if self._method(name) is not None:
                found.append(f"{name}({', '.join(given)})")
        if self.is_calibrated:
            found.append(f"{self.norm.name} sensitivity {self.sensitivity:.6g}")
        return found

    def _method(self, name: str) -> Callable[..., Any] | None:
        method: Callable[..., Any] | None = getattr(self.mechanism, name, None)
        if method is None:
            return None
        given = ARGUMENTS[name]
        wanted = f"{self.name}: expected a method {name}({', '.join(given)})"
        # An attribute of this name that is no method would otherwise be ignored, and
        # the audit would be weaker without a notice.
        if not callable(method):
            raise MechanismError(
                f"{wanted}, got {name}={brief(method)}; rename the attribute, or make it such a method"
            )
        try:
            signature = inspect.signature(method)
        except (TypeError, ValueError):
            # A builtin without a signature.
            return method
        try:
            # A method of other arguments is found here, and not in the middle of a
            # game.
            signature.bind(*given)
        except TypeError as error:
            raise MechanismError(
                f"{wanted}, got {name}{signature}: {error}; change its arguments, or rename it"
            ) from None
        return method

    def _law(self, name: str) -> LawOf | None:
        return self._checked(name, Law)

    def _checked(self, name: str, kind: Any) -> Callable[..., Any] | None:
        """Return a method that also checks that its result has a given type."""
        method = self._method(name)
        if method is None:
            return None

        def of(*given: Any) -> Any:
            found = method(*given)
            if isinstance(found, kind):
                return found
            kinds = getattr(kind, "__args__", (kind,))
            families = " or ".join(each.__name__ for each in kinds)
            raise MechanismError(
                f"{self.name}.{name}: returned {brief(found)}, expected {families} of auditdp.mechanism.laws"
            )

        return of

    def _number_each(self, name: str) -> NumberEach | None:
        """Return a method of rows that also checks that each row gets one number."""
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
    """Return the optional methods of a mechanism.

    >>> from auditdp.testing import LaplaceMechanism
    >>> capabilities(LaplaceMechanism(scale=1.0)).offered()
    ['distribution(data)', 'log_prob(outputs, data)']
    """
    if isinstance(mechanism, SeenAs):
        return Capabilities(mechanism.mechanism, mechanism.form)
    return Capabilities(mechanism)
