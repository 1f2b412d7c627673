"""An audit whose mechanism is in another process, and the data that describe it.

The process of the mechanism sends these data (``DeclaredHeld`` and ``AuditHeld``) to
the judging process before any call of the mechanism. There they become a
``DeclaredElsewhere`` and an ``AuditElsewhere``. ``serving`` is the other end of the
channel.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass as record
from dataclasses import field, fields, replace
from typing import Annotated, Any, Self

import numpy as np
from pydantic import Field, TypeAdapter
from pydantic.dataclasses import dataclass

from auditdp.adjacency.adjacency import Pair
from auditdp.adjacency.remote_adjacency import AdjacencyElsewhere
from auditdp.auditing.declaration import Audit
from auditdp.auditing.decorator import Declared
from auditdp.betting.forecasters.experts import ViewExperts
from auditdp.betting.forecasters.forecaster import LikelihoodRatio, Scored
from auditdp.betting.forecasters.repeated_outputs import Repeating
from auditdp.claims.claim import Claim
from auditdp.claims.statements import CLAIMS
from auditdp.errors import CollectionError, Skip
from auditdp.mechanism.calls.channel import Channel, ForeignError, LostError, shaped
from auditdp.mechanism.calls.remote_mechanism import MechanismElsewhere
from auditdp.record.json_fields import Plain
from auditdp.record.results import ClaimRecord, Evidence, Place
from auditdp.record.traces import Mutation
from auditdp.record.versions import VersionsResult

PLAYED = ("game", "support")
"""Kinds of evidence that need only calls of the mechanism, and not its code.

