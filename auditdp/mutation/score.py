"""How many of the broken twins of its mechanism an audit refutes: the mutation score.

Each mutant is audited as the mechanism was, with the audit's own claim, pairs, forecasters, budget and alpha. The stated
law is that of the mechanism, except for exact evidence where the fault lies in code that the law shares with the sampler,
such as a scale: had the author made the mistake, the law would state it, and exact evidence would report it. A mutant is

- killed, if evidence refutes the claim for it, or its calibration, or shows that it loses more than the law that is stated
  for it; or rejected, if the harness refuses its outputs (they are not independent runs, or of another type than before);
- invalid, if it crashes: a fault that nobody could overlook;
- equivalent, if it keeps the claim. That is said where on each pair that was looked at it either does what the mechanism
  does or ignores which input it is given, with the same randomness (the runs are counted; that is no proof); where the
  broken code states a law of its own and that is certified; where the audit says so, with an argument, and the mutant is
  not refuted; and where inputs and outputs are so few that counting bounds its loss on every pair;
- a survivor otherwise. Either the audit is blind to the fault, or an argument for its equivalence is missing.

Nothing here is a claim about the mechanism, so no alpha is spent on it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from typing import Any

import numpy as np

from auditdp.adjacency import Adjacency, Pair
from auditdp.adjacency.offers import offers
from auditdp.adjacency.search import maximise
from auditdp.auditing.declaration import Audit
from auditdp.auditing.gathering import gather
from auditdp.auditing.settings import Settings
from auditdp.claims.base import Claim
from auditdp.errors import AuditError, CollectionError, did_you_mean
from auditdp.evidence.exact.evidence import has_exact_law
from auditdp.mechanism.calls import Calls
from auditdp.mechanism.capabilities import capabilities
from auditdp.mechanism.protocol import Array, as_mechanism
from auditdp.mutation.counted import Counted, counted
from auditdp.mutation.draws import FAULTS
from auditdp.mutation.mutants import Mutant, derive
from auditdp.mutation.reach import clear_caches
from auditdp.numerics.threads import one_thread
from auditdp.record.mutation import Fate, MutantResult, Mutation
from auditdp.record.results import REFUTATIONS, Evidence, Verdict
from auditdp.record.verdict import beyond_its_law

RUNS = 64
"""Runs with the same randomness that are compared on every input."""
COMPARED = 100
"""Pairs beside the played ones on which they are compared."""
FIRST = 8
"""Inputs on which a mechanism runs to see where it draws."""


@dataclass(frozen=True)
class Pairs:
    """The pairs on which mutants are compared with the mechanism: those that are played, and others of the adjacency."""

    played: Sequence[Pair]
    others: Sequence[Pair]


@dataclass(frozen=True)
class Comparison:
    """What a mutant does with the same randomness as the mechanism."""

    pair: Pair | None
    """The first pair on which it differs from the mechanism and depends on the input; None where there is none."""
    differs: bool
    depends: bool
    """Whether it depends on which input of a pair it is given, on any pair."""
    runs: int
    pairs: int

    @property
    def argument(self) -> str:
        """Why the mutant keeps the claim; empty where it is not seen to."""
        if self.pair is not None:
            return ""
        does, ignores = "does what the mechanism does", "does not depend on the input"
        what = does if not self.differs else ignores if not self.depends else f"on each pair either {does} or {ignores}"
        return f"it {what}, in all {self.runs:,} runs with the same randomness, on {self.pairs:,} pairs"


def mutation(built: Audit, settings: Settings, *, exact: Evidence | None = None) -> Mutation:
    """Audit the mutants of an audit's mechanism.

    The mechanism must not be refuted itself, nor its calibration, or every mutant is. ``exact`` is the exact evidence about
    it.

    Raises:
        MechanismError: If the mechanism cannot run.
        CollectionError: If the audit argues that a mutant is equivalent which does not exist.
    """
    with one_thread(), np.errstate(all="ignore"):  # broken code may well divide by zero
        pairs = _pairs(built, settings)
        found, unread, arguments = _derived(built, pairs)
        trial = _Trial(built, settings, exact, pairs)
        return Mutation([trial.of(mutant, arguments.get(mutant.name, "")) for mutant in found], unread)


def _derived(built: Audit, pairs: Pairs) -> tuple[list[Mutant], list[str], dict[str, str]]:
    """Return the mutants of an audit, functions that were not mutated, and the audit's arguments by mutant."""
    inputs = [data for pair in pairs.played for data in (pair.data, pair.neighbour)]
    found, unread = derive(built.mechanism, inputs[:FIRST])
    if built.is_promise:  # less noise breaks no promise about an estimate
        found = [mutant for mutant in found if mutant.operator not in FAULTS]
    return found, unread, _arguments(built.equivalent_mutants, found)


