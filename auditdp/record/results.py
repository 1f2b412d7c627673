"""Results of audits: verdicts, evidence, counterexamples, and the record of a run.

A ``RunRecord`` has an ``AuditResult`` for each audit, and that has ``Evidence`` of each
kind. All of it is plain data that goes to JSON and back without loss, and every report
is a pure function of a ``RunRecord``. An infinite epsilon is written as the string
"inf".
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
    """Two neighbours differ by more than the noise is calibrated to.

    The argument for the claim fails; the claim itself may still hold.
    """
    CERTIFIED = "CERTIFIED"
    """The claim is proved for the stated model and scope."""
    NOT_REFUTED = "NOT_REFUTED"
    """The claim was neither refuted nor proved.

    If a game was played, its details have the smallest loss that it would have refuted.
    """
    EQUIVALENT = "EQUIVALENT"
    """Estimates are within the promised margin or bound, with a stated confidence."""
    INCONCLUSIVE = "INCONCLUSIVE"
    """The evidence decides nothing.

    For example, a control survived, a refutation was not confirmed, or the code does
    not draw from its stated law.
    """
    ERROR = "ERROR"
    """The audit crashed or timed out, without any finding."""
    SKIPPED = "SKIPPED"
    """The audit could not run here; the summary has the reason."""


REFUTATIONS = (Verdict.VIOLATED, Verdict.MISCALIBRATED)
"""Verdicts with a counterexample to the claim or to the calibration of its noise."""
PRECEDENCE = (
    *REFUTATIONS,
    Verdict.INCONCLUSIVE,
    Verdict.CERTIFIED,
    Verdict.EQUIVALENT,
    Verdict.NOT_REFUTED,
)
"""Verdicts by precedence. The first one that any evidence has is usually that of the
audit; ``auditdp.record.verdict`` has the exceptions."""
DECLARABLE = {"violation": Verdict.VIOLATED, "miscalibration": Verdict.MISCALIBRATED}
"""The verdict of each fault that an audit can declare, as ``expect="violation"``."""


@dataclass(frozen=True)
class Counterexample:
    """Inputs that refute a claim or its calibration, for a person to check.

    Attributes:
        pair: Text of the two neighbouring inputs, or the name of a class of inputs.
        explanation: Why these inputs refute the claim, in a few sentences.
        output: Text of the output that shows the excess best, such as the one that adds
            most to δ, or of a class of outputs; empty if the evidence names none.
        confirmed: True if a game confirmed the finding on fresh randomness, or if the
            finding needs no confirmation, such as that of exact evidence.
        probabilities: Probability or density of ``output`` on the first and on the
            second input; None if the evidence does not state them.
        python: Python code that makes both inputs, with a mark where they differ; empty
            if ``pair`` shows the inputs in full.
    """

    pair: str
    explanation: str
    output: str = ""
    confirmed: bool = True
    probabilities: tuple[Number, Number] | None = None
    python: str = ""


@dataclass(frozen=True)
class Evidence:
    """Evidence of one kind about one mechanism.

    Attributes:
        kind: Name of the kind in ``auditdp.record.details.KINDS``, such as 'game'.
        verdict: The verdict that this evidence alone supports.
        statement: The result in one sentence, with its error probability or its scope.
        assumptions: Assumptions of the statement.
        epsilon_lower: Certified lower bound on the claim's parameter (epsilon, mu or
            rho); None if there is none, for example because the claim has no such
            parameter or a finding was not confirmed.
        epsilon_upper: Certified upper bound on that parameter, within the stated scope;
            None if there is none.
        log_e_value: Natural logarithm of the wealth against the claim; None if no bets
            were made.
        calls: Number of runs of the mechanism.
        counterexample: Inputs that refute the claim; None unless the verdict is
            VIOLATED or MISCALIBRATED.
        details: Numbers for plots and tables. A mapping becomes the record that
            ``KINDS`` has for the kind.
        self_reported: Whether the process of the mechanism computed the evidence, where
            code of the audit's file can change it. False if mechanism and judge share
            one process, as in ``check``.
        unconfirmed: Whether the evidence refuted the claim and is INCONCLUSIVE, because
            fresh calls did not confirm it or its calls may depend on each other.
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
        """The properties of its kind; default ones for an unknown kind."""
        return kind_of(self.kind)


