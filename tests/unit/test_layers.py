"""Who may import whom: the arrows of the design, walked over every module."""

import ast
import re
import subprocess
import sys
from pathlib import Path

import pytest

import auditdp
from tests.unit.parsed import parsed

ROOT = Path(__file__).resolve().parents[2]
PACKAGES = ("auditdp", "mechanisms", "gnn", "audits", "libraries", "benchmarks")

# Opacus has accountants beside its trainers; they are imported when they are asked.
ALLOWED = {("auditdp/accountants/dp_sgd_poisson.py", "opacus")}

# A package on the left imports nothing of what is listed on the right.
FORBIDDEN = {
    "auditdp": (
        "mechanisms",
        "gnn",
        "audits",
        "benchmarks",
        "tests",
        "torch",
        "torch_geometric",
        "opacus",
    ),
    "mechanisms": (
        "gnn",
        "audits",
        "benchmarks",
        "tests",
        "torch",
        "torch_geometric",
        "opacus",
    ),
    "gnn": ("audits", "benchmarks", "tests"),
    "audits": ("libraries", "benchmarks", "tests"),
    "libraries": ("mechanisms", "gnn", "benchmarks", "tests"),
    "benchmarks": ("tests",),
}
# A finding of a trace draws itself in a notebook, by the report room, which is imported then.
WHEN_ASKED = {
    ("auditdp/tracing/findings.py", "auditdp.report.html.notebook"),
}
NOT_FOR_MECHANISMS = {
    "auditing",
    "cli",
    "evidence",
    "report",
    "runner",
    "testing",
    "training",
}
# Inside the harness, from the bottom up: a module may import its own room and the rooms that are named, no others.
CORE = {"errors", "files", "numerics", "record", "claims", "mechanism", "adjacency"}
ROOMS = {
    "errors": set(),
    "files": {"errors"},
    "numerics": set(),
    "record": {"errors", "files", "numerics"},
    "configuration": {"errors", "files", "record"},
    "claims": {"errors", "numerics"},
    "mechanism": {"errors", "files", "numerics"},
    "adjacency": {"errors", "numerics", "mechanism"},
    "accountants": {"errors", "numerics", "claims", "mechanism", "record"},
    "tracing": {
        "errors",
        "numerics",
        "claims",
        "accountants",
        "adjacency",
        "mechanism",
    },
    "report": {"errors", "files", "numerics", "record", "claims"},
    "betting": {*CORE, "tracing"},
    "bounds": {*CORE, "betting"} - {"mechanism"},
    "evidence": {*CORE, "accountants", "betting", "bounds", "tracing"},
    "auditing": {
        *CORE,
        "configuration",
        "accountants",
        "betting",
        "evidence",
        "report",
    },
    "training": {*CORE, "auditing", "betting", "bounds", "report"},
    "testing": {*CORE, "auditing"},
    "runner": {*CORE, "configuration", "auditing", "evidence", "tracing"},
    "pytest_plugin": {*CORE, "configuration", "auditing", "report", "runner"},
    "cli": {
        *CORE,
        "configuration",
        "accountants",
        "auditing",
        "bounds",
        "report",
        "runner",
        "testing",
    },
}
ROOMS["__main__"] = {"cli"}
# The package itself is the vocabulary: it must not pull in the rooms that run and report.
ROOMS[""] = {*CORE, "auditing", "bounds", "training"}


def modules(package):
    """(dotted name, path) of every module of a package that exists."""
    for path in sorted((ROOT / package).rglob("*.py")):
        parts = path.relative_to(ROOT).with_suffix("").parts
        yield ".".join(parts[:-1] if parts[-1] == "__init__" else parts), path


