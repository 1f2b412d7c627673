"""Results of audits: verdicts, evidence, counterexamples, and the record of a run.

All of it is plain data that goes to JSON and back without loss, and every report is a
pure function of a ``RunRecord``. An infinite epsilon is written as the string "inf".

A result can draw itself, as in a notebook. The renderers live in ``auditdp.report``,
which imports this module, so they are named by their addresses and imported at the
first use.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import field, fields, replace
from enum import StrEnum
from itertools import chain
from pkgutil import resolve_name
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

from pydantic import (
    ConfigDict,
    Field,
    TypeAdapter,
    ValidationInfo,
    computed_field,
    field_validator,
)
from pydantic.dataclasses import dataclass
from typing_extensions import TypedDict

from auditdp.errors import ConfigurationError
from auditdp.files import json_of
from auditdp.record.budget import LONGEST, MOST_SEED
from auditdp.record.details import (
    AnyDetails,
    Confirmation,
    Details,
    EvidenceKind,
    GameDetails,
    details_of,
    kind_of,
)
from auditdp.record.json_fields import Count, Number, Plain, Probability, Seconds
from auditdp.record.traces import Mutation
from auditdp.record.versions import VersionsResult

if TYPE_CHECKING:
    from matplotlib.axes import Axes

SCHEMA = 1
STATUS = r"^(complete|interrupted|running|shard \d{1,9} of \d{1,9})$"


class Verdict(StrEnum):
    """The outcome of an audit, of one piece of evidence, or of a control."""

    VIOLATED = "VIOLATED"
    """The claim is false.

    There is a counterexample and, for statistical evidence, a stated error probability.
    """
    MISCALIBRATED = "MISCALIBRATED"
    """Two neighbours need more than the noise is calibrated to.

    The argument for the claim fails; the claim may hold.
    """
    CERTIFIED = "CERTIFIED"
    """The claim is proved for the stated model and scope."""
    NOT_REFUTED = "NOT_REFUTED"
    """No violation was found; the result has the smallest epsilon that would have been."""
    EQUIVALENT = "EQUIVALENT"
    """An estimate is within the stated margin of its promised value."""
    INCONCLUSIVE = "INCONCLUSIVE"
    """The evidence decides nothing: a control survived, or the code has another law."""
    ERROR = "ERROR"
    """The audit crashed or timed out; nothing was found out."""
    SKIPPED = "SKIPPED"
    """The audit could not run here; the reason is given."""


REFUTATIONS = (Verdict.VIOLATED, Verdict.MISCALIBRATED)
"""Verdicts with a counterexample to the claim or to the calibration of its noise."""
PRECEDENCE = (
    *REFUTATIONS,
    Verdict.INCONCLUSIVE,
    Verdict.CERTIFIED,
    Verdict.EQUIVALENT,
    Verdict.NOT_REFUTED,
)
"""The verdict of an audit is the first of these that any of its evidence has."""
DECLARABLE = {"violation": Verdict.VIOLATED, "miscalibration": Verdict.MISCALIBRATED}
"""Verdicts by the fault that ``@audit(expect="violation")`` and the like declare."""


@dataclass(frozen=True)
class Counterexample:
    """Why a claim is false, for a person to check.

    Attributes:
        pair: The two neighbouring inputs, rendered.
        output: The output that tells them apart most, rendered; empty where the evidence is not about one output.
        explanation: One sentence with both probabilities, or the wealth that the bets gained.
        confirmed: Whether the finding was confirmed on fresh randomness (game), or needs none (exact).
        probabilities: Probability, or density, of the output on the first and on the second input, where a law states both.
        python: Both inputs as Python to paste, what differs marked; empty where ``pair`` has all of them.
    """

    pair: str
    explanation: str
    output: str = ""
    confirmed: bool = True
    probabilities: tuple[Number, Number] | None = None
    python: str = ""


@dataclass(frozen=True)
class Evidence:
    """The evidence of one kind.

    Attributes:
        kind: 'game', 'exact', 'sensitivity', …: a name in ``auditdp.record.details.KINDS``.
        verdict: What this evidence alone supports.
        statement: One sentence: what was seen, with its error probability or its scope.
        assumptions: What the statement rests on.
        epsilon_lower: Certified lower bound on the claim's parameter (epsilon, mu or rho); None of an accountant's curve,
            and where a finding was not confirmed.
        epsilon_upper: Certified upper bound, within the stated scope.
        log_e_value: Natural logarithm of the wealth against the claim; None where no bets were made.
        calls: Executions of the mechanism.
        counterexample: Set where the verdict is VIOLATED or MISCALIBRATED.
        details: Numbers for plots and tables, in the record of that kind (``auditdp.record.details``); a mapping is
            read as such.
        self_reported: Whether it was computed in the process of the audit, by code that the audit's file can change, and
            handed to who judges; what one process did alone, as ``check`` does, is not marked.
        unconfirmed: Whether it refuted what is claimed, and is INCONCLUSIVE since that was not confirmed or not believed.
    """

    kind: str
    verdict: Verdict
    statement: str
    assumptions: list[str] = field(default_factory=list)
    epsilon_lower: Number | None = None
    epsilon_upper: Number | None = None
    log_e_value: Number | None = None
    calls: Count = 0
    counterexample: Counterexample | None = None
    details: AnyDetails = Field(default_factory=dict, validate_default=True)
    self_reported: bool = False
    unconfirmed: bool = False

    @field_validator("details", mode="before")
    @classmethod
    def _of_kind(cls, given: Any, known: ValidationInfo) -> AnyDetails:
        return details_of(known.data.get("kind", ""), given)

    @property
    def known(self) -> EvidenceKind:
        """The entry of its kind in ``auditdp.record.details.KINDS``."""
        return kind_of(self.kind)


AnyOf = TypeVar("AnyOf", bound=Details)


def details(evidence: Iterable[Evidence], kind: type[AnyOf]) -> Iterator[AnyOf]:
    """Yield the details of one type, in the order of the evidence."""
    yield from (each.details for each in evidence if isinstance(each.details, kind))


def with_figure(evidence: Evidence, figure: Mapping[str, Any]) -> Evidence:
    """Add the numbers and the plot of an audit's ``figure`` to an evidence.

    Raises:
        ValueError: If its scatter plot, or a detail of the same name, is of another
            type (a pydantic.ValidationError).
    """
    own = evidence.details
    given = {each.name: getattr(own, each.name) for each in fields(own)}
    further = given.pop("more")
    merged = given | further | dict(figure)
    return replace(evidence, details=details_of(evidence.kind, merged))


SYMBOLS = {"epsilon": "ε", "mu": "μ", "rho": "ρ"}
"""The letters of the parameters that claims of privacy bound."""


@dataclass(frozen=True)
class ClaimRecord:
    """The claim as it is written into a record.

    ``curve`` has a few of the (ε, δ) statements of a claim that its parameters do not give, ``level`` the number of what is
    no claim of privacy: a sensitivity, a margin, a variance. ``digest`` covers everything that decides which inputs are
    neighbours and which pairs are played (``auditdp.adjacency.digest``); it is empty where no inputs are given.
    """

    kind: str
    text: str
    adjacency: str
    source: str = ""
    parameter: str = "epsilon"
    epsilon: Number | None = None
    delta: Number | None = None
    mu: Number | None = None
    rho: Number | None = None
    curve: list[tuple[Number, Number]] = field(default_factory=list)
    level: Number | None = None
    digest: str = ""


@dataclass(frozen=True)
class Published:
    """The place of an audit in the ledger of published claims."""

    row: str
    """The published mechanism, as the ledger lists it."""
    reading: str = ""
    """The audited reading of the claim, such as 'as stated' or 'as deployed'."""
    repairs: str = ""
    """Id of the audit whose violated claim this one repairs; empty where it repairs none."""
    cost: str = ""
    """The cost of a repair in variance or accuracy."""
    decides: str = ""
    """The evidence that would decide a claim that is neither refuted nor certified."""


@dataclass(frozen=True)
class Place:
    """The place of a definition: a file, relative to the working folder, and a line."""

    file: str
    line: Annotated[int, Field(ge=1, lt=1 << 31)]


@dataclass(frozen=True)
class ControlResult:
    """A deliberately broken twin, and whether the audit refuted it, or its calibration where nothing else is audited.

    ``blind`` names the kinds of evidence that should have refuted it and did not.
    """

    name: str
    verdict: Verdict
    statement: str = ""
    calls: Count = 0
    epsilon_lower: Number | None = None
    blind: list[str] = field(default_factory=list)

    @property
    def survived(self) -> bool:
        """True if the audit did not refute it."""
        return self.verdict not in REFUTATIONS


@dataclass(frozen=True)
class AuditResult:
    """The complete result of one audit; a notebook renders it as a card.

    ``epsilon_lower`` and ``epsilon_upper`` bound ``claim.parameter``. ``log_e_value`` and ``counterexample`` are those of
    the evidence on which the verdict rests; None where that has none. ``printed`` is what was written to standard output
    and standard error meanwhile. ``lacking`` is how many calls a brief budget left out of those that the audit names.
    ``mechanism_at`` and ``audit_at`` are where both are defined, None outside the working folder. ``asked`` has the kinds of
    evidence that the audit asks for; not all of them may apply. ``interrupted`` says whether the game was stopped by hand
    before it had spent its calls. ``versions`` is the mechanism beside that of another revision, where they were compared.
    """

    id: str
    verdict: Verdict
    summary: str
    expected: str = "holds"
    description: str = ""
    mechanism: str = ""
    parameters: Plain = field(default_factory=dict)
    claim: ClaimRecord | None = None
    evidence: list[Evidence] = field(default_factory=list)
    epsilon_lower: Number | None = None
    epsilon_upper: Number | None = None
    log_e_value: Number | None = None
    alpha: Probability | None = None
    calls: Count = 0
    cpu_seconds: Seconds = 0.0
    seconds: Seconds = 0.0
    controls: list[ControlResult] = field(default_factory=list)
    counterexample: Counterexample | None = None
    reproduce: str = ""
    mutation: Mutation | None = None
    published: Published | None = None
    printed: str = ""
    lacking: Count = 0
    mechanism_at: Place | None = None
    audit_at: Place | None = None
    asked: list[str] = field(default_factory=list)
    interrupted: bool = False
    versions: VersionsResult | None = None

    @property
    def leading(self) -> Evidence | None:
        """The evidence on which the verdict rests.

        It is None if the verdict rests on a control, or on two kinds of evidence that
        contradict each other.
        """
        return next(iter(self._supporting), None)

    @property
    def _supporting(self) -> list[Evidence]:
        return [each for each in self.evidence if each.verdict is self.verdict]

    @property
    def _games(self) -> list[GameDetails]:
        return list(details(self.evidence, GameDetails))

    @property
    def is_self_reported(self) -> bool:
        """True if all evidence for the verdict was computed by code of the audit."""
        supporting = self._supporting
        return bool(supporting) and all(each.self_reported for each in supporting)

    @property
    def game(self) -> Evidence | None:
        """The evidence of the game, or None if none was played."""
        return next((each for each in self.evidence if each.known.opposes), None)

    @property
    def power(self) -> float | None:
        """The smallest loss that a clean game refutes nine times in ten.

        It is a multiple of the claim, and infinite if the game would refute no loss of
        a known size, for example because both inputs of every pair have equal outputs.
        It is None if no clean game decided, or if the claim is not about privacy.
        """
        if self.verdict is not Verdict.NOT_REFUTED or self.claim is None:
            return None
        claimed = getattr(self.claim, self.claim.parameter, None)
        games = self._games
        if not games or games[0].detectable_epsilon is None or not claimed:
            return None
        # No loss is detectable in equal outputs, whatever the calls are.
        if games[0].same_outputs:
            return math.inf
        return float(games[0].detectable_epsilon) / float(claimed)

    @property
    def has_same_outputs(self) -> bool:
        """True if both inputs of every pair gave equal outputs, which hides any loss."""
        return any(game.same_outputs for game in self._games)

    @property
    def notices(self) -> list[str]:
        """Remarks on the calls of the mechanism that hold for every verdict."""
        texts = chain.from_iterable(game.notices for game in self._games)
        return list(dict.fromkeys(texts))

    @property
    def recorded(self) -> list[Confirmation]:
        """The confirmations with recorded outputs.

        Outputs are recorded if the mechanism draws its own randomness, which no seed
        repeats.
        """
        played = [game.confirmation for game in self._games]
        return [
            each for each in played if each is not None and each.outputs is not None
        ]

    @property
    def surviving_controls(self) -> list[str]:
        """Names of the controls that the audit failed to refute."""
        return [control.name for control in self.controls if control.survived]

    @property
    def declared(self) -> Verdict | None:
        """The verdict of the declared fault, or None if the claim is declared to hold."""
        return DECLARABLE.get(self.expected)

    @property
    def as_expected(self) -> bool:
        """True if the audit found the fault that it declares, and no other."""
        if self.verdict in (Verdict.ERROR, Verdict.SKIPPED) or self.surviving_controls:
            return False
        if self.declared is not None:
            return self.verdict is self.declared
        return self.verdict not in REFUTATIONS

    @property
    def refuting(self) -> list[Evidence]:
        """The evidence that refuted, and on which the verdict does not rest.

        Its refutation was not confirmed or not believed, a proof contradicts it, or a
        control survived.
        """
        if self.verdict is Verdict.VIOLATED:
            return []
        # A refuted calibration does not hide that the claim was refuted, too.
        dropped: tuple[Verdict, ...] = REFUTATIONS
        if self.verdict in REFUTATIONS:
            dropped = ()
        return [
            each
            for each in self.evidence
            if each.unconfirmed or each.verdict in dropped
        ]

    @property
    def is_unconfirmed(self) -> bool:
        """True if the verdict dropped an undeclared refutation."""
        # A refuted claim whose refutation was not confirmed has another verdict.
        dropped = {Verdict.VIOLATED for each in self.refuting if each.unconfirmed}
        dropped |= {each.verdict for each in self.refuting if not each.unconfirmed}
        return bool(dropped - {self.declared})

    @property
    def contradiction(self) -> str:
        """A sentence on the first contradiction in the result, empty without one."""
        verdicts = {each.verdict for each in self.evidence}
        # These verdicts rest on no evidence.
        is_open = self.verdict in (Verdict.INCONCLUSIVE, Verdict.ERROR, Verdict.SKIPPED)
        proved = self.verdict in (Verdict.CERTIFIED, Verdict.EQUIVALENT)
        head = f"{self.id} is {self.verdict}"
        may_refute = self.verdict in (*REFUTATIONS, Verdict.INCONCLUSIVE)
        if not may_refute and verdicts.intersection(REFUTATIONS):
            return f"{head}, and some of its evidence refutes"
        if not is_open and self.verdict not in verdicts and (verdicts or proved):
            return f"{head}, which none of its evidence is"
        if not is_open and self.surviving_controls:
            return f"{head}, and its control {self.surviving_controls[0]} survived"
        lower, upper = self.epsilon_lower, self.epsilon_upper
        if lower is not None and upper is not None and lower > upper:
            bounds = f"{lower:g} from below and {upper:g} from above"
            return f"{self.id} is bounded by {bounds}"
        return ""

    @property
    def is_undecided(self) -> bool:
        """True if the missing calls of a brief budget may decide the audit.

        They may if a declared refutation was missed or a control survived. A proved
        claim is decided, and so is an undeclared refutation. A refuted calibration is
        not decided if a violation is declared, which outranks it. More calls do not
        help evidence that makes none.
        """
        if not self.lacking or self.as_expected or self.is_unconfirmed:
            return False
        pending = {Verdict.NOT_REFUTED, Verdict.INCONCLUSIVE}
        if self.expected == "violation":
            pending |= {Verdict.MISCALIBRATED}
        if self.verdict not in {*pending, self.declared}:
            return False
        survivors = [control for control in self.controls if control.survived]
        # More calls help only evidence that samples the mechanism.
        blind = chain.from_iterable(control.blind for control in survivors)
        return all(kind_of(kind).sampled for kind in blind)

    @property
    def is_finding(self) -> bool:
        """True if a person has to act.

        The audit has an undeclared refutation, missed a declared one, or did not refute
        a control.
        """
        ended = self.verdict not in (Verdict.ERROR, Verdict.SKIPPED)
        return ended and not self.as_expected and not self.is_undecided

    @property
    def needs_a_look(self) -> bool:
        """True for a finding, a refutation that was not confirmed, and an error."""
        return self.is_finding or self.is_unconfirmed or self.verdict is Verdict.ERROR

    @property
    def history(self) -> list[tuple[int, float]]:
        """(calls, certified lower bound) of the game, for each rise of the bound.

        All of these bounds hold together with the audit's confidence, so a game may be
        stopped at any of them. The list is empty without a game, and for the curve of
        an accountant.
        """
        return list(chain.from_iterable(game.bound_path for game in self._games))

    def to_dict(self) -> dict[str, Any]:
        """Return the result as JSON data; an infinite number is the string "inf"."""
        # JSON has no infinities, so the mode decides how they are written.
        content: dict[str, Any] = RESULT.dump_python(self, mode="json")
        return content

    def plot(self, axes: Axes | None = None) -> Axes:
        """Draw the bounds against the claim.

        Args:
            axes: The axes to draw on; new ones of Matplotlib by default.
        """
        drawn: Axes = _drawn("html.notebook:plot_interval", self, axes)
        return drawn

    def plot_history(self, axes: Axes | None = None) -> Axes:
        """Draw the lower bound against the calls, and the claim.

        Args:
            axes: The axes to draw on; new ones of Matplotlib by default.

        Raises:
            ConfigurationError: If there is no history, as of an audit by canaries or of
                an accountant's curve.
        """
        if not self.history:
            raise ConfigurationError(
                "an audit by canaries, or of an accountant's curve, has no history; "
                "use plot()"
            )
        # The last bound holds until the end of the game.
        points = [*self.history, (max(self.calls, 1), self.history[-1][1])]
        drawn: Axes = _drawn(
            "html.notebook:plot_levels",
            points,
            self.claim,
            "calls",
            axes,
            stepwise=True,
        )
        return drawn

    def __str__(self) -> str:
        return str(_drawn("terminal:line", self))

    def __repr__(self) -> str:
        return str(_drawn("terminal:short", self))

    def _repr_html_(self) -> str:
        return str(_drawn("html.notebook:card", self))


def _drawn(renderer: str, *values: Any, **options: Any) -> Any:
    # The report room imports this one, so a renderer is named by its address, and its
    # module is imported when the first result is drawn.
    return resolve_name(f"auditdp.report.{renderer}")(*values, **options)


@dataclass(frozen=True)
class LedgerEntry:
    """A share of the run's alpha, and its purpose."""

    audit: str
    purpose: str
    alpha: Probability


