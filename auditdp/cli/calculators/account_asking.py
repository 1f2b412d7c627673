"""What every family of ``auditdp account`` shares: the questions that can be asked of a model, and how they are answered."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from auditdp.cli.common import CRASHED, FOUND, OK, AnswerFormat, app, tell
from auditdp.errors import ConfigurationError
from auditdp.report.targets import writable

if TYPE_CHECKING:  # accountants are imported by the command that needs them, since some are slow to import
    from auditdp.accountants.base import Accountant
    from auditdp.cli.calculators.account_answer import Solved

PLOTS = (".svg", ".png", ".html")

account = typer.Typer(no_args_is_help=True, help="Compute ε, δ or the noise of a mechanism from its parameters.")
app.add_typer(account, name="account")


@dataclass(frozen=True)
class FreeParameter:
    """The parameter that may be left out and solved for."""

    option: str
    value: float | None
    """What was given; None to solve for it."""
    larger_is_safer: bool
    """Whether privacy grows with it."""


@dataclass(frozen=True)
class Model:
    """A mechanism that is described by its parameters."""

    parameters: Mapping[str, object]
    """What describes it besides ``free``, by option, as it was understood."""
    accountants: Callable[[float], Sequence[Accountant]]
    """Every accountant that applies, for a value of ``free``; the tightest first."""
    free: FreeParameter | None = None
    """The parameter that can be solved for; None where the family has none."""
    solvers: Callable[[float], Sequence[Accountant]] | None = None
    """Accountants to solve with, where not all of ``accountants`` should be asked again and again."""


@dataclass(frozen=True)
class AccountQuestion:
    """What is asked of a model; the fields are the options of the same names."""

    delta: Annotated[float | None, typer.Option(help="Print every accountant's ε at this δ.")] = None
    epsilon: Annotated[float | None, typer.Option(help="Print every accountant's δ at this ε, instead.")] = None
    claim: Annotated[float | None, typer.Option(help="A claimed ε, to be tested at --delta.")] = None
    target_epsilon: Annotated[
        float | None, typer.Option(help="Solve for the parameter that was left out, so that this ε holds at --delta.")
    ] = None
    plot: Annotated[Path | None, typer.Option(help="Draw every δ(ε) to a file: .svg, .png or .html.")] = None
    output: Annotated[AnswerFormat, typer.Option("--format", help="How to print the answer.")] = AnswerFormat.text

    def __post_init__(self) -> None:
        if (self.delta is None) == (self.epsilon is None):
            raise ConfigurationError(
                "say what is asked, and only one of: --delta D for ε at δ = D; --epsilon E for δ at ε = E; "
                "--target-epsilon E --delta D for the parameter that gives them"
            )
        for option, value in (("--claim", self.claim), ("--target-epsilon", self.target_epsilon)):
            if value is not None and self.delta is None:
                raise ConfigurationError(
                    f"{option} {value:g} needs the δ that goes with it: --delta instead of --epsilon"
                )
        if self.delta is not None and not 0 <= self.delta < 1:
            raise ConfigurationError(f"--delta {self.delta:g}: expected 0 <= delta < 1, such as 1e-5")
        if self.epsilon is not None and not self.epsilon >= 0:
            raise ConfigurationError(f"--epsilon {self.epsilon:g}: expected epsilon >= 0")
        if self.plot is not None and self.plot.suffix not in PLOTS:
            raise ConfigurationError(f"--plot {self.plot}: expected a name that ends with {', '.join(PLOTS)}")


def family(name: str) -> Callable[[Callable[..., Model]], Callable[..., Model]]:
    """Make a command of a function that builds a model from its own options; those of ``AccountQuestion`` are added."""
    asked = inspect.signature(AccountQuestion, eval_str=True).parameters.values()

    def register(build: Callable[..., Model]) -> Callable[..., Model]:
        own = inspect.signature(build, eval_str=True).parameters.values()

        @functools.wraps(build)
        def command(**options: Any) -> None:
            question = AccountQuestion(**{each.name: options.pop(each.name) for each in asked})
            answer(name, build(**options), question)

        command.__signature__ = inspect.Signature(  # type: ignore[attr-defined]
            [each.replace(kind=inspect.Parameter.KEYWORD_ONLY) for each in (*own, *asked)]
        )
        account.command(name)(command)
        return build

    return register


def answer(name: str, model: Model, question: AccountQuestion) -> None:
    """Solve where a parameter is missing, ask every accountant, print, draw, and exit."""
    from auditdp.cli.calculators import account_answer as answers

    if question.plot is not None:
        writable(question.plot)
    value, solved = _value(model, question)
    parameters = {model.free.option: value, **model.parameters} if model.free else model.parameters
    accountants = model.accountants(value)
    if question.delta is not None:
        found = answers.at_delta(accountants, question.delta, question.claim)
    else:
        assert question.epsilon is not None  # as Question makes sure
        found = answers.at_epsilon(accountants, question.epsilon)
    written = answers.as_json if question.output is AnswerFormat.json else answers.as_text
    tell(written(name, parameters, found, solved))
    if question.plot is not None:
        from auditdp.cli.calculators.account_plot import draw

        draw(accountants, question.plot, heading=answers.heading(name, parameters), sentence=found.statement)
    raise typer.Exit(FOUND if found.violated else OK if found.answered else CRASHED)


def _value(model: Model, question: AccountQuestion) -> tuple[float, Solved | None]:
    """The value of the free parameter: what was given, or what the target needs."""
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
        remedy = f"leave out --{free.option}" if free else "unequal parts have no parameter in common to be solved for"
        raise ConfigurationError(f"--target-epsilon {target:g}: nothing is missing; {remedy}")
    from auditdp.accountants.solve import solve
    from auditdp.cli.calculators.account_answer import Solved

    solvers = model.solvers or model.accountants
    solution = solve(solvers, target, question.delta, larger_is_safer=free.larger_is_safer)
    return solution.value, Solved(free.option, free.larger_is_safer, target, solution)
