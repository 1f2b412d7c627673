"""The questions of ``auditdp account`` about a model, and their answers.

``family`` registers the command of a family of mechanisms, which runs ``answer``. An
answer is printed as text or JSON, and optionally drawn.
"""

from __future__ import annotations

import functools
import inspect
import io
import json
import math
import textwrap
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

import typer
from rich.console import Console
from rich.table import Table

from auditdp.accountants import (
    Accountant,
    AccountantReply,
    CrossCheck,
    Solution,
    Soundness,
    cross_check,
)
from auditdp.accountants.accountant import failure
from auditdp.accountants.calibration import DIGITS as DIGITS_SOLVED
from auditdp.accountants.cross_checks import reply
from auditdp.claims.statements import ApproxDP
from auditdp.cli.common import AnswerFormat, ExitCode, app, columns, tell
from auditdp.errors import ConfigurationError
from auditdp.record.json_fields import json_number
from auditdp.record.results import Verdict
from auditdp.report.formats import writable
from auditdp.report.numbers import MISSING, bound, number

SCHEMA = 1


DIGITS_SHOWN = 6
"""Significant digits of a number in a table."""


@dataclass(frozen=True)
class AccountAnswer:
    """The answers of all accountants to one question: ε at a δ, or δ at an ε."""

    asked: Literal["epsilon", "delta"]
    """The quantity that is computed."""
    given: float
    """The value of the other quantity, from the command line."""
    rows: Sequence[AccountantReply]
    """The answer of each accountant; ``value`` is the computed quantity."""
    upper: AccountantReply | None
    """The answer with the smallest proved upper bound; None if there is none."""
    lower: AccountantReply | None
    """The answer with the largest proved lower bound; None if there is none."""
    verdict: Verdict | None = None
    """The verdict on the claim; None without a claim."""
    reason: str = ""
    """A sentence with the reason of the verdict; empty without a claim."""

    @property
    def violated(self) -> bool:
        """True if the claim is refuted; False without a claim."""
        return self.verdict is Verdict.VIOLATED

    @property
    def answered(self) -> bool:
        """True if at least one accountant gave a number."""
        return any(not row.failed for row in self.rows)

    @property
    def findings(self) -> list[str]:
        """Sentences about faults of accountants, not of the mechanism."""
        return [f"{row.name}: {row.finding}" for row in self.rows if row.finding]

    @property
    def statement(self) -> str:
        """The result in one sentence."""
        letter, other = ("ε", "δ") if self.asked == "epsilon" else ("δ", "ε")
        upper, lower = self.upper, self.lower
        if upper is None or _number(upper) == math.inf:
            wording = f"No {letter} is proved at {other} = {number(self.given)}"
        else:
            pair = [bound(upper.value, up=True), number(self.given)]
            known = (
                "exact, by" if upper.soundness is Soundness.EXACT else "upper bound by"
            )
            wording = f"({', '.join(pair if self.asked == 'epsilon' else reversed(pair))})-DP: {known} {upper.name}"
        if (
            lower is None
            or not lower.value
            or (lower is upper and lower.value < math.inf)
        ):
            return wording
        return f"{wording}; {letter} not below {bound(lower.value, up=False)} by {lower.name}"


@dataclass(frozen=True)
class Solved:
    """The solution for the parameter that was left out."""

    option: str
    """The option of the parameter, without dashes."""
    larger_is_safer: bool
    """True if privacy grows with the parameter."""
    target_epsilon: float
    """The ε that was to be achieved."""
    solution: Solution
    """The value, and the accountant that proves it."""

    def sentence(self, delta: float) -> str:
        """Return the result in one sentence; ``delta`` is the δ of the target."""
        most = "smallest" if self.larger_is_safer else "largest"
        return (
            f"--{self.option} {self.solution.value:g} is the {most} of {DIGITS_SOLVED} digits that "
            f"{kind(self.solution.accountant.name)} proves to be ({number(self.target_epsilon)}, {number(delta)})-DP"
        )


def kind(name: str) -> str:
    """Return an accountant's name without its parameters."""
    return name.partition("(")[0]


