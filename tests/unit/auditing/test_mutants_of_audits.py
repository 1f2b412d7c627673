"""The project's own audits against the mutants of their mechanisms: a few in full, and all arguments by name.

``make mutate`` plays all of them.
"""

from pathlib import Path

import pytest

from auditdp.adjacency import as_adjacency
from auditdp.auditing.decorator import collect
from auditdp.auditing.gathering import Settings
from auditdp.auditing.mutant_score import _arguments, _mutants, _pairs, mutation
from auditdp.errors import Skip
from auditdp.evidence.exact import exact_evidence
from auditdp.record.budget import Budget
from auditdp.record.traces import Fate

pytestmark = pytest.mark.dear

ROOT = Path(__file__).parents[3]
ARGUING = [
    file
    for file in sorted((ROOT / "audits").glob("audit_*.py"))
    if "equivalent_mutants=" in file.read_text()
]
SETTINGS = Settings(
    alpha=1e-3, budget=Budget(10_000), root_seed=20240229, key="mutation"
)


@pytest.mark.full
def test_every_mutant_that_counts_is_killed():
    """The seed is fixed, so this never flakes; how often another seed would let a mutant live was not worked out."""
    declared = collect(ROOT / "audits" / "audit_edges.py", ROOT)
    (built,) = [
        each.build({})[0] for each in declared if each.id.endswith("::customised_rr")
    ]
    law = exact_evidence(built.mechanism, built.claim, as_adjacency(built.pairs))
    result = mutation(built, SETTINGS, exact=law)
    assert result.killed == result.counted >= 3
    assert result.of(Fate.SURVIVED) == []


@pytest.mark.parametrize("file", ARGUING, ids=lambda file: file.stem)
def test_every_argument_is_about_a_mutant(file):
    seen = set()
    for declared in collect(file, ROOT):
        try:
            built, _ = declared.build({})
        except Skip:  # needs data that is not there
            continue
        arguing = type(built.mechanism), *built.equivalent_mutants
        if arguing not in seen and built.equivalent_mutants:
            seen.add(arguing)
            arguments = _arguments(
                built.equivalent_mutants, _mutants(built, _pairs(built, SETTINGS))
            )
            assert set(arguments.values()) == set(built.equivalent_mutants.values()), (
                declared.id
            )
