"""What accountants answer, as a table in text and as JSON, with the one sentence that it comes to."""

from __future__ import annotations

import io
import json
import math
import textwrap
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from rich.console import Console
from rich.table import Table

from auditdp.accountants.base import Accountant, Soundness, failure
from auditdp.accountants.cross_check import AccountantReply, CrossCheck, cross_check, reply
from auditdp.accountants.solve import DIGITS as DIGITS_SOLVED
from auditdp.accountants.solve import Solution
from auditdp.claims.statements import ApproxDP
from auditdp.cli.common import columns
from auditdp.record.results import Verdict
from auditdp.record.rows import json_number
from auditdp.report.numbers import MISSING, bound, number

SCHEMA = 1
DIGITS = 6


@dataclass(frozen=True)
class AccountAnswer:
    """What all accountants answered."""

    asked: Literal["epsilon", "delta"]
    given: float
    rows: Sequence[AccountantReply]
    upper: AccountantReply | None
    """The smallest value that is proved to suffice; None where there is none."""
    lower: AccountantReply | None
    """The largest value of a proof that no less holds; None where there is none."""
    verdict: Verdict | None = None
    """On the claim; None where nothing is claimed."""
    reason: str = ""

    @property
    def violated(self) -> bool:
        """Whether the claim is false."""
        return self.verdict is Verdict.VIOLATED

    @property
    def answered(self) -> bool:
        """Whether any accountant gave an answer."""
        return any(not row.failed for row in self.rows)

    @property
    def findings(self) -> list[str]:
        """What was found out about accountants, which says nothing of the mechanism."""
        return [f"{row.name}: {row.finding}" for row in self.rows if row.finding]

    @property
    def statement(self) -> str:
        """What is known, in one sentence."""
        letter, other = ("ε", "δ") if self.asked == "epsilon" else ("δ", "ε")
        upper, lower = self.upper, self.lower
        if upper is None or _number(upper) == math.inf:
            wording = f"No {letter} is proved at {other} = {number(self.given)}"
        else:
            pair = [bound(upper.value, up=True), number(self.given)]
            known = "exact, by" if upper.soundness is Soundness.EXACT else "upper bound by"
            wording = f"({', '.join(pair if self.asked == 'epsilon' else reversed(pair))})-DP: {known} {upper.name}"
        if lower is None or not lower.value or (lower is upper and lower.value < math.inf):
            return wording
        return f"{wording}; {letter} not below {bound(lower.value, up=False)} by {lower.name}"


@dataclass(frozen=True)
class Solved:
    """The value that was found for a missing parameter, and what it was to achieve."""

    option: str
    larger_is_safer: bool
    target_epsilon: float
    solution: Solution

    def sentence(self, delta: float) -> str:
        """What the value achieves."""
        most = "smallest" if self.larger_is_safer else "largest"
        return (
            f"--{self.option} {self.solution.value:g} is the {most} of {DIGITS_SOLVED} digits that "
            f"{kind(self.solution.accountant.name)} proves to be ({number(self.target_epsilon)}, {number(delta)})-DP"
        )


def kind(name: str) -> str:
    """Return an accountant's name without its parameters."""
    return name.partition("(")[0]


def at_delta(accountants: Sequence[Accountant], delta: float, claim: float | None) -> AccountAnswer:
    """Return every accountant's ε at δ, and the verdict on a claimed ε."""
    # What accountants answer does not depend on the claim; without one, the verdict on any is thrown away.
    check: CrossCheck = cross_check(ApproxDP(1.0 if claim is None else claim, delta), accountants)
    verdict, reason = (None, "") if claim is None else (check.verdict, check.statement)
    return AccountAnswer("epsilon", delta, check.answers, check.upper, check.lower, verdict, reason)


def at_epsilon(accountants: Iterable[Accountant], epsilon: float) -> AccountAnswer:
    """Return every accountant's δ at ε."""
    rows = [_delta(accountant, epsilon) for accountant in accountants]
    answered = [row for row in rows if row.value is not None]
    upper = min((row for row in answered if row.soundness.is_proof), key=_number, default=None)
    lower = max((row for row in answered if row.soundness is Soundness.LOWER), key=_number, default=None)
    return AccountAnswer("delta", epsilon, rows, upper, lower)


def _number(row: AccountantReply) -> float:
    return math.nan if row.value is None else row.value


def _delta(accountant: Accountant, epsilon: float) -> AccountantReply:
    try:
        return reply(accountant, float(accountant.delta_at(epsilon)))
    except Exception as error:  # an accountant is other people's code
        return reply(accountant, None, failure(error))


def heading(family: str, parameters: Mapping[str, object]) -> str:
    """Return the model in one line."""
    wording = (f"{name} = {value}" for name, value in parameters.items())
    return f"{family}: {', '.join(wording)}"


def as_text(family: str, parameters: Mapping[str, object], answer: AccountAnswer, solved: Solved | None) -> str:
    """Return the model, the sentence, the table, and what else there is to say."""
    letter, other = ("ε", "δ") if answer.asked == "epsilon" else ("δ", "ε")
    table = Table(box=None, padding=(0, 2, 0, 0), pad_edge=False)
    for title in ("accountant", "what it is", f"{letter} at {other} = {number(answer.given)}"):
        table.add_column(title, no_wrap=True)
    table.add_column("sampling", overflow="fold", ratio=2)
    table.add_column("neighbours", overflow="fold", ratio=2)
    table.add_column("source", overflow="fold", ratio=3)
    for row in answer.rows:
        table.add_row(kind(row.name), str(row.soundness), _shown(row), row.sampling, row.adjacency, row.source)
    console = Console(file=io.StringIO(), width=columns(), color_system=None)
    with console.capture() as capture:
        console.print(table)
    lines = [*_wrapped(heading(family, parameters)), ""]
    if solved is not None:
        lines += _wrapped(solved.sentence(answer.given))
    lines += [*_wrapped(answer.statement), "", *(line.rstrip() for line in capture.get().splitlines())]
    if answer.verdict is not None:
        lines += ["", *_wrapped(f"{answer.verdict}: {answer.reason}")]
    if answer.findings:
        lines += ["", "found about accountants, not about the mechanism:"]
        lines += [line for finding in answer.findings for line in _wrapped(f"  {finding}")]
    if absent := [f"  {kind(row.name)} {row.failed}" for row in answer.rows if row.failed]:
        lines += ["", "no answer:", *(line for wording in absent for line in _wrapped(wording))]
    return "\n".join(lines)


def _wrapped(sentence: str) -> list[str]:
    return textwrap.wrap(sentence, columns(), subsequent_indent="    ", break_on_hyphens=False)


def _shown(row: AccountantReply) -> str:
    if row.value is None:
        return MISSING
    if row.soundness in (Soundness.APPROXIMATION, Soundness.UNPROVED):
        return number(row.value, DIGITS)
    return bound(row.value, up=row.soundness is not Soundness.LOWER, digits=DIGITS)


def as_json(family: str, parameters: Mapping[str, object], answer: AccountAnswer, solved: Solved | None) -> str:
    """Return the answer as JSON, in which infinity is "inf" and what is missing is null."""
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