AnyOf = TypeVar("AnyOf", bound=Details)


def details(evidence: Iterable[Evidence], kind: type[AnyOf]) -> Iterator[AnyOf]:
    """Yield the details of one type, in the order of the evidence."""
    yield from (each.details for each in evidence if isinstance(each.details, kind))


def with_figure(evidence: Evidence, figure: Mapping[str, Any]) -> Evidence:
    """Return evidence with the numbers and the plot of an audit's ``figure`` added.

    Raises:
        ValueError: If the scatter plot, or a number with the name of a detail, has a
            wrong type (a pydantic.ValidationError).
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
    """A claim as plain data.

    Attributes:
        kind: Class of a claim of privacy, such as 'PureDP'; 'Sensitivity'; or the name
            of a promise about estimates.
        text: The claim, as reports write it.
        adjacency: Name of the adjacency; for a promise about estimates, a phrase with
            the number of classes of inputs.
        source: Where the claim is made, such as a paper.
        parameter: Name of the parameter that the bounds of the audit are about:
            'epsilon', 'mu', 'rho', 'sensitivity', or '' for a promise about estimates.
        epsilon: The claim's ε, if that is its parameter; otherwise None.
        delta: The claim's δ; None without one.
        mu: The claim's μ of Gaussian DP, if that is its parameter; otherwise None.
        rho: The claim's ρ, if that is its parameter; otherwise None.
        curve: Some (ε, δ) statements of a claim whose parameters do not determine its
            curve; otherwise empty.
        level: The number of a claim without ε, μ and ρ: a sensitivity, the margin of a
            bias, or the bound on a variance; otherwise None.
        digest: Digest of everything that decides which inputs are neighbours and which
            pairs are played (``auditdp.adjacency.digest``); empty if no inputs are
            given.
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
    """Id of the audit whose violated claim this audit repairs; empty without one."""
    cost: str = ""
    """The cost of a repair in variance or accuracy; empty if none is stated."""
    decides: str = ""
    """The evidence that would decide a claim that is neither refuted nor certified;
    empty if none is stated."""


@dataclass(frozen=True)
class Place:
    """The place of a definition: a file, relative to the working folder, and a line."""

    file: str
    line: Annotated[int, Field(ge=1, lt=1 << 31)]


@dataclass(frozen=True)
class ControlResult:
    """The result for a control: a deliberately broken twin of the audited mechanism.

    ``blind`` names the kinds of evidence that had to refute the twin and did not.
    """

    name: str
    verdict: Verdict
    statement: str = ""
    calls: Count = 0
    epsilon_lower: Number | None = None
    blind: list[str] = field(default_factory=list)
    cpu_seconds: Seconds = 0.0

    @property
    def survived(self) -> bool:
        """True if the audit did not refute the broken twin."""
        return self.verdict not in REFUTATIONS


