"""What becomes of mutants: killed, rejected, surviving, equivalent or invalid, and why."""

from dataclasses import dataclass, replace

import numpy as np
import pytest

from auditdp import AnyValues, Audit, Neighbours, Pair, PureDP, Unbiased
from auditdp.adjacency import as_adjacency
from auditdp.auditing.gathering import Settings
from auditdp.auditing.mutant_score import mutation
from auditdp.errors import CollectionError
from auditdp.evidence.exact import exact_evidence
from auditdp.mechanism.laws import LaplaceLaw
from auditdp.record.budget import Budget
from auditdp.record.traces import Fate, MutantResult, Mutation
from auditdp.testing import Response

pytestmark = pytest.mark.dear

SETTINGS = Settings(alpha=1e-6, budget=Budget(2_000), root_seed=5, key="mutation")
BIT = AnyValues((0, 1))
NUMBERS = AnyValues((0.0, 1.0), finite=True)


def judged(audit, *, exact=False, settings=SETTINGS):
    """The mutants by name, and the score."""
    law = None
    if exact:
        pairs = as_adjacency(audit.pairs)
        law = exact_evidence(audit.mechanism, audit.claim, pairs)
    result = mutation(audit, settings, exact=law)
    assert all(mutant.statement and mutant.description for mutant in result.mutants)
    return {mutant.name: mutant for mutant in result.mutants}, result


def one(mutants, part):
    (found,) = [mutant for name, mutant in mutants.items() if part in name]
    return found


def test_an_audit_that_can_fail_kills_all_mutants_that_count():
    mutants, result = judged(Audit(Response(1.0), PureDP(1.0), BIT))
    assert (result.killed, result.counted, result.of(Fate.SURVIVED)) == (3, 3, [])
    halved = one(mutants, "noise halved")
    assert halved.statement.startswith("game: ")
    assert halved.calls > 0


def two_draws(data, size, *, rng):
    """Noise after an unused draw; it raises without noise, and is shared if it repeats the first draw."""
    first, noise = rng.laplace(size=size), rng.laplace(size=size)
    if not noise.all():
        raise ZeroDivisionError
    if (first == noise).all():
        noise = np.full(size, noise[0])
    return data + noise


def test_mutants_that_are_equivalent_invalid_or_rejected():
    mutants, result = judged(Audit(two_draws, PureDP(1.0), NUMBERS))
    unused = [mutant for name, mutant in mutants.items() if "draw 1," in name]
    assert {(mutant.fate, mutant.calls) for mutant in unused} == {(Fate.EQUIVALENT, 0)}
    assert "in all 256 runs with the same randomness" in unused[0].statement
    crashing = one(mutants, "noise left out: draw 2")
    assert (crashing.fate, crashing.calls) == (Fate.INVALID, 0)
    rejected = one(mutants, "noise reused: draw 2")
    assert (rejected.fate, rejected.calls) == (Fate.REJECTED, 0)
    assert "must return independent runs" in rejected.statement
    assert result.killed == len(result.of(Fate.KILLED, Fate.REJECTED))


@dataclass(frozen=True)
class TwoBits:
    """Randomised response on two bits."""

    epsilon: float
    name: str = "TwoBits"

    def __call__(self, data, size, *, rng):
        keep = 1 / (1 + np.exp(-self.epsilon))
        first = data[0] ^ (rng.random(size) >= keep)
        second = data[1] ^ (rng.random(size) >= keep)
        return np.stack([first, second], axis=1).astype(np.int8)


BOTH = [Pair((1, 0), (0, 0)), Pair((0, 1), (0, 0))]


@pytest.mark.full
def test_a_blind_audit_does_not_kill_mutants_of_inputs_that_it_does_not_play():
    seeing = Audit(TwoBits(1.0), PureDP(1.0), Neighbours(BOTH))
    assert mutation(seeing, SETTINGS).of(Fate.SURVIVED) == []
    mutants, _ = judged(replace(seeing, play=BOTH[:1]))
    assert one(mutants, "noise left out: draw 1,").fate is Fate.KILLED
    assert one(mutants, "noise left out: draw 2,").fate is Fate.SURVIVED


@pytest.mark.full
def test_an_audit_of_inputs_with_equal_effects_kills_nothing():
    """The mechanism looks at the second bit alone, and only the first one is played."""

    def second(data, size, *, rng):
        return (data[1] ^ (rng.random(size) >= 1 / (1 + np.exp(-1.0)))).astype(np.int8)

    _, result = judged(Audit(second, PureDP(1.0), Neighbours(BOTH), play=BOTH[:1]))
    assert result.killed == 0
    assert result.counted == 3
    for survivor in result.of(Fate.SURVIVED):
        assert (
            "no played pair tells it from the mechanism, but this one does: "
            in survivor.statement
        )
        assert "(0, 1)" in survivor.statement