def imports(name, path):
    """Every absolute module name that a module imports, anywhere in it; relative imports are resolved."""
    package = name.split(".") if path.name == "__init__.py" else name.split(".")[:-1]
    for node in parsed(path).imports:
        if isinstance(node, ast.Import):
            yield from ((alias.name, node.lineno) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = package[: len(package) - node.level + 1] if node.level else []
            module = ".".join([*base, *([node.module] if node.module else [])])
            yield module, node.lineno
            # `from auditdp import runner` imports a room as well.
            yield from (
                (f"{module}.{alias.name}", node.lineno)
                for alias in node.names
                if is_module(module, alias.name)
            )


def is_module(package, name):
    place = ROOT.joinpath(*package.split("."), name)
    return place.is_dir() or place.with_suffix(".py").is_file()


def room_of(module):
    parts = module.split(".")
    return parts[1] if len(parts) > 1 else ""


@pytest.mark.parametrize("package", FORBIDDEN)
def test_packages_import_only_what_lies_below_them(package):
    wrong = [
        f"{path.relative_to(ROOT)}:{line} imports {imported}"
        for name, path in modules(package)
        for imported, line in imports(name, path)
        if imported.split(".")[0] in FORBIDDEN[package]
        and (str(path.relative_to(ROOT)), imported.split(".")[0]) not in ALLOWED
    ]
    assert not wrong, "\n".join(wrong)


def test_mechanisms_know_only_the_public_harness():
    own = {"auditdp", "mechanisms"}
    wrong = [
        f"{path.relative_to(ROOT)}:{line} imports {imported}"
        for name, path in modules("mechanisms")
        for imported, line in imports(name, path)
        if imported.split(".")[0] in {*PACKAGES, "tests"} - own
        or (imported.startswith("auditdp.") and room_of(imported) in NOT_FOR_MECHANISMS)
    ]
    assert not wrong, "\n".join(wrong)


def test_every_room_of_the_harness_has_its_rule():
    rooms = {room_of(name) for name, _ in modules("auditdp")}
    assert rooms <= set(ROOMS), (
        f"say in this test what {sorted(rooms - set(ROOMS))} may import"
    )


def test_rooms_import_only_the_rooms_below_them():
    wrong = []
    for name, path in modules("auditdp"):
        room = room_of(name)
        for imported, line in imports(name, path):
            if (str(path.relative_to(ROOT)), imported) in WHEN_ASKED:
                continue
            if imported.startswith("auditdp.") and room_of(imported) not in {
                *ROOMS.get(room, set()),
                room,
            }:
                wrong.append(
                    f"{path.relative_to(ROOT)}:{line} ({room or 'auditdp'}) imports {imported}"
                )
            if imported == "auditdp" and room not in (
                "",
                "runner",
                "report",
                "cli",
            ):  # these ask for the version
                wrong.append(
                    f"{path.relative_to(ROOT)}:{line} imports auditdp itself; name the module"
                )
    assert not wrong, "\n".join(wrong)


def test_the_table_of_rooms_has_all_of_them_and_each_above_those_that_import_it():
    page = (ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8")
    rows = [
        re.findall(r"`(\w+)`", row)
        for row in re.findall(r"^\| (`.*?) \|", page, flags=re.M)
    ]
    above: set[str] = set()
    for row in rows:
        for room in row:
            assert ROOMS[room] <= above | set(row), (
                f"{room} is above {sorted(ROOMS[room] - above)}"
            )
        above |= set(row)
    assert above == set(ROOMS) - {"", "__main__"}


def test_the_rules_have_no_cycle():
    """Otherwise they would allow what they are there to prevent."""
    order, rest = [], {room: set(below) for room, below in ROOMS.items() if room}
    while rest:
        free = [room for room, below in rest.items() if below.isdisjoint(rest)]
        assert free, f"these rooms may import each other: {sorted(rest)}"
        order += free
        rest = {room: below for room, below in rest.items() if room not in free}
    assert (
        order.index("betting")
        < order.index("evidence")
        < order.index("auditing")
        < order.index("runner")
    )


def circles(graph):
    """The strongly connected sets of more than one node (Kosaraju's algorithm)."""
    order, seen = [], set()

    def walk(node, arrows, found):
        stack = [(node, iter(arrows[node]))]
        seen.add(node)
        while stack:
            here, rest = stack[-1]
            following = next((n for n in rest if n not in seen), None)
            if following is None:
                stack.pop()
                found.append(here)
            else:
                seen.add(following)
                stack.append((following, iter(arrows[following])))

    for node in graph:
        if node not in seen:
            walk(node, graph, order)
    backwards = {node: [n for n in graph if node in graph[n]] for node in graph}
    seen.clear()
    sets = []
    for node in reversed(order):
        if node not in seen:
            sets.append([])
            walk(node, backwards, sets[-1])
    return [sorted(found) for found in sets if len(found) > 1]


def test_files_of_the_harness_do_not_import_each_other_in_a_circle():
    """Imports within functions, and those for types alone, count."""
    files = dict(modules("auditdp"))
    graph = {
        name: {imported for imported, _ in imports(name, path)}
        & files.keys()
        - {name, name.rpartition(".")[0]}  # a package's own face is no circle
        for name, path in files.items()
    }
    assert circles(graph) == []


def test_circles_are_found():
    graph = {"a": {"b"}, "b": {"c"}, "c": {"b"}, "d": {"a", "c"}}
    assert circles(graph) == [["b", "c"]]


def test_the_walk_sees_imports_of_every_form(tmp_path):
    path = tmp_path / "module.py"
    path.write_text(
        "import torch.nn as t\ndef f():\n    from auditdp import runner, PureDP\n    from . import x\n"
    )
    found = {imported for imported, _ in imports("auditdp.module", path)}
    assert found >= {"torch.nn", "auditdp", "auditdp.runner"}
    assert "auditdp.PureDP" not in found


def test_the_vocabulary_is_imported_when_it_is_asked_for():
    """And no name but that of a module is a module's, which would take its place once it has been imported."""
    assert sorted(auditdp._HOMES) == auditdp.__all__
    assert auditdp.bounds.__name__ == "auditdp.bounds"
    for name in set(auditdp.__all__) - {"bounds"}:
        assert getattr(auditdp, name).__module__.startswith("auditdp.")
        assert not is_module("auditdp", name)
    with pytest.raises(AttributeError, match="no attribute 'Nothing'"):
        auditdp.Nothing  # noqa: B018


def loaded_with(module):
    """The modules that a process has when it has imported one."""
    code = f"import sys, {module}; print(*sys.modules)"
    command = [sys.executable, "-c", code]
    return set(subprocess.check_output(command, cwd=ROOT, text=True).split())


@pytest.mark.parametrize("module", ["auditdp", "auditdp.cli"])
def test_import_auditdp_is_light(module):
    heavy = {"torch", "opacus", "matplotlib", "sklearn", "scipy", "hypothesis"}
    assert loaded_with(module).isdisjoint(heavy)


def test_collecting_imports_nothing_that_only_runs_need():
    heavy = {"hypothesis", "flint", "scipy", "auditdp.record.details"}
    assert loaded_with("auditdp.runner.file_host").isdisjoint(heavy)