@dataclass(frozen=True)
class AuditResult:
    """The complete result of one audit; a notebook renders it as a card.

    Attributes:
        id: The id of the audit.
        verdict: The one verdict, drawn from all evidence and controls.
        summary: The reason of the verdict, as a sentence.
        expected: The fault that the audit declares, such as 'violation', or 'holds'.
        epsilon_lower: Lower bound on the parameter that ``claim.parameter`` names; None
            without one, and for an inconclusive audit.
        epsilon_upper: Upper bound on that parameter; None in the same cases.
        log_e_value: Natural logarithm of the wealth in the leading evidence; None if
            that evidence made no bets.
        alpha: The audit's share of the run's error probability.
        calls: Number of runs of the mechanism, without those of its controls.
        counterexample: The counterexample of the leading evidence; None unless the
            claim or its calibration is refuted.
        cpu_by_phase: Seconds of ``cpu_seconds`` by phase, such as 'trace' or 'controls'.
        mechanism_cpu_seconds: Seconds of ``cpu_seconds`` in the mechanism's own process:
            the code of the audit, its traces, and evidence that needs its code.
        printed: Text that the audit wrote to standard output and standard error.
        lacking: Number of calls that a limited budget such as ``quick`` left out.
        mechanism_at: Where the mechanism is defined; None outside the working folder.
        audit_at: Where the audit is defined; None outside the working folder.
        asked: Kinds of evidence that the audit requests; some may not apply.
        interrupted: Whether a person stopped the game before its last call.
        versions: Comparison of the mechanism with that of another revision; None if
            they were not compared.
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
    cpu_by_phase: dict[str, Seconds] = field(default_factory=dict)
    mechanism_cpu_seconds: Seconds = 0.0
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
        """The first evidence with the verdict of the audit.

        It is None if no evidence has this verdict. This is so for ERROR and SKIPPED,
        and for an INCONCLUSIVE audit if a control survived or two kinds of evidence
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
        """True if the mechanism's process computed all evidence with the verdict.

        It is False if no evidence has the verdict.
        """
        supporting = self._supporting
        return bool(supporting) and all(each.self_reported for each in supporting)

    @property
    def game(self) -> Evidence | None:
        """The evidence of the game, or None if none was played."""
        return next((each for each in self.evidence if each.known.opposes), None)

    @property
    def game_details(self) -> GameDetails | None:
        """The details of the game, or None if none was played.

        Evidence of support has such details as well, of a game about last bits alone.
        """
        return next(details(filter(None, [self.game]), GameDetails), None)

    @property
    def power(self) -> float | None:
        """The smallest loss that the game would have refuted nine times in ten.

        It is a multiple of the claim, and infinite if the game would refute no loss of
        a known size, for example because both inputs of every pair have equal outputs.
        It is None if no game was played, if the verdict is not NOT_REFUTED, or if the
        claim has no parameter ε, μ or ρ above 0.
        """
        if self.verdict is not Verdict.NOT_REFUTED or self.claim is None:
            return None
        claimed = getattr(self.claim, self.claim.parameter, None)
        game = self.game_details
        if game is None or game.detectable_epsilon is None or not claimed:
            return None
        # No loss is detectable in equal outputs, whatever the calls are.
        if game.same_outputs:
            return math.inf
        return float(game.detectable_epsilon) / float(claimed)

    @property
    def has_same_outputs(self) -> bool:
        """True if both inputs of every pair gave equal outputs, which hides a loss."""
        return any(game.same_outputs for game in self._games)

    @property
    def notices(self) -> list[str]:
        """Sentences of the games on the calls of the mechanism, each once."""
        texts = chain.from_iterable(game.notices for game in self._games)
        return list(dict.fromkeys(texts))

    @property
    def recorded(self) -> list[Confirmation]:
        """The confirmations, by single calls, whose outputs were recorded.

        Outputs are recorded if the mechanism draws its own randomness, since no seed
        can repeat its calls.
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
        """The verdict of the declared fault, or None if no fault is declared."""
        return DECLARABLE.get(self.expected)

    @property
    def as_expected(self) -> bool:
        """True if the audit ended and its verdict agrees with its declaration.

        With a declared fault, the verdict is that of the fault; without one, the
        verdict is no refutation. In both cases every control was refuted.
        """
        if self.verdict in (Verdict.ERROR, Verdict.SKIPPED) or self.surviving_controls:
            return False
        if self.declared is not None:
            return self.verdict is self.declared
        return self.verdict not in REFUTATIONS

    @property
    def refuting(self) -> list[Evidence]:
        """Evidence that refuted the claim or its calibration, and was overruled.

        The refutation was not confirmed, a proof contradicts it, or a control survived.
        The list is empty if the verdict is VIOLATED. If it is MISCALIBRATED, the list
        has only refutations of the claim that were not confirmed.
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
        """True if ``refuting`` has a refutation that the audit does not declare."""
        # A refuted claim whose refutation was not confirmed has another verdict.
        dropped = {Verdict.VIOLATED for each in self.refuting if each.unconfirmed}
        dropped |= {each.verdict for each in self.refuting if not each.unconfirmed}
        return bool(dropped - {self.declared})

    @property
    def contradiction(self) -> str:
        """Phrase for the first contradiction between fields; empty without one."""
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
        """True if the calls that a limited budget left out may decide the audit.

        The audit missed its declared refutation, or it did not refute a control and
        only evidence that improves with more calls missed it. If a violation is
        declared, a refuted calibration alone is undecided, since a violation outranks
        it. A proved claim and an undeclared refutation are decided.
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
        a control. An undecided audit is no finding (``is_undecided``).
        """
        ended = self.verdict not in (Verdict.ERROR, Verdict.SKIPPED)
        return ended and not self.as_expected and not self.is_undecided

    @property
    def needs_a_look(self) -> bool:
        """True if the result is a finding, an unconfirmed refutation, or an ERROR."""
        return self.is_finding or self.is_unconfirmed or self.verdict is Verdict.ERROR

    @property
    def history(self) -> list[tuple[int, float]]:
        """Pairs (number of calls, certified lower bound) of the game.

        There is a pair for each rise of the bound. All of these bounds hold together
        with the audit's confidence, so a game may be stopped at any of them. The list
        is empty without a game, for a claim without a parameter, and if a finding was
        not confirmed.
        """
        return list(self.game_details.bound_path if self.game_details else ())

    def to_dict(self) -> dict[str, Any]:
        """Return the result as JSON data, with infinities as "inf" and "-inf"."""
        # JSON has no infinities, so the mode decides how they are written.
        content: dict[str, Any] = RESULT.dump_python(self, mode="json")
        return content

    def plot(self, axes: Axes | None = None) -> Axes:
        """Draw the bounds and the claim, and return the axes.

        Args:
            axes: The axes to draw on; new ones of Matplotlib by default.
        """
        drawn: Axes = _drawn("html.notebook:plot_interval", self, axes)
        return drawn

    def plot_history(self, axes: Axes | None = None) -> Axes:
        """Draw the lower bound over the calls, with the claim, and return the axes.

        Args:
            axes: The axes to draw on; new ones of Matplotlib by default.

        Raises:
            ConfigurationError: If ``history`` is empty, as for an audit by canaries or
                of an accountant's curve.
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
    """Types of the arguments in ``RunRecord.arguments`` that commands read.

    Other arguments are allowed and not checked.
    """

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
    """The record of a run, from which every report is made.

    Attributes:
        root_seed: The seed of all random streams.
        status: 'complete', 'interrupted', 'running' (also if the process was killed),
            or a shard such as 'shard 2 of 8'.
        arguments: Options of the command, such as the budget.
        versions: Versions of Python, auditdp and libraries, by name.
        revision: The commit, and a digest of the code.
        device: The operating system and the processor.
        alpha_ledger: Shares of alpha, assigned before the run. Every planned audit has
            one.
        results: The results. A file that could not be imported has an ERROR.
        schema: Version of the JSON schema.
        seconds: Duration of the run.
        started: Start of the run in ISO 8601 with its time zone; empty if not recorded.
        project: Name of the project; empty if it has none.
        author: Person who answers for the record; empty if none is named.
        finished: Time of the last line of the log, in the format of ``started``; empty
            if not recorded.
        run: Random name of the run, which every line of its log has.
        sandbox: Restrictions of the processes of audits; empty if an earlier version
            wrote the record.
        sources: SHA-256 of each file below the working folder that was imported to
            collect the audits, by its path.
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
        """Number of results and of planned audits without a result."""
        return len(self.results) + len(self.missing)

    def ended(self, verdict: Verdict) -> int:
        """Return the number of audits that ended with this verdict."""
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
        """Phrase for the first contradiction between fields; empty without one."""
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
        """Return the record from parsed JSON.

        Raises:
            ValueError: If ``content`` is not such a record, or contradicts itself.
        """
        return _consistent(_RECORD.validate_python(content))


_RECORD: TypeAdapter[RunRecord] = TypeAdapter(RunRecord)
RESULT: TypeAdapter[AuditResult] = TypeAdapter(AuditResult)


def result_of(content: Any) -> AuditResult:
    """Return the result of one audit from parsed JSON, such as that in a line of a log.

    Raises:
        ValueError: If the data is no result, or contradicts itself.
    """
    return _consistent(RESULT.validate_python(content))


Checked = TypeVar("Checked", RunRecord, AuditResult)


def _consistent(value: Checked) -> Checked:
    if value.contradiction:
        raise ValueError(f"it contradicts itself: {value.contradiction}")
    return value
