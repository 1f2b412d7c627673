"""``Audit``: a mechanism, its claim, its neighbours and its controls, all checked."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from auditdp.adjacency import Adjacency, Pair, as_adjacency
from auditdp.adjacency.digest import digest_of
from auditdp.adjacency.values import of_size, records
from auditdp.claims.claim import Claim
from auditdp.claims.estimates import Promise, Unbiased, VarianceAtMost
from auditdp.errors import AuditError, CollectionError, ConfigurationError, did_you_mean
from auditdp.mechanism.calls.observed import Observed
from auditdp.mechanism.calls.side_outputs import STREAMS
from auditdp.mechanism.protocol import brief
from auditdp.numerics.arrays import is_number
from auditdp.record.budget import Fault

if TYPE_CHECKING:
    from auditdp.accountants import Accountant, Description


@dataclass(frozen=True)
class Audit:
    """One mechanism with its claim, its neighbours, and its controls.

    Args:
        mechanism: ``f(data, size, *, rng)`` or ``f(data, rng)``; see
            ``auditdp.mechanism.protocol``. None for the audit of a formula, whose only
            evidence are accountants; it needs no ``pairs``.
        claim: A privacy claim, such as ``PureDP`` or ``GaussianDP``, or a promise
            about an estimate (``Unbiased``, ``VarianceAtMost``). A claim that depends
            on the number n of records is a function of n, such as ``lambda n:
            ApproxDP(1.0, 1 / n**2)``. Then n is len(data) of the smaller input of a
            pair; all listed pairs need the same n, and other pairs are skipped. (If δ
            decreases with n, this is the weaker of the claims for n and for n + 1
            records, so a refutation refutes both.)
        pairs: For a privacy claim: an adjacency such as ``NeighbourList(nodes=8)``, one
            ``Pair``, or a list of pairs (data, neighbour).
        inputs: For a promise: inputs by class, such as ``{"degree 3": [list, list]}``.
        accountants: Accountants of the mechanism's parameters, such as
            ``poisson_accountants(1.0, 0.01, 1000)``. They judge the claim about the
            model. They judge no control, since a control has other parameters.
        about: The class of mechanisms that the claim is about: an accountant of this
            class, or its ``describes``. A formula is by default about the narrowest
            class that its accountants describe. A mechanism is one member of a class
            and may be better than the worst member. So accountants refute a claim about
            a mechanism only if ``about`` is given: it states that the worst pair of the
            class is a pair of the mechanism.
        controls: Mechanisms that break the claim on purpose. Each kind of evidence must
            refute each control, with the same budget as the mechanism has. A control
            that survives makes the audit INCONCLUSIVE. Evidence of sensitivity and
            support does not depend on the size of the noise: it need not refute a
            control that other evidence refutes. If there is no other evidence, a
            refuted calibration refutes the control.
        play: The pairs that are played; by default those that the adjacency lists.
        evidence: Kinds of evidence to gather (``auditdp.record.details.KINDS``); by
            default all that apply, except two: 'support' tests the last bits of
            floating-point outputs and refutes nearly every textbook implementation;
            'one_run' is for a training with many canaries (``pairs=Canaries(1000)``;
            ``calls`` is the number of trainings, 1 by default). With 'sensitivity'
            alone, the declared sensitivity is audited, and reports state this.
        forecasters: Forecasters for the game; chosen automatically by default.
        trace: Whether to trace the code first. A trace proposes pairs and fits laws to
            the noise.
        observe: Side outputs that belong to the output: 'stdout' is printed text;
            'logging' is log messages and warnings; 'files' are files written to the
            working folder, which is empty before each call.
        calls: Limit of the runs of the mechanism, including those before and after the
            game, instead of the budget's number. For a promise, the number of calls,
            shared by all classes. The quick budget is a limit that no audit of privacy
            exceeds. If an audit does not end as declared because of that limit,
            reports call it undecided, which is not a finding.
        find: A fault that the game is to find nine times in ten, such as 'level:1.5'
            (the worst pair of laws at 1.5 times the claimed level), 'tail:0.005'
            (outputs of this probability that lose twice the claim) or 'output:0.001'
            (an output of this probability that only one input gives). The game then has
            the number of calls that this takes, and at least ``calls`` if that is
            given. A fault that the run names (``auditdp run --find``) replaces it.
        exhaustive: Whether exact evidence enumerates all pairs if possible, and
            evidence of sensitivity enumerates or searches pairs. If False, both use the
            played pairs only.
        figure: ``figure(rng) -> dict`` for the report, with a scatter plot at the key
            'scatter' (``auditdp.record.details.Scatter``) and numbers at other keys.
        equivalent_mutants: Reasons why mutants of the mechanism satisfy the claim, by
            name or shell pattern, for ``auditdp mutate``.
        cost: For the ledger of claims: the cost of a repair in variance or accuracy,
            with numbers.
        decides: For the ledger of claims: the evidence that would decide a claim that
            this audit can neither refute nor certify.

    Raises:
        CollectionError: If the arguments do not fit together.
        AdjacencyError: If the pairs cannot be read.
        ConfigurationError: If ``calls`` or ``find`` is invalid.
    """

    mechanism: Any
    claim: Claim | Promise | Callable[[int], Claim]
    pairs: Any = None
    _: KW_ONLY
    inputs: Mapping[str, Sequence[Any]] | None = None
    accountants: Sequence[Accountant] = ()
    about: Description | None = None
    controls: Sequence[Any] = ()
    play: Sequence[Pair] | None = None
    evidence: Sequence[str] | None = None
    forecasters: Sequence[Any] | None = None
    trace: bool = True
    observe: Sequence[str] = ()
    calls: int | None = None
    find: str = ""
    exhaustive: bool = True
    figure: Callable[[np.random.Generator], dict[str, Any]] | None = None
    equivalent_mutants: Mapping[str, str] = field(default_factory=dict)
    cost: str = ""
    decides: str = ""

    def __post_init__(self) -> None:
        if isinstance(self.claim, type):
            raise CollectionError(
                f"expected a claim such as PureDP(1.0), got the class {self.claim.__name__}"
            )
        if callable(self.claim):
            claim, pairs = _of_one_size(self.claim, self.pairs, self.play)
            object.__setattr__(self, "claim", claim)
            object.__setattr__(self, "pairs", pairs)
        if self.is_promise and not self.inputs:
            raise CollectionError(
                f"an audit of {self.claim} needs inputs={{class: [data, ...]}}, got {self.inputs!r}"
            )
        if self.inputs and not self.is_promise:
            raise CollectionError(
                f"an audit of {self.claim} needs pairs=, and no inputs=, which promises about an estimate have"
            )
        if not self.is_promise and not hasattr(self.claim, "level"):
            raise CollectionError(
                f"expected a claim such as PureDP(1.0), got claim={self.claim!r}"
            )
        if self.about is not None and not self.accountants:
            raise CollectionError(
                f"about={self.about!r} describes the mechanism for accountants, and there are none"
            )
        if self.mechanism is None and not self.accountants:
            raise CollectionError(
                "expected a mechanism, or accountants= for a formula, got mechanism=None"
            )
        if not isinstance(self.controls, Sequence) or not all(
            map(callable, self.controls)
        ):
            raise CollectionError(
                f"expected controls, a list of mechanisms, got controls={brief(self.controls)}"
            )
        if self.is_formula and (self.is_promise or self.controls):
            raise CollectionError(
                f"an audit of {self.claim} by accountants alone needs a claim of privacy and has no controls"
            )
        if not self.is_promise and self.pairs is None and not self.is_formula:
            raise CollectionError(
                f"an audit of {self.claim} needs pairs=: an adjacency, or pairs (data, neighbour)"
            )
        if self.pairs is not None:
            # Invalid pairs are refused here, at the line of the audit, and not during
            # the run.
            _ = self.adjacency
        if self.evidence:
            _check_evidence(self.evidence)
        for stream in self.observe:
            if stream not in STREAMS:
                raise CollectionError(
                    f"observe={self.observe!r}: {did_you_mean(stream, STREAMS)}"
                )
        if self.observe and not self.is_formula:
            object.__setattr__(
                self, "mechanism", _observed(self.mechanism, self.observe)
            )
            object.__setattr__(
                self,
                "controls",
                [_observed(twin, self.observe) for twin in self.controls],
            )
        if self.calls is not None:
            whole = is_number(self.calls) and float(self.calls).is_integer()
            if not whole or self.calls < 1:
                raise ConfigurationError(
                    f"expected a whole number calls >= 1, got calls={self.calls!r}"
                )
            # The number may be written as 1e5.
            object.__setattr__(self, "calls", int(self.calls))
        _ = self.fault

    @cached_property
    def adjacency(self) -> Adjacency:
        """The pairs as an adjacency.

        Raises:
            AdjacencyError: If there are no pairs, or they cannot be read.
        """
        return as_adjacency(self.pairs)

    @property
    def digest(self) -> str:
        """The digest of the adjacency and the played pairs, or of the inputs.

        It is empty for an audit without pairs and inputs.
        """
        if self.pairs is None and not self.inputs:
            return ""
        return digest_of(
            None if self.pairs is None else self.adjacency, self.play, self.inputs
        )

    @property
    def fault(self) -> Fault | None:
        """The fault that the game is to find; None if there is none.

        Raises:
            ConfigurationError: If ``find`` is invalid.
        """
        return Fault.read(self.find) if self.find else None

    @property
    def is_formula(self) -> bool:
        """True if the audit has accountants and no mechanism."""
        return self.mechanism is None and bool(self.accountants)

    @property
    def is_sensitivity(self) -> bool:
        """True if only the declared sensitivity is audited, and not the claim."""
        # This import is slow, and collecting does not need it.
        from auditdp.record.details import (
            Subject,
            kind_of,
        )

        subjects = {kind_of(kind).subject for kind in self.evidence or ()}
        return not self.is_promise and subjects == {Subject.CALIBRATION}

    @property
    def asked(self) -> Sequence[str]:
        """The requested kinds of evidence about privacy; some of them may not apply."""
        from auditdp.record.details import KINDS

        return (
            self.evidence
            if self.evidence is not None
            else [name for name, kind in KINDS.items() if kind.usual]
        )

    @property
    def is_promise(self) -> bool:
        """True if the claim is about an estimate, and not about privacy."""
        return isinstance(self.claim, Unbiased | VarianceAtMost)


def _check_evidence(asked: Sequence[str]) -> None:
    """Check the names of kinds of evidence.

    Raises:
        CollectionError: If a name is unknown, or is not a kind of evidence about
            privacy.
    """
    from auditdp.record.details import KINDS, Subject

    choices = [
        name for name, kind in KINDS.items() if kind.subject is not Subject.ESTIMATES
    ]
    for kind in asked:
        if kind not in choices:
            raise CollectionError(
                f"unknown evidence {kind!r}; {did_you_mean(kind, choices)}"
            )


def _observed(mechanism: Any, observe: Sequence[str]) -> Observed:
    return (
        mechanism if isinstance(mechanism, Observed) else Observed(mechanism, observe)
    )


def _of_one_size(
    claim: Callable[[int], Claim], pairs: Any, play: Sequence[Pair] | None
) -> tuple[Claim, Adjacency]:
    """Return the claim for the size of the listed pairs, and the pairs of that size.

    The size of a pair is the number of records of its smaller input.

    Raises:
        CollectionError: If the pairs have several sizes, or the claim cannot be
            computed.
        AdjacencyError: If there are no pairs of inputs with records.
    """
    if pairs is None:
        raise CollectionError(
            f"a claim for each number of records needs pairs=, got pairs=None and claim={claim!r}"
        )
    adjacency = as_adjacency(pairs)
    sizes = sorted({records(pair) for pair in [*adjacency.pairs(), *(play or ())]})
    if len(sizes) != 1:
        raise CollectionError(
            f"the claim depends on the number of records, and the smaller inputs of the pairs have {brief(sizes)}: give "
            "pairs of one size, such as Rows(..., 'replace', least=n, most=n) or Rows(..., 'add/remove', least=n, "
            "most=n + 1), and an audit for each size"
        )
    (size,) = sizes
    try:
        settled = claim(size)
    except AuditError:
        raise
    except Exception as error:
        raise CollectionError(
            f"claim({size}), for {size} records, raised {type(error).__name__}: {error}"
        ) from error
    return settled, of_size(adjacency, size)
