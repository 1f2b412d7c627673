"""What becomes of mutants: killed, rejected, surviving, equivalent or invalid, and why."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import pytest

from auditdp import AnyValues, Audit, Neighbours, Pair, PureDP, Unbiased
from auditdp.adjacency import as_adjacency
from auditdp.auditing.settings import Settings
from auditdp.errors import CollectionError, MechanismError
from auditdp.evidence.exact.evidence import exact_evidence
from auditdp.mechanism.laws import LaplaceLaw
from auditdp.mutation.mutants import mutants
from auditdp.mutation.score import _arguments, mutation
from auditdp.record.mutation import Fate, MutantResult, Mutation
from auditdp.testing import LaplaceMechanism, Response

pytestmark = pytest.mark.dear

SETTINGS = Settings(alpha=1e-6, calls=3_000, root_seed=5, key="mutation")


def judged(audit, *, exact=False, settings=SETTINGS):
    """Fates by name, after checking that every mutant has one and says why."""
    law = exact_evidence(audit.mechanism, audit.claim, as_adjacency(audit.pairs)) if exact else None
    result = mutation(audit, settings, exact=law)
    assert all(mutant.statement and mutant.description for mutant in result.mutants)
    return {mutant.name: mutant for mutant in result.mutants}, result


def one(mutants, part):
    (found,) = [mutant for name, mutant in mutants.items() if part in name]
    return found


def test_an_audit_that_can_fail_kills_all_that_count():
    mutants, result = judged(Audit(Response(1.0), PureDP(1.0), AnyValues((0, 1))))
    assert (result.killed, result.counted, result.of(Fate.SURVIVED)) == (9, 9, [])
    assert one(mutants, "noise halved").statement.startswith("game: ")
    assert one(mutants, "noise halved").calls > 0


def test_what_ignores_its_input_is_equivalent_and_what_crashes_is_invalid():
    mutants, result = judged(Audit(LaplaceMechanism(1.0), PureDP(1.0), AnyValues((0.0, 1.0), finite=True)))
    pure_noise = one(mutants, "→ rng.laplace(scale=self.scale, size=size)")
    assert pure_noise.fate is Fate.EQUIVALENT
    assert "does not depend on the input, in all 256 runs" in pure_noise.statement
    scalar = one(mutants, "size=size) → data")
    assert (scalar.fate, scalar.calls) == (Fate.INVALID, 0)
    assert "returned shape ()" in scalar.statement
    assert result.killed == result.counted == len(mutants) - 2


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
def test_a_blind_audit_does_not_kill_what_it_does_not_play():
    seeing = Audit(TwoBits(1.0), PureDP(1.0), Neighbours(BOTH))
    assert mutation(seeing, SETTINGS).of(Fate.SURVIVED) == []
    mutants, _ = judged(replace(seeing, play=BOTH[:1]))
    assert one(mutants, "noise left out: draw 1,").fate is Fate.KILLED
    ignoring = one(mutants, "data[1] ^ (rng.random(size) >= keep) → rng.random(size) >= keep")
    assert ignoring.statement.startswith("it on each pair either does what the mechanism does or does not depend")
    survivor = one(mutants, "noise left out: draw 2,")
    assert survivor.fate is Fate.SURVIVED
    everything = AnyValues(((0, 0), (1, 0), (0, 1)))
    mutants, _ = judged(replace(seeing, pairs=everything, play=BOTH[:1]))
    survivor = one(mutants, "noise left out: draw 2,")
    assert survivor.fate is Fate.SURVIVED
    assert "; counting 8,192 runs on each of 3 inputs shows a loss of at least " in survivor.statement


@pytest.mark.full
def test_what_only_uses_the_slack_up_is_equivalent_where_outputs_can_be_counted():
    mutants, result = judged(Audit(Response(1.0), PureDP(3.0), AnyValues((0, 1)), evidence=("game",)))
    halved = one(mutants, "noise halved")
    assert halved.fate is Fate.EQUIVALENT
    assert "shows that it keeps the claim with δ = 0.0082: no event of any pair" in halved.statement
    assert halved.calls > SETTINGS.calls
    assert one(mutants, "noise left out").fate is Fate.KILLED
    assert result.of(Fate.SURVIVED) == []


@pytest.mark.full
def test_an_audit_of_inputs_that_do_not_differ_in_what_matters_kills_nothing():
    """The mechanism looks at the second bit alone, and only the first one is played."""

    def second(data, size, *, rng):
        return (data[1] ^ (rng.random(size) >= 1 / (1 + np.exp(-1.0)))).astype(np.int8)

    _, result = judged(Audit(second, PureDP(1.0), Neighbours(BOTH), play=BOTH[:1]))
    assert result.killed == 0
    assert result.counted > 3


@pytest.mark.full
def test_a_fault_that_shows_only_on_inputs_that_are_not_played_survives_and_the_input_is_named():
    def clipped(data, size, *, rng):
        return min(data, 1) + rng.laplace(size=size)

    pairs = Neighbours([(0, 1), (0, 3)])
    mutants, _ = judged(Audit(clipped, PureDP(1.0), pairs, play=[Pair(0, 1)]))
    survivor = one(mutants, "clip left out")
    assert survivor.fate is Fate.SURVIVED
    assert "no played pair tells it from the mechanism, but this one does: " in survivor.statement
    assert survivor.statement.endswith(("0 | 3", "3 | 0"))
    mutants, _ = judged(Audit(clipped, PureDP(1.0), pairs))
    assert one(mutants, "clip left out").fate is Fate.KILLED
    mutants, _ = judged(Audit(clipped, PureDP(1.0), Neighbours([(0, 1)])))
    assert one(mutants, "clip left out").fate is Fate.EQUIVALENT
    assert "it does what the mechanism does, in all " in one(mutants, "clip left out").statement


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
def test_broken_code_that_states_a_certified_law_is_equivalent():
    audit = Audit(Generous(1.0), PureDP(1.0), AnyValues((0, 1)))
    mutants, _ = judged(audit, exact=True)
    for part in ("parameter doubled: epsilon", "Generous.scale: 2 / self.epsilon → 2", "Generous.scale: self.epsilon"):
        assert one(mutants, part).fate is Fate.EQUIVALENT
        assert "states is certified: Exact ε = 1" in one(mutants, part).statement or "→ 2" in part
    # The law does not know what the call does to the noise, so it is no argument; the game shows more than it allows.
    for part in ("noise halved", "parameter halved in Generous.__call__"):
        assert one(mutants, part).fate is Fate.KILLED
        assert one(mutants, part).statement.endswith("states at most 0.5: it does not draw from that law")
    unplayed, _ = judged(audit, exact=True, settings=replace(SETTINGS, calls=16))
    assert one(unplayed, "noise halved").fate is Fate.SURVIVED
    without, _ = judged(replace(audit, evidence=("game",)))
    assert one(without, "parameter doubled: epsilon").fate is Fate.SURVIVED


def test_exact_evidence_kills_a_fault_that_the_law_shares_with_the_sampler():
    few = replace(SETTINGS, calls=16)
    mutants, _ = judged(
        Audit(LaplaceMechanism(1.0), PureDP(1.0), AnyValues((0.0, 1.0), finite=True)), exact=True, settings=few
    )
    shared = one(mutants, "parameter halved: scale")
    assert (shared.fate, shared.calls) == (Fate.KILLED, 0)
    assert shared.statement.startswith("exact: Exact ε = 2 ")
    # The law knows nothing of what the call does to the noise, and sixteen calls show nothing.
    assert one(mutants, "noise halved").fate is Fate.SURVIVED


def test_an_audit_of_exact_evidence_alone_is_blind_to_what_the_law_does_not_share():
    _, result = judged(Audit(Response(1.0), PureDP(1.0), AnyValues((0, 1)), evidence=("exact",)), exact=True)
    assert all(mutant.statement.startswith("exact: ") for mutant in result.of(Fate.KILLED))
    blind = [mutant for mutant in result.of(Fate.SURVIVED) if mutant.operator.startswith("noise")]
    assert blind
    assert all("no evidence that runs the mechanism" in mutant.statement for mutant in blind)


def sharing(data, size, *, rng):
    fresh = True
    noise = rng.laplace(size=size if fresh else 1)
    return data + noise * np.ones(size)


def test_noise_shared_between_runs_is_rejected_and_counts_as_killed():
    mutants, result = judged(Audit(sharing, PureDP(1.0), AnyValues((0.0, 1.0), finite=True)))
    rejected = one(mutants, "condition ignored in sharing: size if fresh else 1 → 1")
    assert (rejected.fate, rejected.calls) == (Fate.REJECTED, 0)
    assert "must return independent runs" in rejected.statement
    assert rejected in result.of(Fate.REJECTED)
    assert result.killed == len(result.of(Fate.KILLED, Fate.REJECTED))


@pytest.mark.full
def test_a_mutant_that_crashes_while_its_outputs_are_counted_is_invalid(monkeypatch):
    """Counting runs it on inputs that nobody played or compared."""

    def crashing(mutant, adjacency, epsilon, delta, streams):
        raise MechanismError(f"{mutant.name} crashed on input 7")

    monkeypatch.setattr("auditdp.mutation.score.counted", crashing)
    mutants, _ = judged(Audit(Response(1.0), PureDP(3.0), AnyValues((0, 1)), evidence=("game",)))
    halved = one(mutants, "noise halved")
    assert (halved.fate, halved.calls) == (Fate.INVALID, SETTINGS.calls)
    assert halved.statement.endswith("crashed on input 7")


def arguing(arguments):
    pairs = AnyValues((0, 1))
    return Audit(Generous(1.0), PureDP(1.0), pairs, evidence=("game",), equivalent_mutants=arguments)


def test_an_audit_may_argue_that_a_mutant_keeps_the_claim():
    argument = "half of noise that is twice too large is enough"
    mutants, _ = judged(arguing({"noise halved: *": argument}))
    mutant = one(mutants, "noise halved")
    assert (mutant.fate, mutant.statement) == (Fate.EQUIVALENT, argument)
    assert mutant.calls == SETTINGS.calls  # it was played all the same


@pytest.mark.full
def test_an_argument_that_the_evidence_refutes_does_not_save_the_mutant():
    mutants, _ = judged(arguing({"noise left out: *": "surely"}))
    mutant = one(mutants, "noise left out")
    assert mutant.fate is Fate.KILLED
    assert mutant.statement.endswith("the audit's argument that it is equivalent is wrong: surely")


def test_an_argument_about_no_mutant_is_refused():
    with pytest.raises(CollectionError, match="no mutant is called 'noise halved: draw 9'"):
        judged(arguing({"noise halved: draw 9": "gone"}))


def before_renaming():
    def noisy(data, size, *, rng):
        noise = rng.laplace(size=size)
        return data + 0.5 * noise

    return noisy


def after_renaming():
    def noisy(data, size, *, rng):
        drawn = rng.laplace(size=size)
        return data + 0.5 * drawn

    return noisy


def test_an_argument_by_id_survives_that_variables_are_renamed():
    before, after = (mutants(function(), [0.0]) for function in (before_renaming, after_renaming))
    for old, new in zip(before, after, strict=True):
        assert _arguments({old.id: "an argument"}, after) == {new.name: "an argument"}
    renamed = [old.name for old, new in zip(before, after, strict=True) if old.name != new.name]
    assert renamed
    for name in renamed:
        with pytest.raises(CollectionError, match="no mutant is called"):
            _arguments({name: "an argument"}, after)


@pytest.mark.full
def test_promises_about_estimates_are_held_against_faults_of_the_code_alone():
    def shifted(data, size, *, rng):
        return data + 5.0 + rng.normal(size=size) - 5.0

    audit = Audit(shifted, Unbiased(lambda data: data, margin=0.5), inputs={"two": [2.0]})
    mutants, result = judged(audit)
    assert not any(mutant.operator.startswith("noise") for mutant in result.mutants)
    assert one(mutants, "5.0 + rng.normal(size=size) → data + 5.0").fate is Fate.INVALID
    assert one(mutants, "- 5.0 → data + 5.0 + rng.normal(size=size)").fate is Fate.KILLED
    assert one(mutants, "data + 5.0 → data").statement.startswith("estimation: ")


@pytest.mark.full
def test_the_outcome_depends_on_the_audit_and_its_seed_alone():
    audit = Audit(Response(1.0), PureDP(1.0), AnyValues((0, 1)))
    assert mutation(audit, SETTINGS) == mutation(audit, SETTINGS)


def test_the_score_counts_what_is_neither_equivalent_nor_invalid():
    fates = [Fate.KILLED, Fate.KILLED, Fate.REJECTED, Fate.SURVIVED, Fate.EQUIVALENT, Fate.INVALID]
    result = Mutation([MutantResult(f"m{k}", "kind", "what", fate) for k, fate in enumerate(fates)])
    assert (result.killed, result.counted) == (3, 4)
    assert [mutant.name for mutant in result.of(Fate.SURVIVED)] == ["m3"]
