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
    """A scatter plot: its series and its axes."""

    x_label: str = ""
    y_label: str = ""
    series: list[Series] = field(default_factory=list)
    diagonal: bool | None = None
    """True if the line y = x is drawn."""
    log: bool | None = None
    """True if both axes are logarithmic."""


@dataclass(frozen=True, kw_only=True)
class Details(Row):
    """The base of the details of each kind of evidence."""

    scatter: Scatter | None = None
    """A plot that the audit's ``figure`` made; None without one."""
    more: SkipJsonSchema[Plain] = field(default_factory=dict)
    """Other fields by their key: numbers of the audit's ``figure``, and fields that
    this version does not know."""

    def written(self, fields: dict[str, Any]) -> dict[str, Any]:
        """Return the JSON object, with the plot and unknown fields last."""
        scatter = fields.pop("scatter")
        more: dict[str, Any] = fields.pop("more")
        return super().written(fields | {"scatter": scatter}) | more

    def values(self) -> Iterator[tuple[str, Any]]:
        """Yield (name, value) of each field that is not None, then of ``more``.

        The plot is left out.
        """
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
    """A pair of a game, and the number of its calls."""

    pair: str
    calls: Count
    growth: Number | None = None
    """Recent gain in log wealth of the pair's best forecaster, divided by the number of
    calls of the pair, in nats; -inf before its first batch of calls."""


@dataclass(frozen=True, kw_only=True)
class Part(Row):
    """The end of one part of a game; a game that was continued has several parts."""

    calls: Count
    """Number of runs from the start of the game to this end."""
    log_e_value: Number
    """Natural logarithm of the wealth at this end."""


@dataclass(frozen=True, kw_only=True)
class Confirmation(Row):
    """The outcome of a confirmation: a game on one pair, with fresh randomness."""

    pair: str = ""
    calls: Count
    """Number of calls. They are made one by one, except in ``GameDetails.together``."""
    log_e_value: Number
    """Natural logarithm of the wealth at the end."""
    alpha: Probability
    """Error probability of the confirmation."""
    confirmed: bool
    """True if the wealth reached 1/alpha."""
    forecaster: str = ""
    """Name of the forecaster with the largest wealth."""
    bets: Count = 0
    """Number of calls in which this forecaster was surer of an input than the claim
    allows."""
    right: Count = 0
    """Number of the calls in ``bets`` whose input was the one that the forecaster was
    sure of."""
    outputs: Plain | None = None
    """The compressed outputs; None unless the mechanism draws its own randomness."""


@dataclass(frozen=True, kw_only=True)
class GameDetails(Details):
    """Numbers of a game, in which forecasters bet on the input of each call."""

    wealth_path: Path = field(default_factory=list)
    """Pairs (number of calls, natural logarithm of the wealth after them)."""
    bound_path: Path = field(default_factory=list)
    """Pairs (number of calls, lower bound on the claim's parameter after them), one for
    each rise of the bound; empty if the claim has no parameter, or a finding was not
    confirmed."""
    threshold: Number | None = None
    """Natural logarithm of the wealth that refutes the claim."""
    refuted_at: Count | None = None
    """Number of calls until the claim was refuted; None if it was not."""
    forecasters: list[ForecasterWealth] = field(default_factory=list)
    """The forecasters with the largest wealth, by falling wealth."""
    forecasters_played: Count | None = None
    """Number of all forecasters."""
    pairs: list[PlayedPair] = field(default_factory=list)
    confirmation: Confirmation | None = None
    """The confirmation of a refutation, with single calls; None if the game did not
    refute the claim."""
    notices: list[str] = field(default_factory=list)
    """Sentences on the calls, for example if all outputs were the same."""
    search_calls: Count | None = None
    """Number of runs of the search for pairs."""
    independence_calls: Count | None = None
    """Number of runs that checked whether calls are independent."""
    calls_to_find: str | None = None
    """Phrase for the number of calls that find the requested fault; None if none is
    requested."""
    calls_lacking: int | None = None
    """Number of calls by which a limited budget is too small to find the requested
    fault; None if it suffices."""
    parts: list[Part] = field(default_factory=list)
    went_on: str | None = None
    """Phrase for all parts before the last one; None if the game has one part."""
    detectable_epsilon: Number | None = None
    """The smallest value of the claim's parameter (ε, μ or ρ) that the calls would have
    refuted nine times in ten; infinite if they would have refuted none of the tried
    values. None unless the verdict of the game is NOT_REFUTED."""
    detectable_alternative: str | None = None
    """Phrase for a mechanism whose loss is ``detectable_epsilon``."""
    detectable_rarely: tuple[Share, Share] | None = None
    """Probabilities of two rare leaks that the game would have found nine times in ten:
    outputs that lose twice the claim, and an output that only one input gives. None
    unless the claim has δ = 0 and the verdict of the game is NOT_REFUTED."""
    smallest: Confirmation | None = None
    """The confirmation of the same finding on a smaller pair; None without one."""
    together: Confirmation | None = None
    """Outcome of fresh calls with several outputs, after single calls did not confirm a
    finding; otherwise None."""
    same_outputs: Count | None = None
    """Number of calls per input, if both inputs of each pair gave equal outputs for
    equal randomness; None if some outputs differed, or if this was not tested."""
    trace: GameTrace | None = None
    """The trace of the code before the game; None without a trace."""
    always: ClassVar[Collection[str]] = ("refuted_at", "confirmation")


