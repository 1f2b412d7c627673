"""An audit whose mechanism is in another process: what whoever judges is told of it, as data, once and before any call."""

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
"""Kinds of evidence of which everything but the calls is done by who judges."""
FORECASTERS = {
    kind.__name__: kind for kind in (LikelihoodRatio, Scored, ViewExperts, Repeating)
}
"""Forecasters that need no code of an audit."""
Parameter = int | float | str
EVIDENCE: TypeAdapter[Evidence | None] = TypeAdapter(Evidence | None)
VERSIONS: TypeAdapter[VersionsResult] = TypeAdapter(VersionsResult)
MUTATION: TypeAdapter[Mutation] = TypeAdapter(Mutation)


class ClaimElsewhere(Claim):
    """A claim that is no data, such as an accountant's curve or a promise: evidence about it is gathered where it is."""


@dataclass(frozen=True)
class MechanismNamed:
    """What reports call a mechanism, and whether it draws from the generator that it is given."""

    name: str
    seeded: bool


@dataclass(frozen=True)
class DeclaredHeld:
    """What a decorator says, beside what planning has; ``sizes`` are the overrides of every size that is tried."""

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
    """What an audit consists of."""

    parameters: Plain
    mechanisms: Annotated[list[MechanismNamed], Field(min_length=1)]
    kinds: list[str]
    claim: tuple[str, dict[str, Parameter]] | None
    """Its kind and its parameters, where these are all of it."""
    record: ClaimRecord | None
    """What records have of it, where they are not, or where something else is audited."""
    adjacency: str | None
    """What reports call it, if there is one."""
    digest: str
    plays: bool
    forecasters: list[str] | None
    own_forecasters: bool
    """Whether it has some of its own."""
    asked: list[str]
    calls: Annotated[int, Field(ge=1)] | None
    find: str
    figure: bool
    is_promise: bool
    is_formula: bool
    is_sensitivity: bool
    trace: bool
    cost: str
    decides: str
    at: Place | None


AS_DECLARED = ("calls", "find", "trace", "cost", "decides")
"""What is told of an audit as it is declared."""
HELD: TypeAdapter[AuditHeld] = TypeAdapter(AuditHeld)
DECLARED: TypeAdapter[DeclaredHeld] = TypeAdapter(DeclaredHeld)


def parameters_of(claim: object) -> tuple[str, dict[str, Parameter]] | None:
    """Return the kind of a claim and its parameters; None where there is more to it, such as code."""
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
    """Return the names of forecasters that need no code of an audit; None where others are among them."""
    names = [type(each).__name__ for each in forecasters]
    known = (FORECASTERS.get(name) for name in names)
    alike = all(
        type(f) is kind and vars(f) == vars(kind())
        for f, kind in zip(forecasters, known, strict=True)
    )
    return names if alike else None


@record(frozen=True)
class AuditElsewhere(Audit):
    """An audit, as whoever judges has it."""

    channel: Channel = field(kw_only=True)
    held: AuditHeld = field(kw_only=True)

    @classmethod
    def of(cls, channel: Channel, held: AuditHeld) -> Self:
        """Return the audit that was told of.

        Raises:
            LostError: If no audit is so.
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
        """Do nothing: it was checked where it was declared."""

    @property
    def digest(self) -> str:
        """The digest of its neighbours and of the pairs that are played, as it is declared."""
        return self.held.digest

    @property
    def is_formula(self) -> bool:
        """Whether there is no mechanism."""
        return self.held.is_formula

    @property
    def is_promise(self) -> bool:
        """Whether the claim is about an estimate."""
        return self.held.is_promise

    @property
    def is_sensitivity(self) -> bool:
        """Whether all that is audited is a sensitivity."""
        return self.held.is_sensitivity

    def mutation(self, settings: Any, exact: Evidence | None) -> Mutation:
        """Have its mutants audited there."""
        return shaped(MUTATION, self.channel.ask("mutants", settings, exact)[0])

    def compared(self, settings: Any) -> tuple[AuditElsewhere, VersionsResult]:
        """Have its mechanism compared with another revision there; return the audit with the pairs that this adds, too."""
        found = shaped(VERSIONS, self.channel.ask("compare", settings)[0])
        return replace(self, play=_play(self.pairs, self.held)), found


def _play(adjacency: Any, held: AuditHeld) -> list[Pair] | None:
    return adjacency.pairs() if adjacency is not None and held.plays else None


def evidence_elsewhere(
    mechanism: MechanismElsewhere, kind: str, alpha: float
) -> Evidence | None:
    """Return evidence that was gathered where the mechanism is, and is marked so."""
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
    """A declaration, as whoever judges has it; its factory is never called here."""

    channel: Channel = field(kw_only=True)
    held: DeclaredHeld = field(kw_only=True)

    @classmethod
    def of(
        cls, channel: Channel, name: str, expect: str, overrides: Mapping[str, str]
    ) -> Self:
        """Return what is declared under an id; what a run planned with is as it was planned."""
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
        """Return the overrides of every size that is tried."""
        return self.held.sizes

    def build(
        self, overrides: Mapping[str, str]
    ) -> tuple[AuditElsewhere, dict[str, Any]]:
        """Have the audit made, and return what is told of it.

        Raises:
            Skip: If the factory cannot run here.
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
