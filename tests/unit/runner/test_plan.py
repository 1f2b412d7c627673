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


SELECTING = """
dprr
DPRR
edges
not labels
edges and dprr
labels or dprr
edges and not (labels or noise)
labels or edges and dprr
 edges\t
edges.py::dp
   """.splitlines()
NOT_SELECTING = """labels
not dprr
edges and labels
labels or noise
edges and not (labels or dprr)
audit-edges
nothing""".splitlines()
NO_EXPRESSIONS = """dprr and
not
and
or dprr
edges and (dprr
a and b()
a and 1
not (
edges or b.c""".splitlines()
DPRR = "audits/audit_edges.py::dprr"


def test_keywords():
    assert [each for each in SELECTING if not matches(each, DPRR)] == []
    assert [each for each in NOT_SELECTING if matches(each, DPRR)] == []
    assert matches("dprr", "audits/AUDIT_EDGES.py::DPRR")
    assert matches("audit-edges", "audits/audit-edges.py::dprr")


@pytest.mark.parametrize("expression", NO_EXPRESSIONS)
def test_a_keyword_that_is_no_expression_says_what_was_expected(expression):
    with pytest.raises(ConfigurationError, match="joined by and, or, not") as raised:
        matches(expression, DPRR)
    assert repr(expression) in str(raised.value)


A, B = Path("audits/audit_a.py"), Path("audits/deep/audit_b.py")


@pytest.mark.parametrize(
    ("targets", "found"),
    [
        ("audits", [(A, ""), (B, "")]),
        ("audits/deep", [(B, "")]),
        ("audits/audit_a.py::first", [(A, "first")]),
        ("audits/other.py", [(Path("audits/other.py"), "")]),
        ("audits/deep audits", [(B, ""), (A, "")]),
        ("audits ./audits/ audits/audit_a.py", [(A, ""), (B, "")]),
        ("", []),
    ],
)
def test_folders_files_and_ids(folder, targets, found):
    assert audit_files(targets.split()) == found


def ids(declared):
    return [each.id for each in declared]


BOTH = ["audits/audit_a.py::first", "audits/audit_a.py::second"]


def test_discovery_keeps_the_order_of_targets_files_and_functions(folder):
    declared, failures = discover(["audits/deep", "audits/audit_a.py"])
    deep = [f"audits/deep/audit_b.py::{name}" for name in ("first", "second")]
    assert (ids(declared), failures) == ([*deep, *BOTH], [])
    assert Path(declared[0].path) == folder / B


@pytest.mark.parametrize(
    "targets",
    [
        "audits/audit_a.py audits/audit_a.py::first",
        "audits/audit_a.py::second audits/audit_a.py audits/audit_a.py::second",
        "audits/audit_a.py audits/deep/../audit_a.py",
    ],
)
def test_an_audit_that_is_asked_for_twice_is_declared_once(folder, targets):
    assert sorted(ids(discover(targets.split())[0])) == BOTH


def test_an_imported_audit_belongs_to_the_file_that_declares_it(folder):
    beside = "import sys\nsys.path.insert(0, str(Path(__file__).parent))\n"
    text = f"from pathlib import Path\n{beside}from other import first\n"
    (folder / "audits/audit_d.py").write_text(text)
    assert discover(["audits/audit_d.py"]) == ([], [])


def test_a_file_that_does_not_import_is_one_failure_beside_the_others(folder):
    targets = ["broken", "audits/audit_a.py", "broken/audit_c.py::first"]
    declared, failures = discover(targets, "second")
    assert ids(declared) == BOTH[1:]
    ((path, reason),) = failures
    assert path == "broken/audit_c.py"
    start = f"{path}, line 1: does not import: ModuleNotFoundError"
    assert reason.startswith(start)
    assert "no_such_module" in reason


@pytest.mark.parametrize(
    ("target", "message"),
    [
        ("audits/audit_a.py::secnd", "no audit 'secnd'; did you mean 'second'"),
        (
            "audits/none.py::first",
            r"no such file or folder: audits/none\.py; give a folder",
        ),
    ],
)
def test_what_is_not_there_is_refused(folder, target, message):
    with pytest.raises(ConfigurationError, match=message):
        discover([target])


@pytest.mark.parametrize(
    ("targets", "audits"),
    [(["audits"], 4), (["audits/audit_a.py"], 2), (["broken"], 0)],
)
def test_alpha_is_shared_equally_and_completely(folder, targets, audits):
    plan = make_plan(targets, root_seed=1, alpha=0.01)
    shares = [0.01 / max(audits, 1)] * audits
    assert [task.alpha for task in plan.tasks] == shares
    assert [entry.alpha for entry in plan.ledger] == shares
    assert math.isclose(sum(shares), 0.01 if audits else 0.0)
    assert [entry.audit for entry in plan.ledger] == ids(plan.tasks)


def test_only_what_the_keyword_selects_takes_a_share_of_alpha(folder):
    plan = make_plan(["audits"], "deep and second", root_seed=1, alpha=0.01)
    (task,) = plan.tasks
    assert (task.id, task.alpha) == ("audits/deep/audit_b.py::second", 0.01)


def test_tasks_hold_what_was_declared_and_what_was_asked(folder):
    options = {"root_seed": 9, "budget": "quick", "data": "/data"}
    plan = make_plan([str(A)], overrides={"nodes": "4"}, **options)
    first, second = plan.tasks
    assert (first.overrides, second.overrides) == ({}, {"nodes": "4"})
    assert (first.expect, second.expect) == ("holds", "violation")
    assert (first.timeout, second.timeout) == (7.0, None)
    for task in plan.tasks:
        assert {name: getattr(task, name) for name in options} == options
    assert make_plan([str(A)], root_seed=9, timeout=3.0).tasks[0].timeout == 3.0


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
        make_plan([str(A)], **{"root_seed": 1, **settings})


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
    command = "auditdp run audits/audit_a.py::first --seed 9 --alpha 0.016666666666666666 --budget quick -P epsilon=2 -P"
    assert shlex.split(task.reproduce) == [*command.split(), "label=two words"]


def test_a_value_that_cannot_be_read_is_refused_before_anything_runs():
    unreadable = "-P epsilon=x: a number"
    listed = Listed(
        "a.py::first", "/a.py", parameters=("epsilon",), unreadable=unreadable
    )
    options = PlanOptions(root_seed=1, overrides={"epsilon": "x"})
    found = [Collected((listed,))]
    with pytest.raises(ConfigurationError, match=unreadable):
        module.make_plan([__file__], options, collect=lambda paths: found)


def test_what_is_collected_is_plain_data_with_its_sources(folder):
    (found,) = collect([A])
    parameters = [item.parameters for item in found.audits]
    assert parameters == [("epsilon",), ("epsilon", "nodes")]
    assert [item.timeout for item in found.audits] == [7.0, None]
    assert str(folder / A) in found.sources
    wrong = collected_from(A, folder, {"nodes": "many"}).audits
    assert [bool(item.unreadable) for item in wrong] == [False, True]
