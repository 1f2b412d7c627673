"""How many mutants of its mechanism an audit refutes: the mutation score.

Each mutant is audited as the mechanism was, with the audit's own claim, pairs, forecasters, budget and alpha, and states the
law of the mechanism. A mutant is

- killed, if evidence refutes the claim for it, or shows that it loses more than the law that is stated for it; or rejected,
  if the harness refuses its outputs (they are not independent runs, or of another type than before);
- invalid, if it crashes: a fault that nobody could overlook;
- equivalent, if it keeps the claim. That is reported where, on each pair that was compared, it either does what the
  mechanism does or ignores which input it is given, with the same randomness (the runs are counted; that is no proof);
  and where the audit gives an argument and the mutant is not refuted;
- a survivor otherwise. Either the audit is blind to the fault, or an argument for its equivalence is missing.

Nothing here is a claim about the mechanism, so no alpha is spent on it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase

import numpy as np

from auditdp.adjacency import Adjacency, Pair
from auditdp.adjacency.adjacency import offers
from auditdp.adjacency.pair_search import maximise
from auditdp.auditing.declaration import Audit
from auditdp.auditing.gathering import Settings, gather
from auditdp.auditing.mutants import Mutant, mutants
from auditdp.auditing.mutated_draws import FAULTS
from auditdp.errors import AuditError, CollectionError, did_you_mean
from auditdp.mechanism.calls import Calls
from auditdp.mechanism.protocol import Array, as_mechanism
from auditdp.numerics.rounding import count
from auditdp.numerics.streams import one_thread
from auditdp.record.results import Evidence, Verdict
from auditdp.record.traces import Fate, MutantResult, Mutation
from auditdp.record.verdict import beyond_its_law

RUNS = 64
"""Runs with the same randomness that are compared on every input."""
COMPARED = 100
"""Pairs beside the played ones on which they are compared."""
FIRST = 8
"""Inputs on which a mechanism runs to see where it draws."""
RUNNING = ("game", "support")
"""Kinds of evidence that run the mechanism, cheapest first."""


@dataclass(frozen=True)
class Pairs:
    """The pairs on which mutants are compared with the mechanism: those that are played, and others of the adjacency."""

    played: Sequence[Pair]
    others: Sequence[Pair]

    @property
    def all(self) -> list[Pair]:
        """All of them, the played ones first."""
        return [*self.played, *self.others]


def mutation(
    built: Audit, settings: Settings, *, exact: Evidence | None = None
) -> Mutation:
    """Audit the mutants of an audit's mechanism.

    The claim about the mechanism must not be refuted, or every mutant is refuted as well. ``exact`` is the exact evidence
    about the mechanism.

    Raises:
        MechanismError: If the mechanism cannot run.
        CollectionError: If the audit argues that a mutant is equivalent which does not exist.
    """
    with one_thread(), np.errstate(all="ignore"):  # broken code may well divide by zero
        pairs = _pairs(built, settings)
        found = _mutants(built, pairs)
        arguments = _arguments(built.equivalent_mutants, found)
        trial = _Trial(built, settings, exact, pairs)
        return Mutation(
            [trial.of(mutant, arguments.get(mutant.name, "")) for mutant in found]
        )


def _mutants(built: Audit, pairs: Pairs) -> list[Mutant]:
    """Return the mutants of an audit's mechanism that its claim is about."""
    inputs = [data for pair in pairs.played for data in (pair.data, pair.neighbour)]
    found = mutants(built.mechanism, inputs[:FIRST])
    if not built.is_promise:
        return found
    # Less noise breaks no promise about an estimate.
    return [mutant for mutant in found if mutant.operator not in FAULTS]


def _pairs(built: Audit, settings: Settings) -> Pairs:
    """Return the played pairs, or the inputs of a promise, each as a pair with itself; and others of the adjacency."""
    if built.is_promise:
        inputs = [
            Pair(data, data)
            for group in (built.inputs or {}).values()
            for data in group
        ]
        return Pairs(inputs, [])
    adjacency = built.adjacency
    played = list(built.play) if built.play is not None else adjacency.pairs()
    return Pairs(played, _others(adjacency, settings))


def _others(adjacency: Adjacency, settings: Settings) -> list[Pair]:
    """Return pairs beside the played ones: a sample of all of them, or generated ones."""
    rng = settings.streams("mutants")("pairs", 0)
    everything = adjacency.exhaustive()
    if everything is None:
        generated = offers(adjacency).generated
        if generated is None:
            return []
        found = maximise(
            generated, lambda _: 0.0, examples=COMPARED, seed=int(rng.integers(2**63))
        )
        return [pair for _, pair in found]
    return [everything[k] for k in rng.permutation(len(everything))[:COMPARED]]