@dataclass(frozen=True, kw_only=True)
class ExactDetails(Details):
    """Numbers of an exact comparison of the laws that the mechanism states."""

    exact_epsilon: Number | None = None
    """The exact pure ε of the worst pair, rounded down to a double. None for a law
    before post-processing, which only bounds the loss; and for Gaussian laws, unless
    the claim is pure."""
    claim_curve: Curve = field(default_factory=list)
    """Points (ε, δ(ε)) of the claim."""
    curve: Curve | None = None
    """Points (ε, δ(ε)) of the worst pair. None without a closed form, and for a law
    before post-processing."""
    worst_pair: str | None = None
    """The pair with the largest loss; if pairs break the claim, the worst of them."""
    loss_computed_from: str | None = None
    """Phrase for the quantities from which the loss of the worst pair is computed."""
    scope: str | None = None
    """Phrase for the pairs to which the evidence applies."""
    pairs_enumerated: Count | None = None
    """Number of listed pairs whose laws were compared; None if an envelope or a noise
    model bounds the loss of all pairs."""
    given_sensitivity: Number | None = None
    """The declared sensitivity, if the bound on all pairs follows from it; None if the
    pairs themselves were compared."""


@dataclass(frozen=True, kw_only=True)
class AccountantAnswer(Row):
    """The ε that an accountant computed, and the model for which it holds."""

    name: str
    soundness: str
    epsilon: Number | None = None
    """The computed ε; None if the accountant raised."""
    adjacency: str
    sampling: str
    source: str
    finding: str = ""
    """Why the number does not count, or is missing; empty if it counts."""
    always: ClassVar[Collection[str]] = ("epsilon",)


@dataclass(frozen=True, kw_only=True)
class AccountingDetails(Details):
    """Answers of several accountants to one claim, compared with each other."""

    claimed_epsilon: Number | None = None
    about: str | None = None
    delta: Number | None = None
    accountants: list[AccountantAnswer] = field(default_factory=list)
    findings: list[str] = field(default_factory=list)


@dataclass(frozen=True, kw_only=True)
class OneRunDetails(Details):
    """Numbers of a test that guesses which canaries were in the training data."""

    canaries: Count | None = None
    """Number of canaries in each training."""
    trainings: Count | None = None
    method: str | None = None
    """Name of the test."""
    p_value: Number | None = None
    assumed_lower: Number | None = None
    """Lower bound on the claim's parameter that holds if scores are independent and
    Gaussian; None if a test rejected this assumption, or without such a bound."""
    assumption_p_value: Number | None = None
    """p-value of the test of the assumption behind ``assumed_lower``."""
    assumption_power: Number | None = None
    """Probability that the test rejects scores that have Student's t distribution with
    ten degrees of freedom."""
    always: ClassVar[Collection[str]] = ("p_value",)


@dataclass(frozen=True, kw_only=True)
class UpperBound(Row):
    """An upper bound on a loss: every set S has P(S) <= e^epsilon Q(S) + delta."""

    delta: Number
    epsilon: Number


@dataclass(frozen=True, kw_only=True)
class CountingDetails(Details):
    """Numbers of evidence that counts outputs.

    If outputs are too many to be counted, or if the claim is Gaussian, the loss is not
    bounded. Then all fields are None except ``runs_per_input``, ``confidence``, and
    those on the distance from the stated law.
    """

    runs_per_input: Count | None = None
    confidence: Number | None = None
    """Confidence of all statements together, except for the event."""
    scope: str | None = None
    """Phrase for the counted pairs."""
    outputs: Count | None = None
    """Number of different outputs."""
    upper_bounds: list[UpperBound] | None = None
    """Upper bounds on the loss of every counted pair; all of them hold together."""
    delta_upper: Number | None = None
    """δ of the reported upper bound on ε."""
    delta_at_claim: Number | None = None
    """Upper bound on δ at the claimed ε, for a claim with δ > 0."""
    counted_pairs: list[str] | None = None
    """The counted pairs; None if they are more than 64."""
    law_distance: Number | None = None
    """Upper bound on the distance between the law of the outputs and the stated law;
    None if no stated law was compared."""
    law_distance_is: str | None = None
    """Name of the distance in ``law_distance``."""
    followed: str | None = None
    """Sentence on ``law_distance``; None if no stated law was compared, or if it was
    refuted."""
    event_at_least: Number | None = None
    """Lower bound on the probability of an event, a set of outputs, on one input of a
    pair; None without an event. This bound and the next one both hold with probability
    ``confidence``."""
    event_at_most: Number | None = None
    """Upper bound on the probability of the event on the other input of the pair."""
    always: ClassVar[Collection[str]] = ("delta_at_claim",)

    def written(self, fields: dict[str, Any]) -> dict[str, Any]:
        """Return the JSON object, without δ at the claim if the loss is not bounded."""
        if self.delta_upper is None:
            del fields["delta_at_claim"]
        return super().written(fields)


