"""Typed records of the numbers behind each kind of evidence, for logs and JSON reports.

A field that is None is left out of JSON unless ``always`` names it. A record keeps
unknown fields in ``more`` and writes them as they were read: an audit's ``figure`` adds
such fields, and another version of auditdp may have written some.

A new kind of evidence is a function in a file of its own and an entry of ``KINDS``,
from which the JSON schema, reports, verdicts and the shares of alpha follow.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Collection, Iterator, Mapping
from dataclasses import field
from enum import Enum
from typing import TYPE_CHECKING, Any, ClassVar, Union

from pydantic import AliasChoices, Field, TypeAdapter
from pydantic.dataclasses import dataclass
from pydantic.json_schema import SkipJsonSchema

from auditdp.record.json_fields import (
    Count,
    Curve,
    Number,
    Path,
    Plain,
    Probability,
    Row,
    Share,
    Whole,
)
from auditdp.record.traces import GameTrace


@dataclass(frozen=True, kw_only=True, config={"extra": "forbid"})
class Series(Row):
    """The points of one colour of a scatter plot."""

    name: str = ""
    points: list[tuple[Whole | Number, Whole | Number]] = field(default_factory=list)


@dataclass(frozen=True, kw_only=True, config={"extra": "forbid"})
class Scatter(Row):
    """A scatter plot: its series, the names of its axes, whether both are logarithmic, and whether equality is drawn."""

    x_label: str = ""
    y_label: str = ""
    series: list[Series] = field(default_factory=list)
    diagonal: bool | None = None
    log: bool | None = None


@dataclass(frozen=True, kw_only=True)
class Details(Row):
    """Fields that the details of any kind of evidence may have."""

    scatter: Scatter | None = None
    """A plot that the audit's ``figure`` makes."""
    more: SkipJsonSchema[Plain] = field(default_factory=dict)
    """Fields that this version does not know, by their key."""

    def written(self, fields: dict[str, Any]) -> dict[str, Any]:
        """Return the JSON object, with the plot and unknown fields last."""
        scatter = fields.pop("scatter")
        more: dict[str, Any] = fields.pop("more")
        return super().written(fields | {"scatter": scatter}) | more

    def values(self) -> Iterator[tuple[str, Any]]:
        """Yield (key, value) of the fields with a value, and of unknown fields."""
        for name, value in vars(self).items():
            if value is not None and name not in ("scatter", "more"):
                yield name, value
        yield from self.more.items()


@dataclass(frozen=True, kw_only=True)
class ForecasterWealth(Row):
    """A forecaster and the natural logarithm of its wealth."""

    name: str
    log_wealth: Number


@dataclass(frozen=True, kw_only=True)
class PlayedPair(Row):
    """A pair, the number of its calls, and the growth of the wealth per call, in nats."""

    pair: str
    calls: Count
    growth: Number | None = None


@dataclass(frozen=True, kw_only=True)
class Part(Row):
    """The number of runs and the log wealth of a game when it stopped or continued."""

    calls: Count
    log_e_value: Number


@dataclass(frozen=True, kw_only=True)
class Confirmation(Row):
    """The outcome of a confirmation on fresh randomness."""

    pair: str = ""
    calls: Count
    """Calls, one by one, but for those ``together``."""
    log_e_value: Number
    alpha: Probability
    """Error probability of the confirmation."""
    confirmed: bool
    """True if the wealth reached 1/alpha."""
    forecaster: str = ""
    """Who won most."""
    bets: Count = 0
    """Guesses of the best forecaster which input was used."""
    right: Count = 0
    """Number of bets on the input that was used."""
    outputs: Plain | None = None
    """The outputs, compressed, where the mechanism draws its own randomness."""


