"""The project's own audits against the mutants of their mechanisms: a few in full, and all arguments by name.

``make mutate`` plays all of them.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from auditdp.adjacency import as_adjacency
from auditdp.auditing.collection import collect
from auditdp.auditing.declaration import Skip
from auditdp.auditing.settings import Settings
from auditdp.evidence.exact.evidence import exact_evidence
from auditdp.mutation.score import _derived, _pairs, mutation
from auditdp.record.results import Fate

ROOT = Path(__file__).parents[3]
DECLARED = {
    declared.id.rpartition("::")[2]: declared
    for file in sorted((ROOT / "audits").glob("audit_*.py"))
    for declared in collect(file, ROOT)
}
SETTINGS = Settings(alpha=1e-3, calls=50_000, root_seed=20240229, key="mutation")


def _argues(declared):
    try:
        return bool(declared.build({})[0].equivalent_mutants)
    except Skip:  # needs data that is not there
        return False


ARGUING = [name for name, declared in DECLARED.items() if _argues(declared)]


@pytest.mark.parametrize(("name", "calls"), [("customised_rr", 10_000), ("laplace_sum", 50_000)])
def test_every_mutant_that_counts_is_killed(name, calls):
    """The seed is fixed, so this never flakes; how often another seed would let a mutant live was not worked out."""
    built = DECLARED[name].build({})[0]
    law = exact_evidence(built.mechanism, built.claim, as_adjacency(built.pairs))
    result = mutation(built, replace(SETTINGS, calls=calls), exact=law)
    assert result.killed == result.counted > 5
    assert result.of(Fate.SURVIVED) == []


@pytest.mark.parametrize("name", ARGUING)
def test_every_argument_is_about_a_mutant(name):
    built, _ = DECLARED[name].build({})
    _, _, arguments = _derived(built, _pairs(built, SETTINGS))
    assert set(arguments.values()) == set(built.equivalent_mutants.values())