@dataclass(frozen=True, kw_only=True)
class SensitivityDetails(Details):
    """Numbers of a comparison of the values before the noise, on neighbours."""

    scope: str | None = None
    """Phrase for the compared pairs."""
    sensitivity: Number | None = None
    """The declared sensitivity."""
    norm: str | None = None
    largest_difference: Number | None = None
    """Norm of the difference of the query on the worst pair."""
    worst_pair: str | None = None
    pairs_compared: Count | None = None
    exhaustive: bool | None = None
    """True if all neighbours were compared, and the query draws no randomness."""


@dataclass(frozen=True, kw_only=True)
class ClassOfInputs(Row):
    """Statistics of the estimates for one class of inputs.

    They are over all calls on all inputs of the class, except the largest bias and the
    largest variance. Intervals are Student's, and no verdict rests on them.
    """

    keys: ClassVar[Mapping[str, str]] = {"name": "class"}
    name: str = Field(
        validation_alias=AliasChoices("class", "name"), serialization_alias="class"
    )
    """Name of the class. Its key in JSON is 'class'."""
    n: Count
    """Number of estimates."""
    truth: Number
    """Mean of the true values."""
    mean: Number
    """Mean of the estimates."""
    low: Number
    """Lower end of the interval for the mean."""
    high: Number
    """Upper end of the interval for the mean."""
    variance: Number
    """Variance of the estimates on one input, averaged over the inputs."""
    variance_low: Number
    """Lower end of the interval for the variance."""
    variance_high: Number
    """Upper end of the interval for the variance."""
    variance_bound: Number | None = None
    """Promised bound on the variance; None if none is promised."""
    largest_bias: Number = 0.0
    """Bias, with its sign, on the input with the largest absolute bias."""
    largest_variance: Number = 0.0
    """Variance on the input with the largest variance."""
    always: ClassVar[Collection[str]] = ("variance_bound",)


@dataclass(frozen=True, kw_only=True)
class EstimationDetails(Details):
    """Statistics of estimates, for each class of inputs."""

    classes: list[ClassOfInputs] = field(default_factory=list)
    margin: Number | None = None
    """Largest bias that still counts as unbiased; None if no such margin is stated."""
    always: ClassVar[Collection[str]] = ("margin",)


class Subject(Enum):
    """The object about which a kind of evidence makes its statements."""

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
    """A kind of evidence: the function that gathers it, and its properties."""

    gatherer: str
    """Address of the function, such as ``package.module:function``.

    The function takes an ``EvidenceRequest`` and an error probability. It returns
    ``Evidence``, or None if the kind does not apply.
    """
    record: type[Details]
    """Type of the details of such evidence."""
    title: str
    """Name in reports."""
    about: str
    """Description in reports, a phrase such as 'many canaries in one execution'."""
    subject: Subject = Subject.CODE
    """The object of the evidence.

    If the law is certified, evidence that refutes the model alone does not refute the
    claim (``auditdp.record.verdict``).
    """
    usual: bool = True
    """True if audits that name no kinds gather this kind where it applies."""
    sampled: bool = False
    """True if the evidence errs with a probability and always takes a share of alpha.

    Such evidence detects smaller losses with more calls.
    """
    any_claim: bool = True
    """True if the evidence also applies to claims that are a whole curve δ(ε)."""
    by_data: bool = False
    """True if the drawn outputs decide whether this kind applies, as for counting."""
    sees_noise: bool = True
    """True if the evidence depends on the size of the noise.

    Such evidence has to refute every control.
    """
    opposes: bool = False
    """True if its lower bound is compared with the upper bounds of other evidence."""

    @property
    def proves(self) -> bool:
        """True if the evidence proves statements about a law or a model."""
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
"""Kinds of evidence by name.

Their order is that of the evidence in a result. If several kinds have the verdict of an
audit, the first one leads.
"""

if TYPE_CHECKING:
    AnyDetails = Details
else:
    AnyDetails = Union[  # noqa: UP007
        tuple(dict.fromkeys([*(kind.record for kind in KINDS.values()), Details]))
    ]


def kind_of(name: str) -> EvidenceKind:
    """Return the kind of evidence with a name.

    An unknown name, as of another version of auditdp, has a kind with default
    properties.
    """
    title = name.replace("_", " ").capitalize()
    return KINDS.get(name) or EvidenceKind("", Details, title, "")


def details_of(kind: str, given: Any) -> AnyDetails:
    """Return the details of a kind of evidence.

    Args:
        kind: Name of the kind.
        given: Details of the type of that kind, which are returned as they are, or a
            mapping from JSON.

    Raises:
        ValueError: If ``given`` is neither, or a value in it is of a wrong type (a
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
