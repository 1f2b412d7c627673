"""The mutation score of an audit: the share of its mechanism's mutants that it detects.

A mutant is a copy of the mechanism with one fault. Each mutant is audited as the
mechanism was, with the same claim, pairs, forecasters, budget and alpha. The mutant
states the law of the mechanism. A mutant is

- killed, if evidence refutes the claim for it, or if it loses more than its stated law;
- rejected, if the harness refuses its outputs, because they are not independent runs or
  have another type than before. It counts as killed;
- invalid, if it crashes: nobody could overlook such a fault. It does not count;
- equivalent, if it satisfies the claim. This is reported if on each compared pair, with
  the same randomness, it either returns the same as the mechanism or ignores the input.
  The number of compared runs is stated; this is not a proof. It is also reported if the
  audit gives an argument and does not refute the mutant. It does not count;
- a survivor otherwise. Then the audit cannot detect the fault, or an argument for the
  equivalence is missing.

None of this is a claim about the mechanism, so it spends no alpha.
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


class MutantLimits:
    """Limits of the comparison of a mutant with its mechanism."""

    runs = 64
    """Number of runs with the same randomness that are compared on every input."""
    pairs = 100
    """Largest number of compared pairs, in addition to the played ones."""
    first_pairs = 8
    """Largest number of inputs (not pairs) on which a mechanism runs to find where it
    draws."""


RUNNING = ("game", "support")
"""Kinds of evidence that test a mutant of a mechanism with a privacy claim, cheapest
first."""


@dataclass(frozen=True)
class Pairs:
    """The pairs on which mutants are compared with the mechanism.

    Attributes:
        played: The pairs that the audit plays.
        others: Other pairs of the adjacency.
    """

    played: Sequence[Pair]
    others: Sequence[Pair]

    @property
    def all(self) -> list[Pair]:
        """All pairs, the played ones first."""
        return [*self.played, *self.others]


def mutation(
    built: Audit, settings: Settings, *, exact: Evidence | None = None
) -> Mutation:
    """Audit the mutants of an audit's mechanism, and return the fate of each.

    Args:
        built: The audit. Its claim must not be refuted for the mechanism, since every
            mutant would then be refuted as well.
        settings: The settings of the run.
        exact: The exact evidence about the mechanism, if there is any.

    Raises:
        MechanismError: If the mechanism cannot run.
        CollectionError: If ``equivalent_mutants`` names a mutant that does not exist.
    """
    # Broken code may divide by zero.
    with one_thread(), np.errstate(all="ignore"):
        pairs = _pairs(built, settings)
        found = _mutants(built, pairs)
        arguments = _arguments(built.equivalent_mutants, found)
        trial = _Trial(built, settings, exact, pairs)
        return Mutation(
            [trial.of(mutant, arguments.get(mutant.name, "")) for mutant in found]
        )


def _mutants(built: Audit, pairs: Pairs) -> list[Mutant]:
    """Return the mutants with faults that may break the audit's claim."""
    inputs = [data for pair in pairs.played for data in (pair.data, pair.neighbour)]
    found = mutants(built.mechanism, inputs[: MutantLimits.first_pairs])
    if not built.is_promise:
        return found
    # Less noise breaks no promise about an estimate.
    return [mutant for mutant in found if mutant.operator not in FAULTS]


def _pairs(built: Audit, settings: Settings) -> Pairs:
    """Return the pairs for comparisons; an input of a promise is a pair with itself."""
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
    """Return at most ``MutantLimits.pairs`` random pairs of the adjacency.

    They are drawn from all pairs if the adjacency enumerates them, and generated
    otherwise. The list is empty if the adjacency does neither.
    """
    rng = settings.streams("mutants")("pairs", 0)
    everything = adjacency.exhaustive()
    if everything is None:
        generated = offers(adjacency).generated
        if generated is None:
            return []
        found = maximise(
            generated,
            lambda _: 0.0,
            examples=MutantLimits.pairs,
            seed=int(rng.integers(2**63)),
        )
        return [pair for _, pair in found]
    return [
        everything[k] for k in rng.permutation(len(everything))[: MutantLimits.pairs]
    ]


def _arguments(declared: Mapping[str, str], found: Sequence[Mutant]) -> dict[str, str]:
    """Return the audit's argument for the equivalence of each mutant that it names.

    Args:
        declared: Arguments by the name or the shell pattern of mutants.
        found: The mutants.

    Returns:
        Arguments by the name of the mutant.
    """
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
    """Judge of the mutants of one audit's mechanism."""

    built: Audit
    settings: Settings
    exact: Evidence | None
    pairs: Pairs

    def of(self, mutant: Mutant, argued: str) -> MutantResult:
        """Return the fate of a mutant, with the reason and the number of calls."""
        fate, statement, calls = self._fate(mutant, argued)
        return MutantResult(
            mutant.name, mutant.operator, mutant.description, fate, statement, calls
        )

    def _fate(self, mutant: Mutant, argued: str) -> tuple[Fate, str, int]:
        """Return the fate of a mutant, the reason, and the number of its calls.

        ``argued`` is the audit's argument that the mutant is equivalent, or empty.
        """
        # A mutant that does the same on all pairs cannot be refuted, so it is not audited.
        try:
            telling = _telling(mutant, self.pairs.all, promise=self.built.is_promise)
        except AuditError as error:
            return Fate.INVALID, str(error), 0
        if telling is None:
            pairs = len(self.pairs.all)
            argument = (
                f"on each of {count(pairs, 'pair')} it either does what the mechanism "
                "does or does not depend on the input, "
                f"in all {2 * MutantLimits.runs * pairs:,} runs with the same randomness"
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
        # Evidence that refutes outranks the audit's argument that the mutant is harmless.
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
                f"no tested pair distinguishes it from the mechanism, but this one does: {telling}"
            )
        return Fate.SURVIVED, "; ".join(reasons), calls

    def _evidence(self, mutant: Mutant) -> list[Evidence]:
        """Gather evidence that runs the mutant, until one kind refutes the claim.

        The cheapest kind comes first.
        """
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
    """Return the first pair on which the mutant could break the claim.

    Mutant and mechanism run with the same randomness. If the mutant returns the same as
    the mechanism on a pair, it satisfies the claim there as the mechanism does. If it
    ignores which input of the pair it is given, it satisfies every privacy claim there.
    That is no argument for a claim about an estimate (``promise``).

    Returns:
        The pair, or None if there is none.
    """
    original = as_mechanism(mutant.original)
    for number, pair in enumerate(pairs, start=1):
        inputs = (pair.data, pair.neighbour)
        stated = [
            Calls(original)(data, MutantLimits.runs, np.random.default_rng(number))
            for data in inputs
        ]
        broken = [
            Calls(mutant)(data, MutantLimits.runs, np.random.default_rng(number))
            for data in inputs
        ]
        differs = not all(map(_same, stated, broken))
        if differs and (promise or not _same(*broken)):
            return pair
    return None


def _same(first: Array, second: Array) -> bool:
    return first.dtype == second.dtype and np.array_equal(first, second, equal_nan=True)
