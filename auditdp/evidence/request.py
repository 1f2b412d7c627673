"""What evidence about one mechanism is asked for with: every kind is gathered from the same record.

What passes before evidence that rests on calls is believed: a look at whether these are independent runs.
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
from auditdp.mechanism.calls.independence import LEAST_BUDGET, PROCESSES, look
from auditdp.mechanism.capabilities import Capabilities, capabilities
from auditdp.mechanism.protocol import Mechanism, as_mechanism
from auditdp.numerics.streams import Streams
from auditdp.record.budget import Fault, Goal
from auditdp.record.details import GameDetails
from auditdp.record.results import REFUTATIONS, Evidence, Verdict

BRIEF_SEARCH = 4
"""A search has a quarter of its pairs where an audit is to be brief."""


@dataclass(frozen=True, kw_only=True)
class GameOptions:
    """How a game is played."""

    alpha: float
    """Probability of a false VIOLATED verdict, and of a lower bound above the truth."""
    calls: int
    """Calls of the mechanism at most, whoever makes them: those of the trace, of the search, of the confirmation and of the
    look for a smaller pair are among them.
    """
    after: int = 0
    """Runs beside these for what comes after the game."""
    find: Fault | None = None
    """A fault that is to be found; there are then at least ``calls`` calls."""
    most: int | None = None
    """Calls at most, whatever is to be found."""
    further: Sequence[Goal] = ()
    """How many calls there are altogether when the game has gone on, once for each time that it does."""
    recorded: float | None = None
    """The log wealth before it goes on for the last time, if that is known."""
    forecasters: Sequence[Any] | None = None
    """Forecasters to average; ``default_forecasters(mechanism)`` unless given."""
    play: Sequence[Pair] | None = None
    """The pairs to play, if not ``adjacency.pairs()``."""
    search: bool = True
    """Whether to look for further pairs, and for the smallest pair that shows a violation, where the adjacency generates
    any and no pairs are given.
    """
    trace: bool = True
    """Whether to trace the code first: on the pairs that are played and, where pairs are searched, on others."""
    stop_when_refuted: bool = False
    """Stop at the verdict instead of spending the budget on a better lower bound."""
    within: bool = False
    """Whether a run is dear, as a training is: pairs are chosen and laws are read off in few runs, and no smaller pair is
    looked for.
    """
    proposed: int | None = None
    """With ``within``, runs in place of ``calls`` where a trace proposes that the claim fails for a reason that it
    understands, or the bets gain; those beyond ``calls`` end at the verdict.
    """
    bounded: bool = True
    """Whether a lower bound is wanted. Without, only the claim's own level is bet against, in less time, and the bound is
    that level or 0.
    """


@dataclass(frozen=True, kw_only=True)
class EvidenceRequest:
    """What evidence about one mechanism is gathered with; a kind that does not apply gives none."""

    mechanism: Any
    """The mechanism as it is given; None for a formula."""
    claim: Claim | Promise
    neighbours: Adjacency | None
    """Which inputs are neighbours; None for a promise or a formula without pairs."""
    inputs: Mapping[str, Sequence[Any]]
    accountants: Sequence[Accountant]
    about: Description | None
    kinds: Sequence[str]
    streams: Streams
    """Randomness by (purpose, batch)."""
    calls: int
    """Calls that a kind may make."""
    named: int | None
    game: GameOptions
    """How games are played; each has an alpha of its own."""
    exhaustive: bool
    """Whether all pairs are enumerated where that can be; else the listed ones are looked at."""
    brief: bool
    """Whether searches are a quarter as long."""
    control: bool
    """Whether the mechanism is to be refuted."""

    @property
    def runs(self) -> float:
        """Runs of the mechanism at most; infinite where a game has as many as find a fault, or goes on."""
        game, kinds = self.game, self.kinds
        if game.find or game.further:
            return math.inf
        again = "one_run" in kinds  # which makes a training again
        plays = "game" in kinds and "support" in kinds
        return (
            max(self.calls, game.calls + game.after, game.proposed or 0) * (1 + plays)
            + again
        )

    @cached_property
    def adapted(self) -> Mechanism:
        """The mechanism as it is called."""
        return as_mechanism(self.mechanism)

    @cached_property
    def able(self) -> Capabilities:
        """What the mechanism offers."""
        return capabilities(self.mechanism)

    @property
    def adjacency(self) -> Adjacency:
        """Which inputs are neighbours, for evidence that is about pairs."""
        assert self.neighbours is not None  # an audit of anything else has pairs
        return self.neighbours

    @property
    def privacy(self) -> Claim:
        """The claim, of privacy."""
        assert not isinstance(
            self.claim, Promise
        )  # no evidence of privacy is asked for beside a promise
        return self.claim

    def generated(self, examples: int) -> int:
        """Return how many pairs a search generates, of those that it would generate."""
        return examples // BRIEF_SEARCH if self.brief else examples


ONE_OUTPUT = (
    "every call on an input gave the same output: a mechanism that drew its noise before all calls (when it was imported or "
    "made, or from the data by a seed) cannot be told from one without noise, and the finding is about either"
)
"""What a finding says where nothing was drawn in any call that was looked at."""
KEPT = 1e-4
"""Probability that a mechanism which remembers its answers, and keeps the claim, is taken for one without noise, at most."""
MOST_ALONE = 1_024
"""Processes that show it, at most: up to a claim of 4.7-DP they keep that probability."""
UNBELIEVED = "but this is not believed, since too little was left to show that the calls are independent runs"
"""What is said of a finding where the calls, or the time, end before that was looked at."""
UNLOOKED = "no noise is kept from the first call on, for which the mechanism was not called in a process of its own"
"""An assumption, where a platform, an input or the budget did not allow that."""


def runs_alone(claim: Claim) -> int:
    """Return how many processes, with one call each, show a mechanism that keeps the claim and remembers its answers.

    Whoever guesses the input from the first output of a process is right with probability at most (1 + δ(0)) / 2, where the
    claim is true of such outputs. So that many guesses are all right with probability ``KEPT``, or they are ``MOST_ALONE``.
    """
    wrong = (1 - claim.delta_at(0.0)) / 2
    return (
        MOST_ALONE
        if wrong <= 0
        else min(math.ceil(math.log(KEPT) / math.log1p(-wrong)), MOST_ALONE)
    )


def believed(
    evidence: Evidence,
    calls: Calls,
    inputs: Sequence[Any],
    streams: Streams,
    budget: int,
    *,
    claim: Claim | None = None,
) -> Evidence:
    """Return evidence whose calls look independent; else evidence of that alone, which decides and bounds nothing.

    A mechanism whose calls are independent passes but for a probability of a few 1e-6
    (``auditdp.mechanism.calls.independence``). A finding of which that cannot be shown with the runs and the time that are
    left is not believed either.
    """
    finding = evidence.verdict is not Verdict.NOT_REFUTED
    unlooked = replace(evidence, assumptions=[*evidence.assumptions, UNLOOKED])
    if budget < LEAST_BUDGET and not finding:  # too few to have been shown anything by
        return unlooked
    alone = PROCESSES if claim is None else runs_alone(claim)
    made, details = allowance().made, evidence.details
    try:
        looked = look(calls, inputs, streams, budget, finding=finding, alone=alone)
    except (ExhaustedError, Timeout) as error:
        if evidence.verdict in (Verdict.NOT_REFUTED, Verdict.INCONCLUSIVE):
            return unlooked
        return withdrawn(evidence, f"{evidence.statement}; {UNBELIEVED}: {error}")
    runs = allowance().made - made
    if isinstance(details, GameDetails):
        details = replace(details, independence_calls=runs)
    evidence = replace(evidence, calls=evidence.calls + runs, details=details)
    if looked.dependent:
        return withdrawn(evidence, looked.dependent)
    if looked.constant and evidence.verdict is Verdict.VIOLATED:
        evidence = replace(evidence, statement=f"{evidence.statement}; {ONE_OUTPUT}")
    return (
        evidence
        if looked.untouched
        else replace(evidence, assumptions=[*evidence.assumptions, UNLOOKED])
    )


def withdrawn(evidence: Evidence, reason: str) -> Evidence:
    """Return evidence that decides and bounds nothing, for this reason; it keeps that it refuted what is claimed."""
    details = evidence.details
    return replace(
        evidence,
        verdict=Verdict.INCONCLUSIVE,
        statement=reason,
        epsilon_lower=None,
        epsilon_upper=None,
        counterexample=None,
        unconfirmed=evidence.unconfirmed or evidence.verdict in REFUTATIONS,
        details=replace(details, bound_path=[])
        if isinstance(details, GameDetails)
        else details,
    )
