"""The input of every kind of evidence, and the check that calls are independent.

Evidence from calls of a mechanism assumes that the calls are independent runs.
``believed`` checks this before such evidence counts.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from auditdp.accountants import Accountant, Description
from auditdp.adjacency import Adjacency, Pair
from auditdp.claims.claim import Claim
from auditdp.claims.estimates import Promise
from auditdp.errors import ExhaustedError, Timeout
from auditdp.mechanism.calls import Calls
from auditdp.mechanism.calls.allowance import allowance
from auditdp.mechanism.calls.independence import CheckLimits, look
from auditdp.mechanism.calls.phases import phase
from auditdp.mechanism.capabilities import Capabilities, capabilities
from auditdp.mechanism.protocol import Mechanism, as_mechanism
from auditdp.numerics.streams import Streams
from auditdp.record.budget import AuditBudget
from auditdp.record.details import GameDetails
from auditdp.record.results import REFUTATIONS, Evidence, Verdict


@dataclass(frozen=True, kw_only=True)
class GameOptions:
    """Options of a game.

    Attributes:
        alpha: Largest probability of a false verdict VIOLATED, or of a lower bound
            above the true privacy loss.
        budget: The number of runs. They include those of the trace, of the search, of
            the confirmation and of the search for a smaller pair.
        forecasters: Forecasters whose wealth is averaged; by default
            ``default_forecasters(mechanism)``.
        play: Pairs of inputs to be played; by default ``adjacency.pairs()``.
        search: Whether to search for further pairs, and for the smallest pair that shows
            a violation. This needs an adjacency that generates pairs, and no ``play``.
        trace: Whether to trace the code before the game.
        recorded: The recorded log wealth with which the last continuation must begin;
            None unless a recorded audit is continued.
        control: Whether the mechanism is a broken twin, which the game has to refute.
            The game then ends at its verdict, without confirmation and lower bound.
    """

    alpha: float
    budget: AuditBudget
    forecasters: Sequence[Any] | None = None
    play: Sequence[Pair] | None = None
    search: bool = True
    trace: bool = True
    recorded: float | None = None
    control: bool = False

    @property
    def stop_when_refuted(self) -> bool:
        """True if the game ends when the claim is refuted."""
        return self.control or self.budget.stop_when_refuted


@dataclass(frozen=True, kw_only=True)
class EvidenceRequest:
    """The input of every kind of evidence about one mechanism.

    Attributes:
        mechanism: The mechanism as the audit has it; None for a formula.
        claim: The claim about privacy, or the promise about an estimate.
        neighbours: The adjacency; None for a promise, or for a formula without pairs.
        inputs: Lists of inputs by the name of their class; empty for a claim about
            privacy.
        accountants: Accountants whose bounds are compared with the claim, if any.
        about: Description of the mechanism for the accountants, or None.
        kinds: Kinds of evidence to gather.
        streams: Random streams by purpose and batch.
        game: Options of games, with the budget of all kinds of evidence.
        exhaustive: Whether to compare all pairs if they can be enumerated. Otherwise
            only the listed pairs are compared.
    """

    mechanism: Any
    claim: Claim | Promise
    neighbours: Adjacency | None
    inputs: Mapping[str, Sequence[Any]]
    accountants: Sequence[Accountant]
    about: Description | None
    kinds: Sequence[str]
    streams: Streams
    game: GameOptions
    exhaustive: bool

    @property
    def budget(self) -> AuditBudget:
        """The number of runs of each phase."""
        return self.game.budget

    @property
    def calls(self) -> int:
        """Number of calls for each kind of evidence except 'game'."""
        return self.budget.calls

    @property
    def control(self) -> bool:
        """True if the mechanism is a broken twin, which has to be refuted."""
        return self.game.control

    @property
    def runs(self) -> float:
        """Limit of all runs; infinite with a fault to find or a continuation."""
        games = 2 if {"game", "support"} <= set(self.kinds) else 1
        # Evidence from one training makes that training a second time.
        repeated_training = 1 if "one_run" in self.kinds else 0
        return self.budget.game_runs * games + repeated_training

    @cached_property
    def adapted(self) -> Mechanism:
        """The mechanism with the signature ``f(data, size, *, rng)``."""
        return as_mechanism(self.mechanism)

    @cached_property
    def able(self) -> Capabilities:
        """The capabilities of the mechanism."""
        return capabilities(self.mechanism)

    @property
    def adjacency(self) -> Adjacency:
        """The adjacency; an ``AssertionError`` if the request has none."""
        # Such evidence is requested for pairs only.
        assert self.neighbours is not None
        return self.neighbours

    @property
    def privacy(self) -> Claim:
        """The claim about privacy; an ``AssertionError`` for a promise."""
        # Promises have their own evidence.
        assert not isinstance(self.claim, Promise)
        return self.claim

    def generated(self, examples: int) -> int:
        """Return the largest number of pairs that a search generates.

        It is ``examples``, or a quarter of that if the budget limits the calls
        (``quick``).
        """
        return examples if self.budget.max_calls is None else examples // 4


ONE_OUTPUT = (
    "every call on an input gave the same output: a mechanism that drew its noise "
    "before all calls (when it was imported or "
    "made, or from the data by a seed) cannot be distinguished from one without "
    "noise, and the finding is about either"
)
"""Addition to the statement of a finding if each input had one output in all calls."""
UNBELIEVED = "but this does not count, since too few calls were left to test that calls are independent runs"
"""Reason for which a finding is withdrawn if calls or time end before the check."""
UNLOOKED = (
    "no noise is kept from the first call on, for which the mechanism was not called "
    "in a process of its own"
)
"""Assumption that evidence gets if calls were not checked in a separate process."""

MEMORY_ERROR = 1e-4
"""Largest probability of mistaking a private mechanism that repeats its first output for
a mechanism without noise."""
MAX_PROCESSES = 1_024
"""Largest number of processes for the check of constant outputs.

