from __future__ import annotations

import math
import shlex
import sys
import textwrap
from functools import partial
from pathlib import Path

import pytest

from auditdp.errors import ConfigurationError
from auditdp.runner import plan as module
from auditdp.runner.collecting import collected_from
from auditdp.runner.plan import (
    Collected,
    Listed,
    Plan,
    PlanOptions,
    Task,
    audit_files,
    matches,
)

AUDITS = """
from auditdp import AnyValues, Audit, PureDP, audit
from auditdp.testing import Response

@audit(timeout=7.0)
def first(epsilon=1.0):
    return Audit(Response(epsilon), PureDP(epsilon), AnyValues((0, 1)))

@audit(expect="violation")
def second(epsilon=1.0, nodes=3):
    return Audit(Response(2 * epsilon), PureDP(epsilon), AnyValues((0, 1)))
"""


def collect(paths):
    """Import the files in this process."""
    return [collected_from(path, Path.cwd(), {}) for path in paths]


discover = partial(module.discover, collect=collect)


def make_plan(targets, keyword="", **options) -> Plan:
    """Plan what is collected in this process."""
    return module.make_plan(
        targets, PlanOptions(**options), collect=collect, keyword=keyword
    )


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A current folder with two audit files, a broken one, and others that are none."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])
    for name in (
        "audits/audit_a.py",
        "audits/deep/audit_b.py",
        "audits/other.py",
        "audits/audit_notes.txt",
    ):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(textwrap.dedent(AUDITS))
    (tmp_path / "broken").mkdir()
    (tmp_path / "broken" / "audit_c.py").write_text("import no_such_module\n")
    return tmp_path


@pytest.mark.parametrize(
    ("expression", "identifier", "expected"),
    [
        ("", "audits/audit_edges.py::dprr", True),
        ("   ", "audits/audit_edges.py::dprr", True),
        ("dprr", "audits/audit_edges.py::dprr", True),
        ("DPRR", "audits/audit_edges.py::dprr", True),
        ("dprr", "audits/AUDIT_EDGES.py::DPRR", True),
        ("edges", "audits/audit_edges.py::dprr", True),
        ("labels", "audits/audit_edges.py::dprr", False),
        ("not labels", "audits/audit_edges.py::dprr", True),
        ("not dprr", "audits/audit_edges.py::dprr", False),
        ("edges and dprr", "audits/audit_edges.py::dprr", True),
        ("edges and labels", "audits/audit_edges.py::dprr", False),
        ("labels or dprr", "audits/audit_edges.py::dprr", True),
        ("labels or noise", "audits/audit_edges.py::dprr", False),
        ("edges and not (labels or dprr)", "audits/audit_edges.py::dprr", False),
        ("edges and not (labels or noise)", "audits/audit_edges.py::dprr", True),
        ("labels or edges and dprr", "audits/audit_edges.py::dprr", True),
        (" edges\t", "audits/audit_edges.py::dprr", True),
        ("edges.py::dp", "audits/audit_edges.py::dprr", True),
        ("audit-edges", "audits/audit-edges.py::dprr", True),
        ("audit-edges", "audits/audit_edges.py::dprr", False),
        ("nothing", "audits/audit_edges.py::dprr", False),
    ],
)
def test_keywords(expression, identifier, expected):
    assert matches(expression, identifier) is expected


@pytest.mark.parametrize(
    "expression",
    [
        "dprr and",
        "not",
        "and",
        "or dprr",
        "edges and (dprr",
        "a and b()",
        "a and 1",
        "not (",
        "edges or b.c",
    ],
)
def test_a_keyword_that_is_no_expression_says_what_was_expected(expression):
    with pytest.raises(
        ConfigurationError, match="expected words joined by and, or, not"
    ) as raised:
        matches(expression, "audits/audit_edges.py::dprr")
    assert repr(expression) in str(raised.value)