def at_delta(
    accountants: Sequence[Accountant], delta: float, claim: float | None
) -> AccountAnswer:
    """Return every accountant's ε at δ, and the verdict on a claimed ε.

    ``claim`` is this ε, or None for no claim.
    """
    # The answers of accountants do not depend on the claim. Without a claim, the check
    # is of an arbitrary one, and its verdict is not used.
    check: CrossCheck = cross_check(
        ApproxDP(1.0 if claim is None else claim, delta), accountants
    )
    verdict, reason = (None, "") if claim is None else (check.verdict, check.statement)
    return AccountAnswer(
        "epsilon", delta, check.answers, check.upper, check.lower, verdict, reason
    )


def at_epsilon(accountants: Iterable[Accountant], epsilon: float) -> AccountAnswer:
    """Return every accountant's δ at ε."""
    rows = [_delta(accountant, epsilon) for accountant in accountants]
    answered = [row for row in rows if row.value is not None]
    upper = min(
        (row for row in answered if row.soundness.is_proof), key=_number, default=None
    )
    lower = max(
        (row for row in answered if row.soundness is Soundness.LOWER),
        key=_number,
        default=None,
    )
    return AccountAnswer("delta", epsilon, rows, upper, lower)


def _number(row: AccountantReply) -> float:
    return math.nan if row.value is None else row.value


def _delta(accountant: Accountant, epsilon: float) -> AccountantReply:
    try:
        return reply(accountant, float(accountant.delta_at(epsilon)))
    except Exception as error:
        # An accountant is other people's code.
        return reply(accountant, None, failure(error))


def heading(family: str, parameters: Mapping[str, object]) -> str:
    """Return the family and the parameters of a model in one line."""
    wording = (f"{name} = {value}" for name, value in parameters.items())
    return f"{family}: {', '.join(wording)}"


def as_text(
    family: str,
    parameters: Mapping[str, object],
    answer: AccountAnswer,
    solved: Solved | None,
) -> str:
    """Return the answer as text: the model, a sentence, a table, and further remarks.

    Args:
        family: The family of the mechanism.
        parameters: Its parameters, by option.
        answer: The answers of the accountants.
        solved: The solution for a missing parameter; None if none was missing.
    """
    letter, other = ("ε", "δ") if answer.asked == "epsilon" else ("δ", "ε")
    table = Table(box=None, padding=(0, 2, 0, 0), pad_edge=False)
    for title in (
        "accountant",
        "what it is",
        f"{letter} at {other} = {number(answer.given)}",
    ):
        table.add_column(title, no_wrap=True)
    table.add_column("sampling", overflow="fold", ratio=2)
    table.add_column("neighbours", overflow="fold", ratio=2)
    table.add_column("source", overflow="fold", ratio=3)
    for row in answer.rows:
        table.add_row(
            kind(row.name),
            str(row.soundness),
            _shown(row),
            row.sampling,
            row.adjacency,
            row.source,
        )
    console = Console(file=io.StringIO(), width=columns(), color_system=None)
    with console.capture() as capture:
        console.print(table)
    lines = [*_wrapped(heading(family, parameters)), ""]
    if solved is not None:
        lines += _wrapped(solved.sentence(answer.given))
    lines += [
        *_wrapped(answer.statement),
        "",
        *(line.rstrip() for line in capture.get().splitlines()),
    ]
    if answer.verdict is not None:
        lines += ["", *_wrapped(f"{answer.verdict}: {answer.reason}")]
    if answer.findings:
        lines += ["", "found about accountants, not about the mechanism:"]
        lines += [
            line for finding in answer.findings for line in _wrapped(f"  {finding}")
        ]
    if absent := [
        f"  {kind(row.name)} {row.failed}" for row in answer.rows if row.failed
    ]:
        lines += [
            "",
            "no answer:",
            *(line for wording in absent for line in _wrapped(wording)),
        ]
    return "\n".join(lines)


def _wrapped(sentence: str) -> list[str]:
    return textwrap.wrap(
        sentence, columns(), subsequent_indent="    ", break_on_hyphens=False
    )


def _shown(row: AccountantReply) -> str:
    if row.value is None:
        return MISSING
    if row.soundness in (Soundness.APPROXIMATION, Soundness.UNPROVED):
        return number(row.value, DIGITS_SHOWN)
    return bound(
        row.value, up=row.soundness is not Soundness.LOWER, digits=DIGITS_SHOWN
    )