class _Asked(TypedDict, total=False):
    """The arguments of a run that commands read; further ones are kept unchecked."""

    __pydantic_config__ = ConfigDict(extra="allow", strict=True)  # type: ignore[misc]
    paths: list[str]
    keyword: str | None
    options: list[str]
    parameters: dict[str, dict[str, str]]
    budget: str
    timeout: Annotated[float, Field(gt=0, le=LONGEST)] | None
    timeout_for_all: bool
    data: str
    mutants: bool
    max_memory: str
    trace: bool
    changed_since: str
    left_out: list[str]
    among: list[str]
    compare: str
    continued: dict[str, Any]


_ASKED: TypeAdapter[_Asked] = TypeAdapter(_Asked)


@dataclass(frozen=True)
class RunRecord:
    """The log of a run, from which every report is made.

    ``status`` is 'complete', 'interrupted', 'running' (a log whose process was killed), or such as 'shard 2 of 8'.
    ``started`` is an ISO 8601 time with its zone; it, ``project`` and ``author``, who answers for it, are empty unless told.
    ``finished`` is when the last entry was made, and ``run`` names the run in every line of its log.
    ``sandbox`` is what held the processes of audits; empty where an earlier version ran them. ``sources`` has the SHA-256 of
    each file below the working folder that was imported to collect the audits, by its path.
    """

    root_seed: Annotated[int, Field(ge=0, lt=MOST_SEED)]
    status: Annotated[str, Field(pattern=STATUS)]
    arguments: Plain
    versions: dict[str, str]
    revision: str
    device: str
    alpha_ledger: list[LedgerEntry]
    results: list[AuditResult]
    schema: int = SCHEMA
    seconds: Seconds = 0.0
    started: str = ""
    project: str = ""
    author: str = ""
    finished: str = ""
    run: str = ""
    sandbox: str = ""
    sources: dict[str, str] = field(default_factory=dict)

    @field_validator("arguments")
    @classmethod
    def _as_asked(cls, given: Any) -> Any:
        _ASKED.validate_python(given)
        return given

    @property
    def missing(self) -> list[str]:
        """Ids of the planned audits without a result.

        A planned audit has a share of alpha.
        """
        finished = {result.id for result in self.results}
        # Shares of alpha are assigned before the run.
        planned = dict.fromkeys(entry.audit for entry in self.alpha_ledger)
        return [name for name in planned if name not in finished]

    @property
    def planned(self) -> int:
        """Number of planned audits."""
        return len(self.results) + len(self.missing)

    def ended(self, verdict: Verdict) -> int:
        """Return the number of audits with a verdict."""
        return sum(result.verdict is verdict for result in self.results)

    @computed_field  # type: ignore[prop-decorator]
    @property
    def audited(self) -> int:
        """Number of audits that neither crashed nor were skipped."""
        return (
            len(self.results) - self.ended(Verdict.ERROR) - self.ended(Verdict.SKIPPED)
        )

    @property
    def contradiction(self) -> str:
        """A sentence on the first contradiction in the record, empty without one."""
        names = Counter(result.id for result in self.results)
        # Reports and baselines find results by their ids.
        repeated = [name for name, results in names.items() if results > 1]
        if repeated:
            return f"two results of {repeated[0]}"
        alpha = math.fsum(entry.alpha for entry in self.alpha_ledger)
        # The shares are sums of doubles, so their total may exceed 1 by rounding.
        if alpha > 1 + 1e-9:
            return f"shares of alpha that sum to {alpha:g}"
        contradictions = (result.contradiction for result in self.results)
        return next(filter(None, contradictions), "")

    def to_json(self, *, indent: int | None = 2) -> str:
        """Return the record as JSON text."""
        return _RECORD.dump_json(self, indent=indent).decode()

    @classmethod
    def from_json(cls, text: str | bytes) -> RunRecord:
        """Return the record that ``to_json`` wrote.

        Raises:
            ValueError: If the text is not such a record, or contradicts itself.
        """
        return cls.from_plain(json_of(text))

    @classmethod
    def from_plain(cls, content: Any) -> RunRecord:
        """Return the record in JSON data; see ``from_json``."""
        return _consistent(_RECORD.validate_python(content))


_RECORD: TypeAdapter[RunRecord] = TypeAdapter(RunRecord)
RESULT: TypeAdapter[AuditResult] = TypeAdapter(AuditResult)


def result_of(content: Any) -> AuditResult:
    """Return the result in JSON data, such as a line of a log.

    Raises:
        ValueError: If it is not a result, or contradicts itself.
    """
    return _consistent(RESULT.validate_python(content))


Checked = TypeVar("Checked", RunRecord, AuditResult)


def _consistent(value: Checked) -> Checked:
    if value.contradiction:
        raise ValueError(f"it contradicts itself: {value.contradiction}")
    return value