def test_folders_files_and_ids(folder):
    a, b = Path("audits/audit_a.py"), Path("audits/deep/audit_b.py")
    assert audit_files(["audits"]) == [(a, ""), (b, "")]
    assert audit_files(["audits/deep"]) == [(b, "")]
    assert audit_files(["audits/audit_a.py::first"]) == [(a, "first")]
    assert audit_files(["audits/other.py"]) == [(Path("audits/other.py"), "")]
    assert audit_files(["audits/deep", "audits"]) == [(b, ""), (a, "")]
    assert audit_files(["audits", "./audits/", "audits/audit_a.py"]) == [
        (a, ""),
        (b, ""),
    ]
    assert audit_files([]) == []


def test_a_path_that_does_not_exist(folder):
    with pytest.raises(
        ConfigurationError,
        match=r"no such file or folder: audits/none\.py; give a folder",
    ):
        audit_files(["audits/none.py::first"])


def test_discovery_keeps_the_order_of_targets_files_and_functions(folder):
    declared, failures = discover(["audits/deep", "audits/audit_a.py"])
    assert [d.id for d in declared] == [
        "audits/deep/audit_b.py::first",
        "audits/deep/audit_b.py::second",
        "audits/audit_a.py::first",
        "audits/audit_a.py::second",
    ]
    assert failures == []
    assert Path(declared[0].path) == folder / "audits/deep/audit_b.py"


@pytest.mark.parametrize(
    "targets",
    [
        ["audits/audit_a.py", "audits/audit_a.py::first"],
        ["audits/audit_a.py::second", "audits/audit_a.py", "audits/audit_a.py::second"],
        ["audits/audit_a.py", "audits/deep/../audit_a.py"],
    ],
)
def test_an_audit_that_is_asked_for_twice_is_declared_once(folder, targets):
    declared, _ = discover(targets)
    assert sorted(d.id for d in declared) == [
        "audits/audit_a.py::first",
        "audits/audit_a.py::second",
    ]


def test_an_imported_audit_belongs_to_the_file_that_declares_it(folder):
    (folder / "audits/audit_d.py").write_text(
        "from pathlib import Path\nimport sys\nsys.path.insert(0, str(Path(__file__).parent))\nfrom other import first\n"
    )
    assert discover(["audits/audit_d.py"]) == ([], [])


def test_a_file_that_does_not_import_is_a_failure_beside_the_others(folder):
    declared, failures = discover(["broken", "audits/audit_a.py"], "second")
    assert [d.id for d in declared] == ["audits/audit_a.py::second"]
    ((path, reason),) = failures
    assert path == "broken/audit_c.py"
    assert reason.startswith(
        "broken/audit_c.py, line 1: does not import: ModuleNotFoundError"
    )


def test_an_unknown_name_in_a_file_names_the_one_that_was_meant(folder):
    with pytest.raises(
        ConfigurationError, match="declares no audit 'secnd'; did you mean 'second'"
    ):
        discover(["audits/audit_a.py::secnd"])


@pytest.mark.parametrize(
    ("targets", "audits"),
    [(["audits"], 4), (["audits/audit_a.py"], 2), (["broken"], 0)],
)
def test_alpha_is_shared_equally_and_completely(folder, targets, audits):
    plan = make_plan(targets, root_seed=1, alpha=0.01)
    assert len(plan.tasks) == audits
    assert (
        [entry.alpha for entry in plan.ledger]
        == [task.alpha for task in plan.tasks]
        == [0.01 / max(audits, 1)] * audits
    )
    assert math.isclose(
        sum(entry.alpha for entry in plan.ledger), 0.01 if audits else 0.0
    )
    assert [entry.audit for entry in plan.ledger] == [task.id for task in plan.tasks]


def test_only_what_the_keyword_selects_takes_a_share_of_alpha(folder):
    (task,) = make_plan(
        ["audits"], root_seed=1, alpha=0.01, keyword="deep and second"
    ).tasks
    assert (task.id, task.alpha) == ("audits/deep/audit_b.py::second", 0.01)