def as_json(
    family: str,
    parameters: Mapping[str, object],
    answer: AccountAnswer,
    solved: Solved | None,
) -> str:
    """Return the answer as JSON; infinity is "inf", and a missing number is null.

    Args:
        family: The family of the mechanism.
        parameters: Its parameters, by option.
        answer: The answers of the accountants.
        solved: The solution for a missing parameter; None if none was missing.
    """
    shown: dict[str, Any] = {
        "schema": SCHEMA,
        "family": family,
        "parameters": parameters,
        "asked": answer.asked,
        "given": json_number(answer.given),
        "statement": answer.statement,
        "upper": answer.upper.name if answer.upper else None,
        "lower": answer.lower.name if answer.lower else None,
        "solved": None,
        "verdict": answer.verdict,
        "reason": answer.reason,
        "findings": answer.findings,
        "accountants": [
            {
                "name": row.name,
                "soundness": row.soundness,
                answer.asked: json_number(row.value),
                "sampling": row.sampling,
                "adjacency": row.adjacency,
                "source": row.source,
                "finding": row.finding,
                "absent": row.failed,
            }
            for row in answer.rows
        ],
    }
    if solved is not None:
        shown["solved"] = {
            "parameter": solved.option,
            "value": solved.solution.value,
            "accountant": solved.solution.accountant.name,
            "target_epsilon": solved.target_epsilon,
            "delta": answer.given,
        }
    return json.dumps(shown, indent=2, ensure_ascii=False, allow_nan=False)


PLOTS = (".svg", ".png", ".html")

account = typer.Typer(
    no_args_is_help=True,
    help="Compute ε, δ or the noise of a mechanism from its parameters.",
)
app.add_typer(account, name="account")


@dataclass(frozen=True)
class FreeParameter:
    """The parameter of a family that may be left out and solved for."""

    option: str
    """Its option, without dashes."""
    value: float | None
    """Its value; None if it was left out."""
    larger_is_safer: bool
    """True if privacy grows with the parameter."""


@dataclass(frozen=True)
class Model:
    """The parameters of a mechanism, and the accountants that apply to it."""

    parameters: Mapping[str, object]
    """The parameters other than ``free``, by option."""
    accountants: Callable[[float], Sequence[Accountant]]
    """Function from a value of ``free`` to all accountants that apply."""
    free: FreeParameter | None = None
    """The parameter that can be solved for; None if there is none."""
    solvers: Callable[[float], Sequence[Accountant]] | None = None
    """Function from a value of ``free`` to the accountants that are used for solving.

    None for all of ``accountants``.
    """


@dataclass(frozen=True)
class AccountQuestion:
    """The options that all families share: what to compute, and how to print it."""

    delta: Annotated[
        float | None, typer.Option(help="Print every accountant's ε at this δ.")
    ] = None
    epsilon: Annotated[
        float | None,
        typer.Option(help="Print every accountant's δ at this ε, instead."),
    ] = None
    claim: Annotated[
        float | None, typer.Option(help="A claimed ε, to be tested at --delta.")
    ] = None
    target_epsilon: Annotated[
        float | None,
        typer.Option(
            help="Solve for the parameter that was left out, so that this ε holds at --delta."
        ),
    ] = None
    plot: Annotated[
        Path | None,
        typer.Option(help="Draw every δ(ε) to a file: .svg, .png or .html."),
    ] = None
    output: Annotated[
        AnswerFormat, typer.Option("--format", help="How to print the answer.")
    ] = AnswerFormat.text

    def __post_init__(self) -> None:
        if (self.delta is None) == (self.epsilon is None):
            raise ConfigurationError(
                "give one of these questions: --delta D for ε at δ = D; --epsilon E for δ at ε = E; "
                "--target-epsilon E --delta D for the parameter that gives them"
            )
        for option, value in (
            ("--claim", self.claim),
            ("--target-epsilon", self.target_epsilon),
        ):
            if value is not None and self.delta is None:
                raise ConfigurationError(
                    f"{option} {value:g} needs the δ that goes with it: --delta instead of --epsilon"
                )
        if self.delta is not None and not 0 <= self.delta < 1:
            raise ConfigurationError(
                f"--delta {self.delta:g}: expected 0 <= delta < 1, such as 1e-5"
            )
        if self.epsilon is not None and not self.epsilon >= 0:
            raise ConfigurationError(
                f"--epsilon {self.epsilon:g}: expected epsilon >= 0"
            )
        if self.plot is not None and self.plot.suffix not in PLOTS:
            raise ConfigurationError(
                f"--plot {self.plot}: expected a name that ends with {', '.join(PLOTS)}"
            )