@dataclass(frozen=True, kw_only=True)
class GameDetails(Details):
    """A game of bets."""

    wealth_path: Path = field(default_factory=list)
    """Natural logarithm of the wealth after a number of calls."""
    bound_path: Path = field(default_factory=list)
    """Lower bound after a number of calls, wherever it rose; empty if a finding was not
    confirmed."""
    threshold: Number | None = None
    """Logarithm of the wealth that refutes the claim."""
    refuted_at: Count | None = None
    """Calls until the claim was refuted."""
    forecasters: list[ForecasterWealth] = field(default_factory=list)
    """Those that won most."""
    forecasters_played: Count | None = None
    pairs: list[PlayedPair] = field(default_factory=list)
    confirmation: Confirmation | None = None
    notices: list[str] = field(default_factory=list)
    """Notices about the calls."""
    search_calls: Count | None = None
    independence_calls: Count | None = None
    calls_to_find: str | None = None
    """Phrase for the calls that find the requested fault."""
    calls_lacking: int | None = None
    """Number of these calls that exceed a limited budget."""
    parts: list[Part] = field(default_factory=list)
    went_on: str | None = None
    """The parts but the last, in words."""
    detectable_epsilon: Number | None = None
    """The smallest level that the calls would have refuted nine times in ten."""
    detectable_alternative: str | None = None
    """Phrase for the mechanism with that loss."""
    detectable_rarely: tuple[Share, Share] | None = None
    """Probabilities of two rare leaks that the game would have found: a loss of twice the
    level, and an output of one input alone."""
    smallest: Confirmation | None = None
    """The confirmation on the smallest pair."""
    together: Confirmation | None = None
    """Outcome of fresh calls with several outputs, if single calls did not confirm a
    finding."""
    same_outputs: Count | None = None
    """Number of calls with equal outputs on both inputs of every pair, with the same
    randomness; None if some differed."""
    trace: GameTrace | None = None
    """The trace of the code before the game; None without a trace."""
    always: ClassVar[Collection[str]] = ("refuted_at", "confirmation")


@dataclass(frozen=True, kw_only=True)
class ExactDetails(Details):
    """Laws that are compared exactly."""

    exact_epsilon: Number | None = None
    """A double that is at most the exact pure ε of the worst pair, where it is attained."""
    claim_curve: Curve = field(default_factory=list)
    """δ(ε) of the claim."""
    curve: Curve | None = None
    """δ(ε) of the worst pair."""
    worst_pair: str | None = None
    """The compared pair with the largest loss."""
    loss_computed_from: str | None = None
    """Phrase for the computation of that loss."""
    scope: str | None = None
    """Phrase for the covered pairs."""
    pairs_enumerated: Count | None = None
    """Number of enumerated pairs."""
    given_sensitivity: Number | None = None
    """The declared sensitivity, where the bound is given that and not all pairs."""


@dataclass(frozen=True, kw_only=True)
class AccountantAnswer(Row):
    """The answer of an accountant.

    ``epsilon`` is None if the accountant raised; ``finding`` is empty if its number
    counts.
    """

    name: str
    soundness: str
    epsilon: Number | None = None
    adjacency: str
    sampling: str
    source: str
    finding: str = ""
    always: ClassVar[Collection[str]] = ("epsilon",)


@dataclass(frozen=True, kw_only=True)
class AccountingDetails(Details):
    """Accountants that are compared."""

    claimed_epsilon: Number | None = None
    about: str | None = None
    delta: Number | None = None
    accountants: list[AccountantAnswer] = field(default_factory=list)
    findings: list[str] = field(default_factory=list)


@dataclass(frozen=True, kw_only=True)
class OneRunDetails(Details):
    """Canaries that were guessed: how many in how many trainings, by which test, and its p-value."""

    canaries: Count | None = None
    trainings: Count | None = None
    method: str | None = None
    p_value: Number | None = None
    assumed_lower: Number | None = None
    """A lower bound that holds if scores are independent and Gaussian; none where residuals speak against that."""
    assumption_p_value: Number | None = None
    """p-value of a test of that assumption."""
    assumption_power: Number | None = None
    """Probability that this test detects Student's t with ten degrees of freedom."""
    always: ClassVar[Collection[str]] = ("p_value",)


@dataclass(frozen=True, kw_only=True)
class UpperBound(Row):
    """No set of outputs has P(S) > e^epsilon Q(S) + delta."""

    delta: Number
    epsilon: Number


