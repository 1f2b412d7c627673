"""How many calls a game has: by a name, as a number, or as many as find a fault nine times in ten.

A budget is a text, the same one on the command line, in the settings, in pytest and in the record: ``standard``, ``200000``
or ``tail:0.005``. A game that was continued has several parts with commas between them, such as ``standard,1000000``:
what it went on to is how many calls it has altogether.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from auditdp.errors import ConfigurationError, did_you_mean

BUDGETS = {"quick": 2_000, "standard": 50_000, "thorough": 1_000_000}
"""Calls of a game, by the name of the budget."""
BRIEF = ("quick",)
"""Budgets that hold for every audit, whatever number of calls it names; what needs more is then undecided."""
FAULTS = {"level": "level:1.5", "tail": "tail:0.005", "output": "output:0.001"}
"""Kinds of faults, with an example of each."""
EXPECTED = f"{', '.join(BUDGETS)}, a number of calls, or a fault to find: {', '.join(FAULTS.values())}"


@dataclass(frozen=True)
class Fault:
    """What a game is to find nine times in ten.

    Attributes:
        kind: Of these:

            'level': mass is moved everywhere: the pair is the worst that the claim would allow at ``size`` times its level
            (that number of times its ε, μ or ρ);
            'tail': outputs that have the probability ``size`` on the input that gives them more often lose twice the claim;
            'output': an output of the probability ``size`` that only one of the two inputs gives.
        size: A factor above 1, or a probability.
    """

    kind: str
    size: float

    @classmethod
    def read(cls, text: str) -> Fault:
        """Return the fault that a text such as ``tail:0.005`` names.

        Raises:
            ConfigurationError: If it names none.
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
        """The fault in words.

        >>> Fault("tail", 0.005).description
        'outputs of probability 0.005 that lose twice the claim'
        """
        if self.kind == "level":
            return f"the worst pair that the claim would allow at {self.size:g} times its level"
        if self.kind == "tail":
            return f"outputs of probability {self.size:g} that lose twice the claim"
        return f"an output of probability {self.size:g} that only one input gives"


LONGEST = 1e9
"""Seconds of the longest time limit."""
MOST_SEED = 1 << 128
"""Seeds are smaller than this."""
Goal = int | Fault
"""How many calls a game has altogether: a number, or as many as find a fault."""


@dataclass(frozen=True)
class Budget:
    """The calls of a game."""

    first: str | Goal
    """A name in ``BUDGETS``, a number or a fault. An audit that names a number of calls has that instead of a named budget,
    but at least as many as a number or a fault asks for.
    """
    further: tuple[Goal, ...] = ()
    """What a continued game went on to, one after the other."""

    @classmethod
    def read(cls, text: str) -> Budget:
        """Return the budget that a text states.

        >>> Budget.read("standard,1e6")
        Budget(first='standard', further=(1000000,))

        Raises:
            ConfigurationError: If it states none.
        """
        first, *further = [_part(part.strip()) for part in text.split(",")]
        return cls(
            first,
            tuple(BUDGETS[part] if isinstance(part, str) else part for part in further),
        )

    def __str__(self) -> str:
        return ",".join(map(str, (self.first, *self.further)))

    @property
    def calls(self) -> int:
        """Calls of evidence that plays no game, and of a game that is to find no fault."""
        if isinstance(self.first, int):
            return self.first
        return BUDGETS[self.first if isinstance(self.first, str) else "standard"]

    @property
    def least(self) -> int:
        """Calls that evidence has at least, whatever the audit names."""
        return self.first if isinstance(self.first, int) else 1

    @property
    def find(self) -> Fault | None:
        """The fault that games are to find, if they are to find one."""
        return self.first if isinstance(self.first, Fault) else None

    @property
    def brief(self) -> bool:
        """Whether no audit has more calls, whatever it names."""
        return self.first in BRIEF


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