def _pairs(built: Audit, settings: Settings) -> Pairs:
    """Return the played pairs, or the inputs of a promise, each as a pair with itself; and others of the adjacency."""
    if built.is_promise:
        inputs = [Pair(data, data) for group in (built.inputs or {}).values() for data in group]
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
        found = maximise(generated, lambda _: 0.0, examples=COMPARED, seed=int(rng.integers(2**63)))
        return [pair for _, pair in found]
    return [everything[k] for k in rng.permutation(len(everything))[:COMPARED]]


def _arguments(declared: Mapping[str, str], found: Sequence[Mutant]) -> dict[str, str]:
    """Return the audit's arguments by the names of the mutants whose names or ids their shell patterns match."""
    names = list(dict.fromkeys(text for mutant in found for text in (mutant.name, mutant.id)))
    arguments: dict[str, str] = {}
    for pattern, argument in declared.items():
        matching = [m.name for m in found if fnmatchcase(m.name, pattern) or fnmatchcase(m.id, pattern)]
        if not matching:
            raise CollectionError(
                f"equivalent_mutants: no mutant is called {pattern!r}; {did_you_mean(pattern, names)}"
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
        return MutantResult(mutant.name, mutant.operator, mutant.description, fate, statement, calls, mutant.id)

    def _fate(self, mutant: Mutant, argued: str) -> tuple[Fate, str, int]:
        """Return its fate, the reason, and how many calls were spent on it."""
        try:
            comparison = _compare(mutant, self.pairs, promise=self.built.is_promise)
        except AuditError as error:
            return Fate.INVALID, str(error), 0
        if comparison.argument:
            return Fate.EQUIVALENT, comparison.argument, 0
        law = self._own_law(mutant)
        try:
            evidence = [law] if law is not None and law.verdict is Verdict.VIOLATED else self._evidence(mutant)
        except AuditError as error:
            return (Fate.REJECTED if error.__cause__ is None else Fate.INVALID), str(error), 0
        calls = sum(e.calls for e in evidence)
        killer = next((e for e in evidence if e.verdict in REFUTATIONS), None)
        if killer is not None:
            # A refuted calibration is no word against the argument that the mutant keeps the claim.
            refuted = argued and killer.verdict is Verdict.VIOLATED
            wrong = f"; so the audit's argument that it is equivalent is wrong: {argued}" if refuted else ""
            return Fate.KILLED, f"{killer.kind}: {killer.statement}{wrong}", calls
        if law is not None and law.verdict is Verdict.CERTIFIED:
            return Fate.EQUIVALENT, f"the law that the broken code states is certified: {law.statement}", calls
        if (beyond := beyond_its_law([e for e in (self.exact, *evidence) if e is not None])) is not None:
            return Fate.KILLED, beyond, calls
        if argued:
            return Fate.EQUIVALENT, argued, calls
        reasons = [f"{e.kind}: {e.statement}" for e in evidence[-1:]]
        if not reasons:
            reasons.append("the audit gathers no evidence that runs the mechanism, and its stated law shows no fault")
        try:
            count = self._counted(mutant)
        except AuditError as error:  # on an input that was not played
            return Fate.INVALID, str(error), calls
        if count is not None:
            calls += count.calls
            if count.keeps:
                return Fate.EQUIVALENT, count.statement, calls
            reasons.append(count.statement)
        if not any(comparison.pair is pair for pair in self.pairs.played):
            reasons.append(f"no played pair tells it from the mechanism, but this one does: {comparison.pair}")
        return Fate.SURVIVED, "; ".join(reasons), calls

    def _evidence(self, mutant: Mutant) -> list[Evidence]:
        """Gather the audit's evidence that runs the mechanism, cheapest first, until one refutes it or its calibration."""
        if self.built.is_promise:
            audits = [self.built]
        else:
            runnable = {"sensitivity": capabilities(mutant).is_calibrated, "game": True, "support": True}
            kinds = [kind for kind, can in runnable.items() if can and kind in self.built.asked]
            audits = [replace(self.built, evidence=(kind,)) for kind in kinds]
        found: list[Evidence] = []
        for audit in audits:
            found += gather(audit, mutant, self.settings, f"mutant {mutant.name}", control=True)
            if found[-1].verdict in REFUTATIONS:
                break
        return found

    def _counted(self, mutant: Mutant) -> Counted | None:
        """Return what counting its outputs shows of a mutant, where it is feasible."""
        claim = self.built.claim
        if not isinstance(claim, Claim) or not claim.is_point:
            return None
        streams = self.settings.streams(f"mutant {mutant.name}")
        return counted(mutant, self.built.adjacency, *claim.tangents()[0], streams)

    def _own_law(self, mutant: Mutant) -> Evidence | None:
        """Return exact evidence about the law that the broken code states; None where that does not show the fault.

        A fault that changes the stated law lies in what the law and the sampler share, such as a scale. The law is then
        that of the broken sampler as far as the mechanism's is that of its own, whatever the value of what they share.
        """
        if self.exact is None or not has_exact_law(mutant.broken, self.built.adjacency):
            return None
        inputs = [data for pair in self.pairs.played for data in (pair.data, pair.neighbour)]
        stated = [_law(mutant.original, data) for data in inputs]
        clear_caches(self.built.mechanism)
        try:
            if all(law.same_as(_law(mutant.broken, data)) for law, data in zip(stated, inputs, strict=True)):
                return None
            return gather(replace(self.built, evidence=("exact",)), mutant.broken, self.settings, "exact")[0]
        except Exception:  # a fault that the sampler bears, and the code of the law does not
            return None
        finally:
            clear_caches(self.built.mechanism)


def _compare(mutant: Mutant, pairs: Pairs, *, promise: bool) -> Comparison:
    """Run the mechanism and a mutant with the same randomness, up to the first pair that tells the mutant apart.

    On a pair on which it does what the mechanism does it keeps the claim as well as that, and on one whose inputs it does
    not tell apart it keeps any claim.
    """
    original = as_mechanism(mutant.original)
    everything = [*pairs.played, *pairs.others]
    differs = depends = False
    for number, pair in enumerate(everything, start=1):
        inputs = (pair.data, pair.neighbour)
        stated = [Calls(original)(data, RUNS, np.random.default_rng(number)) for data in inputs]
        broken = [Calls(mutant)(data, RUNS, np.random.default_rng(number)) for data in inputs]
        unlike = not all(map(_same, stated, broken))
        dependent = promise or not _same(*broken)
        differs, depends = differs or unlike, depends or dependent
        if unlike and dependent:
            return Comparison(pair, differs, depends, 2 * RUNS * number, number)
    return Comparison(None, differs, depends, 2 * RUNS * len(everything), len(everything))


def _law(mechanism: Any, data: Any) -> Any:
    able = capabilities(mechanism)
    if able.law is not None:
        return able.law(data)
    assert able.envelope is not None  # one of the two is what is exact
    return able.envelope()


def _same(first: Array, second: Array) -> bool:
    return first.dtype == second.dtype and np.array_equal(first, second, equal_nan=True)
