"""Budgets: the number of runs of an audit, and the text that states it.

A budget has the same text on the command line, in the settings, in pytest and in
records: a name (``standard``), a number of calls (``200000``), or a fault that the game
is to find nine times in ten (``tail:0.005``). A game that was continued has several
parts, separated by commas, such as ``standard,1000000``. Each part after the first
states the total number of calls after that continuation, or a fault to find.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Self

from auditdp.errors import ConfigurationError, did_you_mean

BUDGETS = {"quick": 2_000, "standard": 50_000, "thorough": 1_000_000}
"""Calls of a game, by the name of the budget."""
LIMITS = ("quick",)
"""Budgets that also limit the calls of audits that name a larger number. An audit that
needs more calls may then stay undecided. Promises about estimates are not limited."""
FAULTS = {"level": "level:1.5", "tail": "tail:0.005", "output": "output:0.001"}
"""Kinds of faults, with an example of each."""
EXPECTED = f"{', '.join(BUDGETS)}, a number of calls, or a fault to find: {', '.join(FAULTS.values())}"


@dataclass(frozen=True)
class Fault:
    """A violation that a game is to find nine times in ten.

    Attributes:
        kind: One of:

            - 'level': both laws of outputs are the worst ones that the claim would
              allow at ``size`` times its level (ε, μ or ρ).
            - 'tail': a set of outputs has twice the claimed privacy loss. Its
              probability is ``size`` on the input that gives it more often.
            - 'output': only one of the two inputs gives an output, with the
              probability ``size``.
        size: A factor above 1, or a probability.
    """

    kind: str
    size: float

    @classmethod
    def read(cls, text: str) -> Fault:
        """Return the fault that a text such as ``tail:0.005`` names.

        Raises:
            ConfigurationError: If the kind is unknown, or the size is missing or out of
                range.
        """
        kind, _, number = text.partition(":")
        if kind not in FAULTS:
            raise ConfigurationError(
                f"unknown fault {text!r}; {did_you_mean(kind, FAULTS)}"
            )
        try:
            size = float(number)
        except ValueError:
            size = math.nan
        if kind == "level" and not 1 < size < math.inf:
            raise ConfigurationError(
                f"fault {text!r}: expected level: and a factor above 1, such as {FAULTS[kind]}"
            )
        if kind != "level" and not 0 < size < 1:
            raise ConfigurationError(
                f"fault {text!r}: expected {kind}: and a probability between 0 and 1, such as {FAULTS[kind]}"
            )
        return cls(kind, size)

    def __str__(self) -> str:
        return f"{self.kind}:{self.size!r}"

    @property
    def description(self) -> str:
        """A noun phrase for the fault.

        >>> Fault("tail", 0.005).description
        'outputs of probability 0.005 that lose twice the claim'
        """
        if self.kind == "level":
            return f"the worst pair that the claim would allow at {self.size:g} times its level"
        if self.kind == "tail":
            return f"outputs of probability {self.size:g} that lose twice the claim"
        return f"an output of probability {self.size:g} that only one input gives"


LONGEST = 1e9
"""Largest time limit, in seconds."""
MOST_SEED = 1 << 128
"""Exclusive upper limit of seeds."""
Goal = int | Fault
"""Total number of calls of a game, or the fault that decides it."""


@dataclass(frozen=True)
class Budget:
    """The number of runs that a user gives to every audit.

    A run is one execution of the mechanism on one input. An audit may name a number of
    calls of its own; ``of_audit`` combines both.

    Attributes:
        calls: Calls of an audit that names no number.
        minimum: Calls that every kind of evidence has, even if the audit names fewer.
        is_limit: Whether an audit has at most ``calls``, even if it names more. Games
            then end at their verdict, and evidence without a game generates a quarter
            of its usual number of pairs.
        fault: The fault that games are to find nine times in ten, if any. The number of
            calls of a game then follows from it.
        later: For each continuation of a game, the total calls after it, or the fault
            to find; empty for a game that is not continued.
        is_scarce: Whether a run is expensive, such as a training. The number of calls
            then includes all runs of the audit.
        if_suspect: With ``is_scarce``, the number of runs if a trace suggests that the
            claim is false, or if the bets gain; None for the same number as otherwise.
        stop_when_refuted: Whether a game ends at its verdict, instead of using all
            calls for a better lower bound.
        name: The text that stated ``calls``, such as ``standard``.
    """

    calls: int
    minimum: int = 1
    is_limit: bool = False
    fault: Fault | None = None
    later: tuple[Goal, ...] = ()
    is_scarce: bool = False
    if_suspect: int | None = None
    stop_when_refuted: bool = False
    name: str = ""

    @classmethod
    def read(cls, text: str) -> Budget:
        """Return the budget that a text states.

        >>> Budget.read("standard,1e6").later
        (1000000,)

        Raises:
            ConfigurationError: If the text is not a budget.
        """
        first, *later = [_part(part.strip()) for part in text.split(",")]
        goals = tuple(
            BUDGETS[part] if isinstance(part, str) else part for part in later
        )
        if isinstance(first, int):
            return cls(first, minimum=first, later=goals, name=str(first))
        if isinstance(first, Fault):
            return cls(BUDGETS["standard"], fault=first, later=goals, name=str(first))
        return cls(BUDGETS[first], is_limit=first in LIMITS, later=goals, name=first)

    def __str__(self) -> str:
        return ",".join([self.name or str(self.calls), *map(str, self.later)])

    def missing_calls(self, named: int | None) -> int:
        """Return the number of calls by which an audit's own number exceeds the limit.

        It is 0 if this budget is no limit, or if the audit names no number.
        """
        if not self.is_limit or named is None:
            return 0
        return max(named - self.calls, 0)

    def of_audit(
        self, named: int | None, fault: Fault | None = None, *, is_limited: bool = True
    ) -> AuditBudget:
        """Return the budget of one audit.

        Args:
            named: The number of calls that the audit names, if it names one.
            fault: The fault that the audit names, if it names one. It counts only if
                this budget has no fault.
            is_limited: False for an audit that keeps the calls that it names even if
                this budget is a limit.
        """
        calls = max(self.calls if named is None else named, self.minimum)
        if is_limited:
            calls -= self.missing_calls(named)
        reserve = 0
        if self.is_limit and named is not None:
            # Runs after the game may be as many again, up to the number that is named.
            reserve = max(min(calls, named - calls), 0)
        elif self.is_limit:
            reserve = calls
        fault = self.fault or fault
        game_calls = calls
        if fault is not None:
            game_calls = max(named or 1, self.minimum)
        return AuditBudget(
            calls=calls,
            game_calls=game_calls,
            named=named,
            reserve=reserve,
            fault=fault,
            max_calls=self.calls if self.is_limit else None,
            later=self.later,
            is_scarce=self.is_scarce,
            if_suspect=self.if_suspect,
            stop_when_refuted=self.stop_when_refuted or self.is_limit,
        )


@dataclass(frozen=True, kw_only=True)
class AuditBudget:
    """The number of runs of one audit, for each phase.

    Attributes:
        calls: Calls of a kind of evidence that plays no game.
        game_calls: Calls of the game. They include the runs of the trace, of the search
            for pairs, of the confirmation and of the search for a smaller pair. With
            ``fault`` they are a minimum, and the game may have more calls.
        named: The number of calls that the audit names, if it names one.
        reserve: Runs, in addition to ``game_calls``, for the phases after the game.
        fault: The fault that the game is to find nine times in ten, if any.
        max_calls: Limit of the calls of the game, even if it needs more to find
            ``fault``; None for no limit.
        later: For each continuation of the game, the total calls after it, or the fault
            to find.
        is_scarce: Whether ``game_calls`` includes all runs of the audit, since a run is
            expensive.
        if_suspect: With ``is_scarce``, the number of runs if a trace suggests that the
            claim is false, or if the bets gain; None for ``game_calls``.
        stop_when_refuted: Whether the game ends at its verdict, instead of using all
            calls for a better lower bound.
    """

    calls: int
    game_calls: int
    named: int | None = None
    reserve: int = 0
    fault: Fault | None = None
    max_calls: int | None = None
    later: tuple[Goal, ...] = ()
    is_scarce: bool = False
    if_suspect: int | None = None
    stop_when_refuted: bool = False

    @classmethod
    def of(cls, calls: int, **others: Any) -> Self:
        """Return the budget with the same number of calls for every phase.

        ``others`` are further attributes of the budget.
        """
        return cls(calls=calls, game_calls=calls, **others)

    @property
    def suspect_calls(self) -> int:
        """Number of runs of the game if a trace suggests that the claim is false."""
        return self.game_calls if self.if_suspect is None else self.if_suspect

    @property
    def game_runs(self) -> float:
        """Limit of all runs of a game; infinite with a fault or a continuation."""
        if self.fault is not None or self.later:
            return math.inf
        return max(self.calls, self.game_calls + self.reserve, self.if_suspect or 0)


def _part(text: str) -> str | Goal:
    if text in BUDGETS:
        return text
    if ":" in text:
        return Fault.read(text)
    try:
        calls = float(text)
    except ValueError:
        close = did_you_mean(text, [*BUDGETS, *FAULTS])
        close = f"{close}; " if close.startswith("did") else ""
        raise ConfigurationError(
            f"unknown budget {text!r}; {close}expected {EXPECTED}"
        ) from None
    if not (1 <= calls < math.inf and calls == int(calls)):
        raise ConfigurationError(
            f"budget {text!r}: expected a whole number of calls >= 1, or {EXPECTED}"
        )
    return int(calls)