@dataclass(frozen=True, kw_only=True)
class CountingDetails(Details):
    """Outputs that were counted."""

    runs_per_input: Count | None = None
    confidence: Number | None = None
    """Confidence of all statements together."""
    scope: str | None = None
    """Phrase for the counted pairs; None if outputs are too many to be counted, as the
    next four fields."""
    outputs: Count | None = None
    upper_bounds: list[UpperBound] | None = None
    """Bounds that hold together."""
    delta_upper: Number | None = None
    """δ of the upper bound."""
    delta_at_claim: Number | None = None
    """Upper bound on δ at the claimed ε, for a claim with δ > 0."""
    counted_pairs: list[str] | None = None
    """The pairs, where they are not too many to name."""
    law_distance: Number | None = None
    """Upper bound on the distance of the code from its stated law."""
    law_distance_is: str | None = None
    """Name of that distance."""
    followed: str | None = None
    """That distance in words, where the law is not refuted."""
    event_at_least: Number | None = None
    """Lower bound on the probability of some outputs on one input of a pair, with an error
    of its own: 1 - ``confidence``."""
    event_at_most: Number | None = None
    """Upper bound on their probability on the other input."""
    always: ClassVar[Collection[str]] = ("delta_at_claim",)

    def written(self, fields: dict[str, Any]) -> dict[str, Any]:
        """Return the JSON object, without δ at the claim if no outputs were counted."""
        if self.delta_upper is None:
            del fields["delta_at_claim"]
        return super().written(fields)


@dataclass(frozen=True, kw_only=True)
class SensitivityDetails(Details):
    """Queries that were compared on neighbours."""

    scope: str | None = None
    sensitivity: Number | None = None
    norm: str | None = None
    largest_difference: Number | None = None
    """The sensitivity that the worst pair needs."""
    worst_pair: str | None = None
    pairs_compared: Count | None = None
    exhaustive: bool | None = None
    """True if all neighbours were compared, and the query draws nothing."""


@dataclass(frozen=True, kw_only=True)
class ClassOfInputs(Row):
    """Estimates of one class of inputs, of all of them together and of the one that is furthest off."""

    keys: ClassVar[Mapping[str, str]] = {"name": "class"}
    name: str = Field(
        validation_alias=AliasChoices("class", "name"), serialization_alias="class"
    )
    """The class, 'class' in JSON."""
    n: Count
    """Calls."""
    truth: Number
    """Mean of the true values."""
    mean: Number
    low: Number
    """Lower end of the interval of the mean."""
    high: Number
    variance: Number
    variance_low: Number
    variance_high: Number
    variance_bound: Number | None = None
    largest_bias: Number = 0.0
    """Largest bias of one input."""
    largest_variance: Number = 0.0
    """Largest variance of one input."""
    always: ClassVar[Collection[str]] = ("variance_bound",)


@dataclass(frozen=True, kw_only=True)
class EstimationDetails(Details):
    """Estimates by class of inputs, and how far an expectation may be off and still count as equivalent."""

    classes: list[ClassOfInputs] = field(default_factory=list)
    margin: Number | None = None
    always: ClassVar[Collection[str]] = ("margin",)


class Subject(Enum):
    """Objects of the kinds of evidence."""

    CODE = "the outputs of the code"
    PLAYED = (
        "the outputs of the code on the tested inputs, compared with the stated law"
    )
    LAW = "the law that the mechanism states"
    MODEL = "the model that its parameters describe, given its sensitivity"
    CALIBRATION = "the sensitivity that its noise is calibrated to"
    ESTIMATES = "what is promised of its estimates"


@dataclasses.dataclass(frozen=True)
class EvidenceKind:
    """Properties of a kind of evidence that the other rooms need."""

    gatherer: str
    """Address of its function, such as ``package.module:function``.

    The function takes an ``EvidenceRequest`` and an error probability.
    """
    record: type[Details]
    """Type of its details."""
    title: str
    """Name in reports."""
    about: str
    """Description of its object in one line."""
    subject: Subject = Subject.CODE
    """Its object.

    Only evidence about the code itself, or its calibration, refutes a proved claim.
    """
    usual: bool = True
    """True if an audit that names no kinds gathers it if it applies."""
    sampled: bool = False
    """True if it errs with a probability, so that it has a share of alpha.

    Such evidence detects smaller losses with more calls.
    """
    any_claim: bool = True
    """True if it applies to claims of any curve, and not to ε, δ and μ alone."""
    by_data: bool = False
    """True if the drawn outputs decide whether it is gathered."""
    sees_noise: bool = True
    """True if it depends on the size of the noise, and has to refute every control."""
    opposes: bool = False
    """True if its lower bound is compared with the upper bounds of other evidence."""

    @property
    def proves(self) -> bool:
        """True if its statements on a law or a model are proved, not sampled."""
        return self.subject in (Subject.LAW, Subject.MODEL)