def _arguments(declared: Mapping[str, str], found: Sequence[Mutant]) -> dict[str, str]:
    """Return the audit's arguments by the names of the mutants that their shell patterns match."""
    arguments: dict[str, str] = {}
    for pattern, argument in declared.items():
        matching = [
            mutant.name for mutant in found if fnmatchcase(mutant.name, pattern)
        ]
        if not matching:
            known = did_you_mean(pattern, [mutant.name for mutant in found])
            raise CollectionError(
                f"equivalent_mutants: no mutant is called {pattern!r}; {known}"
            )
        arguments |= dict.fromkeys(matching, argument)
    return arguments


@dataclass(frozen=True)
class _Trial:
    """How an audit judges mutants."""

    built: Audit
    settings: Settings
    exact: Evidence | None
    pairs: Pairs

    def of(self, mutant: Mutant, argued: str) -> MutantResult:
        """Return what became of a mutant; ``argued`` is the audit's argument that it is equivalent."""
        fate, statement, calls = self._fate(mutant, argued)
        return MutantResult(
            mutant.name, mutant.operator, mutant.description, fate, statement, calls
        )

    def _fate(self, mutant: Mutant, argued: str) -> tuple[Fate, str, int]:
        """Return its fate, the reason, and how many calls were spent on it."""
        try:
            telling = _telling(mutant, self.pairs.all, promise=self.built.is_promise)
        except AuditError as error:
            return Fate.INVALID, str(error), 0
        if telling is None:
            pairs = len(self.pairs.all)
            argument = (
                f"on each of {count(pairs, 'pair')} it either does what the mechanism does or does not depend on the input, "
                f"in all {2 * RUNS * pairs:,} runs with the same randomness"
            )
            return Fate.EQUIVALENT, argument, 0
        try:
            evidence = self._evidence(mutant)
        except AuditError as error:
            return (
                (Fate.REJECTED if error.__cause__ is None else Fate.INVALID),
                str(error),
                0,
            )
        calls = sum(e.calls for e in evidence)
        killer = next((e for e in evidence if e.verdict is Verdict.VIOLATED), None)
        if killer is not None:
            wrong = (
                f"; so the audit's argument that it is equivalent is wrong: {argued}"
                if argued
                else ""
            )
            return Fate.KILLED, f"{killer.kind}: {killer.statement}{wrong}", calls
        if (
            beyond := beyond_its_law(
                [e for e in (self.exact, *evidence) if e is not None]
            )
        ) is not None:
            return Fate.KILLED, beyond, calls
        if argued:
            return Fate.EQUIVALENT, argued, calls
        reasons = [f"{e.kind}: {e.statement}" for e in evidence[-1:]]
        if not reasons:
            reasons.append("the audit gathers no evidence that runs the mechanism")
        if not any(telling is pair for pair in self.pairs.played):
            reasons.append(
                f"no played pair tells it from the mechanism, but this one does: {telling}"
            )
        return Fate.SURVIVED, "; ".join(reasons), calls

    def _evidence(self, mutant: Mutant) -> list[Evidence]:
        """Gather the audit's evidence that runs the mechanism, cheapest first, until one refutes the claim."""
        audits = [self.built]
        if not self.built.is_promise:
            audits = [
                replace(self.built, evidence=(kind,))
                for kind in RUNNING
                if kind in self.built.asked
            ]
        found: list[Evidence] = []
        for audit in audits:
            found += gather(
                audit, mutant, self.settings, f"mutant {mutant.name}", control=True
            )
            if found[-1].verdict is Verdict.VIOLATED:
                break
        return found


def _telling(mutant: Mutant, pairs: Sequence[Pair], *, promise: bool) -> Pair | None:
    """Return the first pair on which a mutant differs from the mechanism and depends on the input; None if there is none.

    Both run with the same randomness. On a pair on which the mutant does what the mechanism does it keeps the claim as well
    as that, and on one whose inputs it does not tell apart it keeps any claim. It may break a promise on any input.
    """
    original = as_mechanism(mutant.original)
    for number, pair in enumerate(pairs, start=1):
        inputs = (pair.data, pair.neighbour)
        stated = [
            Calls(original)(data, RUNS, np.random.default_rng(number))
            for data in inputs
        ]
        broken = [
            Calls(mutant)(data, RUNS, np.random.default_rng(number)) for data in inputs
        ]
        differs = not all(map(_same, stated, broken))
        if differs and (promise or not _same(*broken)):
            return pair
    return None


def _same(first: Array, second: Array) -> bool:
    return first.dtype == second.dtype and np.array_equal(first, second, equal_nan=True)