@dataclass(frozen=True)
class Generous:
    """Laplace noise of twice the scale that is claimed, with its law."""

    epsilon: float
    name: str = "Generous"

    @property
    def scale(self):
        return 2 / self.epsilon

    def __call__(self, data, size, *, rng):
        return data + rng.laplace(scale=self.scale, size=size)

    def distribution(self, data):
        return LaplaceLaw(np.array([float(data)]), np.array([self.scale]))


@pytest.mark.full
def test_a_mutant_that_keeps_the_claim_is_killed_where_it_loses_more_than_its_stated_law():
    audit = Audit(Generous(1.0), PureDP(1.0), BIT)
    mutants, _ = judged(audit, exact=True)
    assert one(mutants, "noise halved").fate is Fate.KILLED
    assert one(mutants, "noise halved").statement.endswith(
        "states at most 0.5: it does not draw from that law"
    )
    unplayed, _ = judged(audit, exact=True, settings=replace(SETTINGS, calls=16))
    assert one(unplayed, "noise halved").fate is Fate.SURVIVED
    without, _ = judged(replace(audit, evidence=("game",)))
    assert one(without, "noise halved").fate is Fate.SURVIVED


def test_an_audit_that_gathers_no_evidence_from_runs_kills_nothing():
    _, result = judged(
        Audit(Response(1.0), PureDP(1.0), BIT, evidence=("exact",)),
        exact=True,
    )
    assert (result.killed, result.counted) == (0, 3)
    assert all(
        "no evidence that runs the mechanism" in mutant.statement
        for mutant in result.of(Fate.SURVIVED)
    )


def arguing(arguments):
    options = {"evidence": ("game",), "equivalent_mutants": arguments}
    return Audit(Generous(1.0), PureDP(1.0), BIT, **options)


def test_an_audit_may_argue_that_a_mutant_keeps_the_claim():
    argument = "half of noise that is twice too large is enough"
    mutants, _ = judged(arguing({"noise halved: *": argument}))
    mutant = one(mutants, "noise halved")
    assert (mutant.fate, mutant.statement) == (Fate.EQUIVALENT, argument)
    # It was played all the same.
    assert SETTINGS.budget.calls / 2 < mutant.calls <= SETTINGS.budget.calls


@pytest.mark.full
def test_an_argument_that_the_evidence_refutes_does_not_save_the_mutant():
    mutants, _ = judged(arguing({"noise left out: *": "surely"}))
    mutant = one(mutants, "noise left out")
    assert mutant.fate is Fate.KILLED
    assert mutant.statement.endswith(
        "the audit's argument that it is equivalent is wrong: surely"
    )


def test_an_argument_about_no_mutant_is_refused():
    with pytest.raises(
        CollectionError, match="no mutant is called 'noise halved: draw 9'"
    ):
        judged(arguing({"noise halved: draw 9": "gone"}))


@dataclass(frozen=True)
class Within:
    """An estimate that is off by at most a known number."""

    error: float

    def __call__(self, data, size, *, rng):
        return data + rng.uniform(-self.error, self.error, size)

    def output_range(self, data):
        return data - self.error, data + self.error


@pytest.mark.full
def test_promises_about_estimates_are_held_against_a_fixed_seed_alone():
    mutants, result = judged(
        Audit(
            Within(1.0), Unbiased(lambda data: data, margin=0.1), inputs={"two": [2.0]}
        )
    )
    assert [mutant.operator for mutant in result.mutants] == ["seed fixed"]
    assert one(mutants, "seed fixed").fate is Fate.KILLED
    assert one(mutants, "seed fixed").statement.startswith("estimation: ")


@pytest.mark.full
def test_the_outcome_depends_on_the_audit_and_its_seed_alone():
    audit = Audit(Response(1.0), PureDP(1.0), BIT)
    assert mutation(audit, SETTINGS) == mutation(audit, SETTINGS)


def test_the_score_counts_mutants_that_are_neither_equivalent_nor_invalid():
    fates = [Fate.KILLED, Fate.KILLED, Fate.REJECTED, Fate.SURVIVED]
    fates += [Fate.EQUIVALENT, Fate.INVALID]
    mutants = [MutantResult(f"m{k}", "kind", "", fate) for k, fate in enumerate(fates)]
    result = Mutation(mutants)
    assert (result.killed, result.counted) == (3, 4)
    assert result.of(Fate.SURVIVED) == mutants[3:4]