With this number, ``MEMORY_ERROR`` holds for claims of up to 4.7-DP.
"""


def processes_to_check_memory(claim: Claim) -> int:
    """Return the number of processes for the check of constant outputs.

    Each process makes one call. Assume that the mechanism satisfies the claim and
    repeats its first output in every later call. An adversary who guesses the input
    from one first output is right with probability at most (1 + δ(0)) / 2. So n
    guesses, from n processes, are all right with probability at most ((1 + δ(0)) /
    2)^n. This is at most ``MEMORY_ERROR`` for the n that is returned, except for a
    claim that needs more than ``MAX_PROCESSES``, which is then the result.
    """
    wrong = (1 - claim.delta_at(0.0)) / 2
    if wrong <= 0:
        return MAX_PROCESSES
    needed = math.ceil(math.log(MEMORY_ERROR) / math.log1p(-wrong))
    return min(needed, MAX_PROCESSES)


@phase("checks")
def believed(
    evidence: Evidence,
    calls: Calls,
    inputs: Sequence[Any],
    streams: Streams,
    budget: int,
    *,
    claim: Claim | None = None,
) -> Evidence:
    """Return the evidence if the calls look independent; otherwise withdraw it.

    Independent calls fail the check with a probability of at most a few 1e-6
    (``auditdp.mechanism.calls.independence``). If the runs or the time that are left do
    not suffice for the check, a finding is withdrawn, and other evidence is returned
    with the assumption ``UNLOOKED``. The runs of the check are added to the calls of
    the evidence.

    Args:
        evidence: Evidence from these calls.
        calls: The calls of the mechanism.
        inputs: The one or two inputs on which the check runs the mechanism.
        streams: Random streams by purpose and batch.
        budget: Number of calls from which the size of the check follows
            (``runs_to_look``). It does not limit the check of constant outputs.
        claim: The claim, which decides the number of separate processes for the check
            of constant outputs; None for ``CheckLimits.processes``.
    """
    is_finding = evidence.verdict is not Verdict.NOT_REFUTED
    unchecked = replace(evidence, assumptions=[*evidence.assumptions, UNLOOKED])
    if budget < CheckLimits.min_budget and not is_finding:
        return unchecked
    processes = (
        CheckLimits.processes if claim is None else processes_to_check_memory(claim)
    )
    runs_before = allowance().made
    try:
        checked = look(
            calls, inputs, streams, budget, finding=is_finding, alone=processes
        )
    except (ExhaustedError, Timeout) as error:
        if evidence.verdict in (Verdict.NOT_REFUTED, Verdict.INCONCLUSIVE):
            return unchecked
        return withdrawn(evidence, f"{evidence.statement}; {UNBELIEVED}: {error}")

    runs = allowance().made - runs_before
    details = evidence.details
    if isinstance(details, GameDetails):
        details = replace(details, independence_calls=runs)
    evidence = replace(evidence, calls=evidence.calls + runs, details=details)
    if checked.dependent:
        return withdrawn(evidence, checked.dependent)
    if checked.constant and evidence.verdict is Verdict.VIOLATED:
        evidence = replace(evidence, statement=f"{evidence.statement}; {ONE_OUTPUT}")
    if not checked.untouched:
        assumptions = [*evidence.assumptions, UNLOOKED]
        evidence = replace(evidence, assumptions=assumptions)
    return evidence


def withdrawn(evidence: Evidence, reason: str) -> Evidence:
    """Return INCONCLUSIVE evidence with this reason, without bounds or counterexample.

    If the evidence refuted the claim, the result still records this
    (``Evidence.unconfirmed``).
    """
    details = evidence.details
    if isinstance(details, GameDetails):
        details = replace(details, bound_path=[])
    return replace(
        evidence,
        verdict=Verdict.INCONCLUSIVE,
        statement=reason,
        epsilon_lower=None,
        epsilon_upper=None,
        counterexample=None,
        unconfirmed=evidence.unconfirmed or evidence.verdict in REFUTATIONS,
        details=details,
    )
