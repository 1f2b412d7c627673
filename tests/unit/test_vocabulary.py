"""The public names: where they are found, what old ones still do, and that one result is returned everywhere."""

import ast
import warnings
from collections import Counter
from pathlib import Path

import numpy as np
import pytest

import auditdp
from auditdp import Audit, AuditResult, PureDP, Verdict, audit_training, check
from auditdp.errors import RENAMED, ConfigurationError, renamed_keywords
from auditdp.record.results import RunRecord

MODULES = ("auditdp", "auditdp.adjacency", "auditdp.auditing.checking", "auditdp.training")
OLD = [
    *((module, old) for module in MODULES[:2] for old in ("EdgeDP", "EdgeLDP", "ListsLDP", "NodeDP")),
    ("auditdp", "Checked"),
    ("auditdp.auditing.checking", "Checked"),
    ("auditdp.training", "AuditedTraining"),
]


def noisy(value, rng):
    return value + rng.laplace()


@pytest.mark.parametrize(("module", "old"), OLD)
def test_an_old_name_is_the_new_one_and_says_so(module, old):
    home = __import__(module, fromlist=["_"])
    with pytest.warns(DeprecationWarning, match=rf"{module}\.{old} is called {RENAMED[old]} now") as caught:
        found = getattr(home, old)
    assert found is getattr(home, RENAMED[old])
    assert {warning.filename for warning in caught} == {__file__}
    with pytest.warns(DeprecationWarning, match=f"write {RENAMED[old]}"):
        exec(f"from {module} import {old}", {})


def test_every_old_name_is_looked_up():
    assert {old for _, old in OLD} == set(RENAMED)


def test_old_and_new_names_make_one_class():
    with pytest.warns(DeprecationWarning, match="Edges"):
        old = auditdp.EdgeDP(4)
    assert isinstance(old, auditdp.Edges)
    assert old == auditdp.Edges(4)
    with pytest.warns(DeprecationWarning, match="Edges"):
        assert isinstance(auditdp.Edges(4), auditdp.EdgeDP)


@pytest.mark.parametrize("module", MODULES)
def test_a_name_that_never_was_is_none_and_an_old_one_of_elsewhere_neither(module):
    home = __import__(module, fromlist=["_"])
    with pytest.raises(AttributeError, match=f"module '{module}' has no attribute 'Nothing'"):
        _ = home.Nothing
    if module.startswith("auditdp.a"):
        with pytest.raises(AttributeError, match="AuditedTraining"):
            _ = __import__("auditdp.adjacency", fromlist=["_"]).AuditedTraining


def test_every_public_name_is_in_the_reference():
    page = (Path(__file__).parents[2] / "docs/pages/api/index.md").read_text(encoding="utf-8")
    assert [name for name in auditdp.__all__ if f"`{name}`" not in page] == []


def test_a_class_name_is_used_once_in_the_package():
    files = (Path(auditdp.__file__).parent).rglob("*.py")
    nodes = (node for path in files for node in ast.parse(path.read_text(encoding="utf-8")).body)
    names = Counter(node.name for node in nodes if isinstance(node, ast.ClassDef) and not node.name.startswith("_"))
    assert [name for name, times in names.items() if times > 1] == []


def test_claims_end_in_dp_and_adjacencies_do_not():
    from auditdp import adjacency

    sets = [name for name in adjacency.__all__ if hasattr(getattr(adjacency, name), "exhaustive")]
    assert len(sets) >= 10
    assert [name for name in sets if name.endswith("DP")] == []


@pytest.fixture(scope="module")
def result():
    return check(noisy, PureDP(0.3), [(0.0, 1.0)], calls=3_000)


def test_a_result_is_one_type_and_reads_as_what_it_was(result):
    trained = audit_training(noisy, PureDP(1.0), (0.0, 1.0), calls=60)
    assert type(result) is type(trained) is AuditResult
    with pytest.warns(DeprecationWarning, match=r"leave out \.result"):
        assert result.result is result
    assert result.verdict is Verdict.VIOLATED
    assert result.history[-1] == (result.evidence[0].details.bound_path[-1])
    assert result.history[-1][1] == result.epsilon_lower
    assert result.to_dict()["interrupted"] is False


def test_a_recorded_result_is_read_without_what_it_did_not_have_then(result):
    run = RunRecord(0, "complete", {}, {}, "", "", [], [result])
    text = run.to_json().replace('"interrupted": false', '"of_a_later_version": 1')
    assert "interrupted" not in text
    assert RunRecord.from_json(text).results == [result]


def test_old_keywords_are_the_new_ones_and_say_so():
    @renamed_keywords(worlds="pairs", trainings="calls")
    def given(pairs=None, *, calls=0):
        """What is given."""
        return pairs, calls

    with pytest.warns(DeprecationWarning, match="given: worlds= is called pairs= now") as caught:
        assert given(worlds=3, calls=2) == (3, 2)
    assert caught[0].filename == __file__
    with pytest.raises(ConfigurationError, match="worlds= is the old name of pairs=; give pairs= alone"):
        given(worlds=3, pairs=2)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert given(1, calls=2) == (1, 2)
    assert given.__doc__ == "What is given."


def test_a_trainer_is_audited_by_the_old_keywords_as_by_the_new_ones():
    data = (np.array([1.0, 0.5]), np.array([0.5]))

    def train(rows, rng):
        return rows.sum() + rng.normal()

    new = audit_training(train, PureDP(1.0), data, calls=50)
    with pytest.warns(DeprecationWarning, match="audit_training: ") as caught:
        old = audit_training(train, PureDP(1.0), worlds=data, trainings=50)
    assert sorted(str(warning.message).split()[1] for warning in caught) == ["trainings=", "worlds="]
    assert old.log_e_value == new.log_e_value


def test_the_adjacency_of_an_audit_is_its_pairs():
    edges = auditdp.Edges(3)
    assert Audit(noisy, PureDP(1.0), edges).adjacency is edges
    assert len(Audit(noisy, PureDP(1.0), (0, 1)).adjacency.pairs()) == 1