def family(name: str) -> Callable[[Callable[..., Model]], Callable[..., Model]]:
    """Return a decorator that registers ``auditdp account NAME``.

    The decorated function builds a model from its own options. The command has these
    options and those of ``AccountQuestion``. The function itself is returned unchanged.
    """
    asked = inspect.signature(AccountQuestion, eval_str=True).parameters.values()

    def register(build: Callable[..., Model]) -> Callable[..., Model]:
        own = inspect.signature(build, eval_str=True).parameters.values()

        @functools.wraps(build)
        def command(**options: Any) -> None:
            question = AccountQuestion(
                **{each.name: options.pop(each.name) for each in asked}
            )
            answer(name, build(**options), question)

        # Typer makes the options of a command from its signature.
        command.__signature__ = inspect.Signature(  # type: ignore[attr-defined]
            [
                each.replace(kind=inspect.Parameter.KEYWORD_ONLY)
                for each in (*own, *asked)
            ]
        )
        account.command(name)(command)
        return build

    return register


def answer(name: str, model: Model, question: AccountQuestion) -> None:
    """Answer a question about a model: compute, print and draw, then exit.

    Args:
        name: The family of the mechanism.
        model: The model.
        question: The question.

    Raises:
        Exit: After the answer. The exit code is 1 if the claim is refuted, 3 if no
            accountant gave a number, and 0 otherwise.
        ConfigurationError: If a parameter is missing without a target, or given with
            one, or if the figure cannot be drawn or written.
    """
    if question.plot is not None:
        writable(question.plot)
    value, solved = _value(model, question)
    parameters = (
        {model.free.option: value, **model.parameters}
        if model.free
        else model.parameters
    )
    accountants = model.accountants(value)
    if question.delta is not None:
        found = at_delta(accountants, question.delta, question.claim)
    else:
        # AccountQuestion checks this.
        assert question.epsilon is not None
        found = at_epsilon(accountants, question.epsilon)
    written = as_json if question.output is AnswerFormat.json else as_text
    tell(written(name, parameters, found, solved))
    if question.plot is not None:
        from auditdp.cli.account_plot import draw

        draw(
            accountants,
            question.plot,
            heading=heading(name, parameters),
            sentence=found.statement,
        )
    raise typer.Exit(
        ExitCode.FOUND
        if found.violated
        else ExitCode.OK
        if found.answered
        else ExitCode.CRASHED
    )


def _value(model: Model, question: AccountQuestion) -> tuple[float, Solved | None]:
    """Return the value of the free parameter, and the solution if it was solved for.

    The value is 0.0, which is not used, for a model without a free parameter.

    Raises:
        ConfigurationError: If the parameter and a target are both given, or neither, or
            if a target is given and the model has no free parameter.
    """
    free, target = model.free, question.target_epsilon
    if target is None or question.delta is None:
        if free is None:
            return 0.0, None
        if free.value is None:
            raise ConfigurationError(
                f"--{free.option} is missing; give it, or what it has to achieve: --target-epsilon E --delta D"
            )
        return free.value, None
    if free is None or free.value is not None:
        remedy = (
            f"leave out --{free.option}"
            if free
            else "unequal parts have no parameter in common to be solved for"
        )
        raise ConfigurationError(
            f"--target-epsilon {target:g}: nothing is missing; {remedy}"
        )
    from auditdp.accountants import solve

    solvers = model.solvers or model.accountants
    solution = solve(
        solvers, target, question.delta, larger_is_safer=free.larger_is_safer
    )
    return solution.value, Solved(free.option, free.larger_is_safer, target, solution)