_EVIDENCE = "auditdp.evidence"
KINDS = {
    "exact": EvidenceKind(
        f"{_EVIDENCE}.exact:gathered",
        ExactDetails,
        "Exact",
        "the law of the output, enumerated or bounded",
        Subject.LAW,
        any_claim=False,
    ),
    "accounting": EvidenceKind(
        f"{_EVIDENCE}.accounting:gathered",
        AccountingDetails,
        "Accounting",
        "the claim, recomputed by independent accountants",
        Subject.MODEL,
    ),
    "game": EvidenceKind(
        f"{_EVIDENCE}.game_evidence:gathered",
        GameDetails,
        "Game",
        "bets on which of two neighbours produced the output",
        sampled=True,
        opposes=True,
    ),
    "counting": EvidenceKind(
        f"{_EVIDENCE}.counting:gathered",
        CountingDetails,
        "Counting",
        "how often each output occurred on the tested inputs, which bounds their loss from above",
        Subject.PLAYED,
        any_claim=False,
        by_data=True,
    ),
    "one_run": EvidenceKind(
        f"{_EVIDENCE}.one_run_evidence:gathered",
        OneRunDetails,
        "One run",
        "many canaries in one execution",
        usual=False,
        sampled=True,
    ),
    "support": EvidenceKind(
        f"{_EVIDENCE}.output_support:gathered",
        GameDetails,
        "Support",
        "whether the last bits of floating-point outputs reveal the input",
        usual=False,
        sampled=True,
        sees_noise=False,
    ),
    "sensitivity": EvidenceKind(
        f"{_EVIDENCE}.sensitivity:gathered",
        SensitivityDetails,
        "Sensitivity",
        "the values before the noise, on two neighbours",
        Subject.CALIBRATION,
        sees_noise=False,
    ),
    "estimation": EvidenceKind(
        f"{_EVIDENCE}.estimation:gathered",
        EstimationDetails,
        "Estimation",
        "what is promised about the estimates",
        Subject.ESTIMATES,
        usual=False,
        any_claim=False,
    ),
}
"""Kinds of evidence by name, in order of gathering; of equal verdicts the first leads."""

if TYPE_CHECKING:
    AnyDetails = Details
else:
    AnyDetails = Union[  # noqa: UP007
        tuple(dict.fromkeys([*(kind.record for kind in KINDS.values()), Details]))
    ]


def kind_of(name: str) -> EvidenceKind:
    """Return a kind of evidence; one of another version of auditdp has defaults."""
    title = name.replace("_", " ").capitalize()
    return KINDS.get(name) or EvidenceKind("", Details, title, "")


def details_of(kind: str, given: Any) -> AnyDetails:
    """Return the details of a kind of evidence, from themselves or from JSON data.

    Raises:
        ValueError: If they are those of another kind, or a value is of another type (a
            pydantic.ValidationError).
    """
    record = kind_of(kind).record
    if isinstance(given, record):
        return given
    where = f"evidence of kind {kind!r}: expected details"
    if isinstance(given, Details):
        raise ValueError(f"{where}={record.__name__}, got {type(given).__name__}")
    if not isinstance(given, Mapping):
        raise ValueError(f"{where} as a mapping, got {given!r:.80}")
    names = {place.name for place in dataclasses.fields(record)} - {"more"}
    fields: dict[str, Any] = {}
    more: dict[str, Any] = {}
    # A field of another version is kept, and not an error.
    for name, value in given.items():
        if name in names:
            fields[name] = value
        else:
            more[str(name)] = value
    return TypeAdapter(record).validate_python({**fields, "more": more})