def test_tasks_hold_what_was_declared_and_what_was_asked(folder):
    first, second = make_plan(
        ["audits/audit_a.py"],
        root_seed=9,
        overrides={"nodes": "4"},
        budget="quick",
        data="/data",
    ).tasks
    assert (first.overrides, second.overrides) == ({}, {"nodes": "4"})
    assert (first.expect, second.expect) == ("holds", "violation")
    assert (first.timeout, second.timeout) == (7.0, None)
    assert {(t.root_seed, t.budget, t.data) for t in (first, second)} == {
        (9, "quick", "/data")
    }
    assert (
        make_plan(["audits/audit_a.py"], root_seed=9, timeout=3.0).tasks[0].timeout
        == 3.0
    )


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"budget": "standart"}, "did you mean 'standard'"),
        ({"alpha": 0.0}, "alpha strictly between 0 and 1, got 0.0"),
        ({"alpha": 1.0}, "alpha strictly between 0 and 1, got 1.0"),
        ({"alpha": math.nan}, "got nan"),
        ({"root_seed": -1}, "seed >= 0 and below 2\\^128, got -1"),
        ({"timeout": 0.0}, "timeout > 0 seconds and of at most 1e9, got 0.0"),
        ({"timeout": -2.0}, "timeout > 0 seconds and of at most 1e9, got -2.0"),
        ({"timeout": math.inf}, "timeout"),
        ({"overrides": {"node": "3"}}, "did you mean 'nodes'"),
    ],
)
def test_settings_that_cannot_be_used(folder, settings, message):
    with pytest.raises(ConfigurationError, match=message):
        make_plan(["audits/audit_a.py"], **{"root_seed": 1, **settings})


def test_the_command_that_reproduces_a_task():
    task = Task(
        id="audits/audit_a.py::first",
        path="/x/audits/audit_a.py",
        name="first",
        root="/x",
        overrides={"epsilon": "2", "label": "two words"},
        expect="holds",
        root_seed=9,
        alpha=0.05 / 3,
        budget="quick",
        timeout=None,
    )
    assert shlex.split(task.reproduce) == [
        *(
            "auditdp",
            "run",
            "audits/audit_a.py::first",
            "--seed",
            "9",
            "--alpha",
            "0.016666666666666666",
        ),
        *("--budget", "quick", "-P", "epsilon=2", "-P", "label=two words"),
    ]


def test_a_value_that_cannot_be_read_is_refused_before_anything_runs():
    found = Collected(
        (
            Listed(
                "a.py::first",
                "/a.py",
                parameters=("epsilon",),
                unreadable="-P epsilon=x: a number",
            ),
        )
    )
    with pytest.raises(ConfigurationError, match="-P epsilon=x: a number"):
        module.make_plan(
            [__file__],
            PlanOptions(root_seed=1, overrides={"epsilon": "x"}),
            collect=lambda paths: [found],
        )


def test_a_file_that_fails_is_reported_once_however_often_it_is_asked_for(folder):
    declared, failures = discover(
        ["broken/audit_c.py::first", "broken/audit_c.py::second"]
    )
    assert (declared, len(failures)) == ([], 1)
    assert "no_such_module" in failures[0][1]


def test_what_is_collected_is_plain_data_with_its_sources(folder):
    (found,) = collect([Path("audits/audit_a.py")])
    assert [item.parameters for item in found.audits] == [
        ("epsilon",),
        ("epsilon", "nodes"),
    ]
    assert [item.timeout for item in found.audits] == [7.0, None]
    assert str(folder / "audits/audit_a.py") in found.sources
    wrong = collected_from(Path("audits/audit_a.py"), folder, {"nodes": "many"}).audits
    assert [bool(item.unreadable) for item in wrong] == [False, True]