So the judging process can gather them.
"""
FORECASTERS = {
    kind.__name__: kind for kind in (LikelihoodRatio, Scored, ViewExperts, Repeating)
}
"""Forecasters that need no code of an audit, by the name of their class."""
Parameter = int | float | str
EVIDENCE: TypeAdapter[Evidence | None] = TypeAdapter(Evidence | None)
VERSIONS: TypeAdapter[VersionsResult] = TypeAdapter(VersionsResult)
MUTATION: TypeAdapter[Mutation] = TypeAdapter(Mutation)


class ClaimElsewhere(Claim):
    """Placeholder for a claim that cannot be sent as data, such as a curve.

    Evidence about it is gathered in the process of the mechanism.
    """


@dataclass(frozen=True)
class MechanismNamed:
    """The name of a mechanism, and whether it draws from the given generator."""

    name: str
    seeded: bool


@dataclass(frozen=True)
class DeclaredHeld:
    """The options of the ``@audit`` decorator.

    ``smallest`` is the parameter with the sizes, ``sizes`` are the overrides for each
    size, and ``at`` is the place of the factory in the code.
    """

    description: str
    source: str
    row: str
    reading: str
    repairs: str
    smallest: list[str]
    sizes: Annotated[list[dict[str, str]], Field(min_length=1)]
    at: Place | None


@dataclass(frozen=True)
class AuditHeld:
    """The data that describe an audit.

    Fields without a description have the meaning of the attribute of ``Audit`` with the
    same name.
    """

    parameters: Plain
    """The parameters of the factory."""
    mechanisms: Annotated[list[MechanismNamed], Field(min_length=1)]
    """The mechanism, and then its controls."""
    kinds: list[str]
    """The requested kinds of evidence that can test the claim."""
    claim: tuple[str, dict[str, Parameter]] | None
    """Class name and parameters of the claim; None if the claim cannot be sent as data.
    """
    record: ClaimRecord | None
    """The record of the claim, if ``claim`` is None or if a sensitivity is audited.

    Otherwise None.
    """
    adjacency: str | None
    """The name of the adjacency; None for an audit without pairs."""
    digest: str
    plays: bool
    """True if the audit names the pairs to play."""
    forecasters: list[str] | None
    """Names of the audit's forecasters (``FORECASTERS``).

    None if the audit names no forecasters, or if names do not suffice (``names_of``).
    """
    own_forecasters: bool
    """True if the audit names forecasters whose names do not suffice (``names_of``)."""
    asked: list[str]
    calls: Annotated[int, Field(ge=1)] | None
    find: str
    figure: bool
    """True if the audit has a figure."""
    is_promise: bool
    is_formula: bool
    is_sensitivity: bool
    trace: bool
    cost: str
    decides: str
    at: Place | None
    """The place of the mechanism in the code; None if it has none, as for a formula."""


AS_DECLARED = ("calls", "find", "trace", "cost", "decides")
"""Fields of ``AuditHeld`` with the name and the value of a field of ``Audit``."""
HELD: TypeAdapter[AuditHeld] = TypeAdapter(AuditHeld)
DECLARED: TypeAdapter[DeclaredHeld] = TypeAdapter(DeclaredHeld)


def parameters_of(claim: object) -> tuple[str, dict[str, Parameter]] | None:
    """Return the class name and the parameters of a claim.

    Returns:
        Both, or None if they do not determine the claim, as for a claim with code.
    """
    if CLAIMS.get(type(claim).__name__) is not type(claim):
        return None
    given = {each.name: getattr(claim, each.name) for each in fields(claim)}  # type: ignore[arg-type]  # every claim is a dataclass
    plain = {
        name: value.item() if isinstance(value, np.generic) else value
        for name, value in given.items()
    }
    return (
        (type(claim).__name__, plain)
        if all(isinstance(value, Parameter) for value in plain.values())
        else None
    )


def names_of(forecasters: Any) -> list[str] | None:
    """Return the class names of forecasters, or None if names do not suffice.

    They suffice if every class is in ``FORECASTERS`` and has its default settings.
    """
    names = [type(each).__name__ for each in forecasters]
    known = (FORECASTERS.get(name) for name in names)
    alike = all(
        type(f) is kind and vars(f) == vars(kind())
        for f, kind in zip(forecasters, known, strict=True)
    )
    return names if alike else None


@record(frozen=True)
class AuditElsewhere(Audit):
    """An audit in the judging process; its mechanism and its pairs are elsewhere."""

    channel: Channel = field(kw_only=True)
    held: AuditHeld = field(kw_only=True)

    @classmethod
    def of(cls, channel: Channel, held: AuditHeld) -> Self:
        """Return the audit that ``held`` describes.

        Raises:
            LostError: If the data describe no audit.
            ClaimError: If the parameters of the claim are invalid.
        """
        adjacency = (
            None
            if held.adjacency is None
            else AdjacencyElsewhere(channel, held.adjacency)
        )
        claim: Claim = ClaimElsewhere()
        try:
            if held.claim is not None:
                claim = CLAIMS[held.claim[0]](**held.claim[1])
            names = held.forecasters
            forecasters = (
                None if names is None else [FORECASTERS[name]() for name in names]
            )
        except (KeyError, TypeError) as error:
            raise LostError(
                f"the process of the mechanism declares something that there is not: {error}"
            ) from None
        # A user's forecasters and claims run in the mechanism's process, so its game does.
        plays = (
            PLAYED
            if held.claim is not None
            and adjacency is not None
            and not held.own_forecasters
            else ()
        )
        mechanisms = [
            MechanismElsewhere(
                channel, number, named.name, seeded=named.seeded, plays=plays
            )
            for number, named in enumerate(held.mechanisms)
        ]
        return cls(
            mechanisms[0],
            claim,
            adjacency,
            controls=mechanisms[1:],
            play=_play(adjacency, held),
            evidence=held.asked,
            forecasters=forecasters,
            figure=(lambda rng: channel.ask("figure", rng)[0]) if held.figure else None,
            channel=channel,
            held=held,
            **{name: getattr(held, name) for name in AS_DECLARED},
        )

    def __post_init__(self) -> None:
        """Do nothing: the audit was checked in the process that declared it."""

    @property
    def digest(self) -> str:
        """The ``Audit.digest``, as the process of the mechanism computed it."""
        return self.held.digest

    @property
    def is_formula(self) -> bool:
        """True if the audit has accountants and no mechanism."""
        return self.held.is_formula

    @property
    def is_promise(self) -> bool:
        """True if the claim is about an estimate."""
        return self.held.is_promise

    @property
    def is_sensitivity(self) -> bool:
        """True if only a sensitivity is audited."""
        return self.held.is_sensitivity

    def mutation(self, settings: Any, exact: Evidence | None) -> Mutation:
        """Return the fates of the mutants, computed in the process of the mechanism."""
        return shaped(MUTATION, self.channel.ask("mutants", settings, exact)[0])

    def compared(self, settings: Any) -> tuple[AuditElsewhere, VersionsResult]:
        """Compare the mechanism with another version, in the process of the mechanism.

        Returns:
            The audit, with the pairs that the comparison adds, and the record of the
            comparison.
        """
        found = shaped(VERSIONS, self.channel.ask("compare", settings)[0])
        return replace(self, play=_play(self.pairs, self.held)), found


def _play(adjacency: Any, held: AuditHeld) -> list[Pair] | None:
    return adjacency.pairs() if adjacency is not None and held.plays else None


def evidence_elsewhere(
    mechanism: MechanismElsewhere, kind: str, alpha: float
) -> Evidence | None:
    """Return evidence from the process of the mechanism, marked as self-reported.

    Returns:
        The evidence, or None if that kind does not apply.

    Raises:
        LostError: If the reply is evidence of another kind.
    """
    found = shaped(
        EVIDENCE, mechanism.channel.ask("evidence", mechanism.number, kind, alpha)[0]
    )
    if found is not None and found.kind != kind:
        raise LostError(
            f"asked for evidence of kind {kind!r}, the process of the mechanism answered {found.kind!r}"
        )
    return None if found is None else replace(found, self_reported=True)


@record(frozen=True)
class DeclaredElsewhere(Declared):
    """A declaration in the judging process, which never calls its factory."""

    channel: Channel = field(kw_only=True)
    held: DeclaredHeld = field(kw_only=True)

    @classmethod
    def of(
        cls, channel: Channel, name: str, expect: str, overrides: Mapping[str, str]
    ) -> Self:
        """Return the declaration of an audit.

        Args:
            channel: The channel to the process of the mechanism.
            name: The id of the audit.
            expect: The expected result, as the run planned it.
            overrides: Values of the factory's parameters, as text.
        """
        held = shaped(DECLARED, channel.ask("told", dict(overrides))[0])
        return cls(
            _no_factory,
            source=held.source,
            expect=expect,
            row=held.row,
            reading=held.reading,
            repairs=held.repairs,
            smallest={name: [] for name in held.smallest},
            id=name,
            channel=channel,
            held=held,
        )

    @property
    def description(self) -> str:
        """The factory's docstring."""
        return self.held.description

    def sizes(self, overrides: Mapping[str, str]) -> list[dict[str, str]]:
        """Return the overrides for each size to try, which were computed elsewhere."""
        return self.held.sizes

    def build(
        self, overrides: Mapping[str, str]
    ) -> tuple[AuditElsewhere, dict[str, Any]]:
        """Make the audit in the process of the mechanism.

        Returns:
            The audit and its parameters.

        Raises:
            Skip: If the factory cannot run on this machine.
            AuditError: If the declaration or an override is faulty.
            ForeignError: Any other exception of the factory.
        """
        try:
            value, _ = self.channel.ask("build", dict(overrides))
        except ForeignError as error:
            raise (
                Skip(str(error)) if type(error).__name__ == Skip.__name__ else error
            ) from None
        held = shaped(HELD, value)
        return AuditElsewhere.of(self.channel, held), held.parameters


def _no_factory() -> Audit:
    raise CollectionError("an audit is made in a process of its own")
