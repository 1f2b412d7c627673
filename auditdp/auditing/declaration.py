"""What an audit consists of: ``Audit``, and what is refused of one."""

from __future__ import annotations

import math
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
from auditdp.record.budget import Fault

if TYPE_CHECKING:
    from auditdp.accountants import Accountant, Description


@dataclass(frozen=True)
class Audit:
    """One mechanism with its claim, its neighbours, and the twins that show that the audit can fail.

    Args:
        mechanism: ``f(data, size, *, rng)`` or ``f(data, rng)``; see ``auditdp.mechanism.protocol``. None where a
            formula is audited and accountants are all the evidence; ``pairs`` are then not needed.
        claim: A privacy claim (``PureDP``, ``ApproxDP``, ``GaussianDP``), or a promise about an estimate (``Unbiased``,
            ``VarianceAtMost``). A claim that depends on the number n of records is a function of it, such as
            ``lambda n: ApproxDP(1.0, 1 / n**2)``: n is len(data) of the smaller input of a pair, the same one in all pairs
            that are listed, and no pair of another size is looked at. (Where δ falls with n, that is the weaker of the two
            claims that a row added or removed makes, so what refutes it refutes the other.)
        pairs: For a privacy claim: an adjacency such as ``NeighbourList(nodes=8)``, one ``Pair``, or a list of pairs (data,
            neighbour).
        inputs: For a promise: inputs by class, such as ``{"degree 3": [list, list]}``.
        accountants: Accountants of the mechanism's parameters, such as ``poisson_accountants(1.0, 0.01, 1000)``: they judge
            the claim about the model, and no control, which has other parameters.
        about: What the claim is about, in an accountant's terms: an accountant, or its ``describes``. A formula is about
            the narrowest class that its accountants describe, unless this names another. A mechanism is one of a class,
            and may be a better one than its worst, so accountants refute a claim about it only where this is given: it
            says that the worst pair of what is described is one of the mechanism's.
        controls: Mechanisms that break the claim on purpose. Each kind of evidence must refute each of them with the
            budget that the mechanism had; one that survives makes the audit INCONCLUSIVE. Evidence of sensitivity
            and support is blind to the size of the noise, so it may leave a control alone that other evidence refutes; where
            it is all the evidence, a control whose calibration it refutes counts as refuted.
        play: Which of the pairs are played where they are not those that the adjacency lists.
        evidence: Kinds of evidence to gather, as ``auditdp.record.details.KINDS`` names them; all that apply unless named,
            except 'support', which looks at the last bits of floating-point outputs and refutes nearly every textbook
            implementation, and 'one_run', for a training with many canaries (``pairs=Canaries(1000)``; ``calls`` trainings,
            one unless named). With 'sensitivity' alone, what is audited is the declared sensitivity, and reports say so.
        forecasters: Forecasters for the game; chosen automatically unless named.
        trace: Whether the code is traced first, for pairs to play and what its noise tells; False leaves that out.
        observe: What of 'stdout', 'logging' and 'files' is part of the output beside what is returned: what a call prints,
            what it logs or warns of, and the files that it writes into the folder that it runs in, an empty one then.
        calls: Runs of the mechanism at most, those before and after the game among them, instead of the budget's. The quick
            budget gives no game more than its own number; where an audit does not end as it declares for want of the others,
            reports call it undecided, and no finding.
        find: A fault that the game is to find nine times in ten, such as 'level:1.5', 'tail:0.005' or 'output:0.001' (see
            ``auditdp.record.budget.Fault``): it then has as many calls as that takes, and at least ``calls``. A run that is
            asked to find another one (``auditdp run --find``) finds that instead.
        exhaustive: Whether exact evidence enumerates all pairs where it can, and evidence of sensitivity enumerates them
            or searches; False looks at the played ones only.
        figure: ``figure(rng) -> dict`` with a scatter plot for the report.
        equivalent_mutants: Why mutants of the mechanism keep the claim, by name or shell pattern, for ``auditdp mutate``.
        cost: For the ledger of claims: what a repair costs against what it repairs, in variance or accuracy, with figures.
        decides: For the ledger of claims: what would decide a claim that this audit can neither refute nor certify.

    Raises:
        CollectionError: If the arguments do not fit together.
        AdjacencyError: If the pairs cannot be read.
        ConfigurationError: If there is no such number of calls, or fault to find.
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
                f"about={self.about!r} says what accountants are asked about, and there are none"
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
            _ = (
                self.adjacency
            )  # refused here, at the line of the audit, and not when it runs
        if self.evidence:
            _check_evidence(self.evidence)
        for stream in self.observe:
            if stream not in STREAMS:
                raise CollectionError(
                    f"observe={self.observe!r}: {did_you_mean(str(stream), STREAMS)}"
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
            if not 1 <= self.calls < math.inf:
                raise ConfigurationError(
                    f"expected calls >= 1, got calls={self.calls!r}"
                )
            object.__setattr__(self, "calls", int(self.calls))  # of 1e5, too
        _ = self.fault

    @cached_property
    def adjacency(self) -> Adjacency:
        """The pairs as an adjacency.

        Raises:
            AdjacencyError: If they cannot be read.
        """
        return as_adjacency(self.pairs)

    @property
    def digest(self) -> str:
        """The digest of its neighbours, and of the pairs or inputs that are played; empty where there are none."""
        if self.pairs is None and not self.inputs:
            return ""
        return digest_of(
            None if self.pairs is None else self.adjacency, self.play, self.inputs
        )

    @property
    def fault(self) -> Fault | None:
        """The fault that the game is to find, if it is to find one.

        Raises:
            ConfigurationError: If ``find`` names none.
        """
        return Fault.read(self.find) if self.find else None

    @property
    def is_formula(self) -> bool:
        """Whether there is no mechanism, only the accountants of its parameters."""
        return self.mechanism is None and bool(self.accountants)

    @property
    def is_sensitivity(self) -> bool:
        """Whether all that is audited is the sensitivity that the noise is calibrated to, and not the claim itself."""
        from auditdp.record.details import (
            Subject,
            kind_of,
        )  # slow to load, and of no use to who only collects

        subjects = {kind_of(kind).subject for kind in self.evidence or ()}
        return not self.is_promise and subjects == {Subject.CALIBRATION}

    @property
    def asked(self) -> Sequence[str]:
        """The kinds of evidence that are asked for, of a claim of privacy; not all of them may apply."""
        from auditdp.record.details import KINDS

        return (
            self.evidence
            if self.evidence is not None
            else [name for name, kind in KINDS.items() if kind.usual]
        )

    @property
    def is_promise(self) -> bool:
        """Whether the claim is about an estimate and not about privacy."""
        return isinstance(self.claim, Unbiased | VarianceAtMost)


def _check_evidence(asked: Sequence[str]) -> None:
    """Refuse kinds of evidence that are none.

    Raises:
        CollectionError: If one is none, or is not about privacy.
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
    """Return what a claim that depends on the number of records says of some pairs, and those that are of their size.

    Raises:
        CollectionError: If they have several sizes, or there is no such claim.
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
