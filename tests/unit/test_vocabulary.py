"""The public names: where they are found, and that one result is returned everywhere."""

from collections import Counter
from pathlib import Path

import pytest

import auditdp
from auditdp import Audit, AuditResult, PureDP, Verdict, audit_training, check
from auditdp.record.results import RunRecord
from tests.unit.parsed import parsed


def noisy(value, rng):
    return value + rng.laplace()


def test_every_public_name_is_in_the_reference():
    page = (Path(__file__).parents[2] / "docs/pages/api/index.md").read_text(
        encoding="utf-8"
    )
    assert [name for name in auditdp.__all__ if f"`{name}`" not in page] == []


def test_a_class_name_is_used_once_in_the_package():
    files = (Path(auditdp.__file__).parent).rglob("*.py")
    names = Counter(
        name
        for path in files
        for name in parsed(path).classes
        if not name.startswith("_")
    )
    assert [name for name, times in names.items() if times > 1] == []


def test_claims_end_in_dp_and_adjacencies_do_not():
    from auditdp import adjacency

    sets = [
        name
        for name in adjacency.__all__
        if hasattr(getattr(adjacency, name), "exhaustive")
    ]
    assert len(sets) >= 10
    assert [name for name in sets if name.endswith("DP")] == []


@pytest.fixture(scope="module")
def result():
    return check(noisy, PureDP(0.3), [(0.0, 1.0)], calls=3_000)


def test_a_result_is_one_type_and_reads_as_what_it_was(result):
    trained = audit_training(noisy, PureDP(1.0), (0.0, 1.0), calls=60)
    assert type(result) is type(trained) is AuditResult
    assert result.verdict is Verdict.VIOLATED
    assert result.history[-1] == (result.evidence[0].details.bound_path[-1])
    assert result.history[-1][1] == result.epsilon_lower
    assert result.to_dict()["interrupted"] is False


def test_a_recorded_result_is_read_without_what_it_did_not_have_then(result):
    run = RunRecord(0, "complete", {}, {}, "", "", [], [result])
    text = run.to_json().replace('"interrupted": false', '"of_a_later_version": 1')
    assert "interrupted" not in text
    assert RunRecord.from_json(text).results == [result]


def test_the_adjacency_of_an_audit_is_its_pairs():
    edges = auditdp.Edges(3)
    assert Audit(noisy, PureDP(1.0), edges).adjacency is edges
    assert len(Audit(noisy, PureDP(1.0), (0, 1)).adjacency.pairs()) == 1
