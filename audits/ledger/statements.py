"""Typed records of the statements of a paper, which audits refer to."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum

from auditdp.errors import ConfigurationError
from auditdp.record.results import Verdict


class Kind(StrEnum):
    """Whose claim a line is about."""

    PUBLISHED = "published"
    """The paper states it."""
    IMPLIED = "implied by its use"
    """The paper does not state it, and its experiments or figures rest on it."""
    AMBIGUOUS = "ambiguous reading"
    """The paper can be read so, and otherwise."""
    CODE = "published code"
    """The published code differs from the paper."""
    LIBRARY = "library"
    """A statement of another paper or of a library that the paper or its comparison rests on."""
    DERIVED = "derived here"
    """Nobody but this ledger claims it."""


class Fault(StrEnum):
    """The kind of fault of a false statement."""

    RESULT = ""
    """A guarantee or a result of the paper rests on it."""
    BEYOND = "out of range"
    """It fails for parameters only that the paper, as we read it, does not use."""
    SLIP = "slip"
    """It is wrong as printed, and the paper has it right elsewhere or nothing rests on it."""
    READ = "read in the code, not run"
    """Published code that was read has this fault, and nothing here runs it."""


@dataclass(frozen=True)
class Parameter:
    """A parameter of an audit, as a reader needs it.

    Attributes:
        letter: How it is written, such as 'ε₁'.
        meaning: What it is.
        paper: What the paper or its code has for it; empty where it has nothing like it.
        ascending: Whether audits of false claims try its values in ascending order, so that the value of a refuted one is
            the smallest that they found.
    """

    letter: str
    meaning: str
    paper: str = ""
    ascending: bool = False


@dataclass(frozen=True)
class Settled:
    """A statement that no audit is needed for: arithmetic or an experiment is about it, and a test repeats the figures.

    Attributes:
        verdict: VIOLATED where it is false, CERTIFIED where it is proved; INCONCLUSIVE where our experiment differs from the
            paper's, which is a question to the authors and no proof.
        found: Claimed and true value in one short line.
        why: The argument.
        test: The test that recomputes it, such as 'tests/unit/audits/test_counterexamples_dprr.py::test_memory'.
    """

    verdict: Verdict
    found: str
    why: str
    test: str

    @property
    def by(self) -> str:
        """The kind of evidence."""
        return "experiment" if self.verdict is Verdict.INCONCLUSIVE else "arithmetic"


@dataclass(frozen=True)
class Statement:
    """One statement of a paper, and the audits of it.

    Attributes:
        key: Short name, unique among all papers; the anchor of its card.
        title: A few words for a table.
        kind: Whose claim it is.
        claim: What is claimed, in our words, without a verdict.
        place: Theorem, equation, section or page.
        adjacency: Who is a neighbour, in one plain sentence; empty where the claim is not about privacy.
        audits: Ids of the audits that look at it.
        output: How an output in a counterexample is read, where it is not what the mechanism's user sees.
        scope: For which inputs and sizes the verdict is meant.
        proof: The argument that covers all sizes, or its place; empty where there is none.
        settled: Set where arithmetic or an experiment is about it, and no audit runs.
        unaudited: Why nothing looks at it; then it has neither audits nor ``settled``.
        fault: What it is worth where it is false.
        inputs: A pair of inputs, or the numbers, that show a false statement, where its audits do not print one.
        condition: The condition under which the finding holds, where the claim leaves it open; a part of the headline.
        setting: What else is known, such as at the paper's own parameters where the audit has others.
        instead: What holds instead of a false claim, and whether it is tight.
        cost: What that costs.
        reconsider: What would change our mind.
        question: A question to the authors, where an experiment does not decide the claim.
        parameters: Meanings that differ from those of the paper's list.
    """

    key: str
    title: str
    kind: Kind
    claim: str
    place: str
    adjacency: str = ""
    audits: tuple[str, ...] = ()
    output: str = ""
    scope: str = ""
    proof: str = ""
    settled: Settled | None = None
    unaudited: str = ""
    fault: Fault = Fault.RESULT
    inputs: str = ""
    condition: str = ""
    setting: str = ""
    instead: str = ""
    cost: str = ""
    reconsider: str = ""
    question: str = ""
    parameters: Mapping[str, Parameter] = field(default_factory=dict)

    def __post_init__(self) -> None:
        ways = [bool(self.audits), self.settled is not None, bool(self.unaudited)]
        if sum(ways) != 1:
            raise ConfigurationError(
                f"statement {self.key!r}: expected exactly one of audits, settled and unaudited, got {sum(ways)}; say "
                "how it is looked at, or why it is not"
            )
        if not all((self.key, self.title, self.claim, self.place)):
            raise ConfigurationError(
                f"statement {self.key!r}: expected a key, a title, a claim and a place"
            )


@dataclass(frozen=True)
class Paper:
    """A paper with all its statements on privacy, error and cost.

    Attributes:
        key: Short name, that of its page.
        title: Authors, title and version.
        read: What was read of it, and what is not certain of the text.
        statements: All of them, in the order of the paper.
        parameters: Meanings of the parameters of its audits, by name.
        answers: Whether its false published claims get a text that could be sent to its authors.
        work: What was read, as a letter to its authors calls it, such as 'talk'.
        values_of: Whose values of the parameters a card states.
    """

    key: str
    title: str
    read: str
    statements: Sequence[Statement]
    parameters: Mapping[str, Parameter] = field(default_factory=dict)
    answers: bool = True
    work: str = "paper"
    values_of: str = "paper"

    def meaning(self, statement: Statement, name: str) -> Parameter | None:
        """Return the meaning of a parameter of an audit; None if it is unknown."""
        return statement.parameters.get(name) or self.parameters.get(name)


def check(papers: Sequence[Paper]) -> None:
    """Check that keys are unique and that no audit stands under two statements.

    Raises:
        ConfigurationError: With the key or id that occurs twice.
    """
    for what, names in (
        ("key", [s.key for s in _all(papers)]),
        ("audit", [a for s in _all(papers) for a in s.audits]),
    ):
        twice = sorted({name for name in names if names.count(name) > 1})
        if twice:
            raise ConfigurationError(
                f"ledger: {what} {twice[0]!r} stands under two statements; give it to one of them"
            )


def _all(papers: Sequence[Paper]) -> Iterator[Statement]:
    for paper in papers:
        yield from paper.statements
