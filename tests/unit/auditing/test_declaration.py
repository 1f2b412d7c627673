"""Audits: how they are declared, decorated and collected, and which mistakes are reported where."""

import doctest
import importlib
import math
from pathlib import Path

import pytest

import auditdp
from auditdp.adjacency import AnyValues
from auditdp.auditing.declaration import Audit
from auditdp.auditing.decorator import audit, collect, data_file
from auditdp.claims.statements import PureDP
from auditdp.errors import AuditError, CollectionError, ConfigurationError, Skip
from auditdp.evidence.estimation import Unbiased
from auditdp.testing import Response

BIT = AnyValues((0, 1))


PROMISE = Unbiased(float, margin=1.0)
PRIVATE = {"claim": PureDP(1.0), "pairs": BIT}


@pytest.mark.parametrize(
    ("arguments", "fragment"),
    [
        ({"claim": PureDP(1.0)}, "needs pairs"),
        ({"claim": PROMISE}, "needs inputs"),
        ({"claim": PROMISE, "inputs": {}}, "needs inputs"),
        (PRIVATE | {"inputs": {"one": [1.0]}}, "and no inputs="),
        (PRIVATE | {"evidence": ["gaem"]}, "did you mean 'game'"),
        (PRIVATE | {"evidence": "exact"}, "unknown evidence"),
        (PRIVATE | {"claim": 1.0}, "claim=1.0"),
        *(
            (PRIVATE | {"calls": calls}, f"calls >= 1, got calls={calls!r}")
            for calls in (0, math.nan, math.inf, 7.5, "7")
        ),
        (PRIVATE | {"controls": {"none": len}}, "controls, a list .*'none'"),
        (PRIVATE | {"mechanism": None}, "or accountants= for a formula"),
        (PRIVATE | {"pairs": ((0, 1), (2, 3))}, "can be read as one pair"),
    ],
)
def test_arguments_that_do_not_fit_together_are_refused(arguments, fragment):
    with pytest.raises(AuditError, match=fragment):
        Audit(**{"mechanism": Response(1.0)} | arguments)


def nothing(nodes=2):
    """It audits nothing much."""
    return Audit(Response(1.0), PureDP(1.0), BIT)


def test_the_decorator_needs_no_parentheses():
    plain, with_options = audit(nothing), audit(source="Theorem 1")(nothing)
    assert (plain.wrong, plain.expect, plain.source) == ("", "holds", "")
    assert with_options.source == "Theorem 1"
    for declared in (plain, with_options):
        assert declared.description == "It audits nothing much."
        assert isinstance(declared.build({})[0], Audit)


NO_SIZES = [3, *({"nodes": sizes} for sizes in ([2, 1], [], [1, 1], ["a", 1]))]
NO_SIZES.append({"nodes": [1], "size": [1]})
WRONG = [
    ({"expct": "violation"}, "no option expct='violation'; did you mean 'expect'"),
    ({"source": 3}, "a text, got source=3"),
    ({"expect": "maybe"}, "'holds', 'violation' or 'miscalibration', got 'maybe'"),
    ({"timeout": "5"}, "timeout, .* got '5'"),
    ({"timeout": -1}, "timeout, .* got -1"),
    *(({"smallest": sizes}, "ascending sizes") for sizes in NO_SIZES),
    ({"smallest": {"size": [1]}}, "no parameter 'size'"),
    ({"positional": "our paper"}, "by name, such as .* got 'our paper'"),
]


@pytest.mark.parametrize(("options", "fragment"), WRONG, ids=str)
def test_a_mistake_in_the_decorator_is_kept_until_its_audit_is_built(options, fragment):
    options = dict(options)
    positional = [options.pop("positional")] if "positional" in options else []
    declared = audit(*positional, **options)(nothing)
    line = nothing.__code__.co_firstlineno
    with pytest.raises(CollectionError, match=f"^line {line}: .*{fragment}"):
        declared.build({})
    assert declared.read({"nodes": "x"}) == declared.smallest == {}
    assert declared.timeout is None


def test_a_decorated_object_must_be_callable():
    with pytest.raises(
        CollectionError, match="expected a function that returns an Audit, got 3"
    ):
        audit()(3)


MISTAKES = """
from auditdp import Audit, PureDP, Pair, Records, audit

@audit
def good():
    return Audit(len, PureDP(1.0), Pair(1, 0))

@audit(expct="violation")
def misspelt():
    return Audit(len, PureDP(1.0), Pair(1, 0))

@audit
def unreadable():
    return Audit(len, PureDP(1.0),
                 Records(3, (None, "b")))

@audit
def twice():
    return Audit(len, PureDP(1.0), Pair(1, 0))

@audit
def twice():
    return Audit(len, PureDP(1.0), Pair(1, 0))
"""


def test_a_mistake_in_an_audit_costs_that_audit_alone_and_names_its_line(tmp_path):
    path = tmp_path / "audit_it.py"
    path.write_text(MISTAKES)
    good, misspelt, unreadable, twice = collect(path, tmp_path)
    assert isinstance(good.build({})[0], Audit)
    for declared, shown in (
        (misspelt, "^line 8: .*'expect'"),
        (unreadable, r"^line 15: Records: expected values, .*\[None, 'b'\]; .*Rows"),
        (twice, "^line 22: the file has another function of this name in line 18"),
    ):
        with pytest.raises(CollectionError, match=shown):
            declared.build({})


def test_a_mistake_outside_of_audits_costs_the_file_and_names_its_line(tmp_path):
    path = tmp_path / "audit_it.py"
    path.write_text("from auditdp import AnyValues\n\nVALUES = AnyValues((0,))\n")
    with pytest.raises(
        CollectionError, match=r"^audit_it.py, line 3: AnyValues: expected at least two"
    ):
        collect(path, tmp_path)


@audit
def many_types(epsilon=1.0, nodes=8, label="a", strict=False, scales=(1.0, 2.0)):
    return Audit(Response(epsilon), PureDP(epsilon), BIT)


@pytest.mark.parametrize(
    ("name", "text", "value"),
    [
        ("epsilon", "2", 2.0),
        ("epsilon", "1e-3", 1e-3),
        ("nodes", "12", 12),
        ("label", "3", "3"),
        ("strict", "True", True),
        ("strict", "0", False),
        ("scales", "3.0,4.0", (3.0, 4.0)),
    ],
)
def test_a_parameter_is_read_in_the_type_of_its_default(name, text, value):
    built, parameters = many_types.build({name: text})
    assert parameters == many_types.parameters | {name: value}
    assert type(parameters[name]) is type(value)
    assert built.claim == PureDP(parameters["epsilon"])


UNREADABLE = "epsilon=big epsilon= nodes=1.5 nodes= strict=maybe strict=yes!"


@pytest.mark.parametrize("given", UNREADABLE.split())
def test_a_parameter_that_cannot_be_read_is_named(given):
    name, _, text = given.partition("=")
    with pytest.raises(ConfigurationError, match=f"-P {name}="):
        many_types.build({name: text})


def test_a_factory_must_return_an_audit_and_have_defaults():
    with pytest.raises(CollectionError, match="returned int"):
        audit()(lambda: 3).build({})
    with pytest.raises(CollectionError, match="'epsilon' needs a default"):
        audit()(lambda epsilon: None).build({})


def test_collect_finds_the_audits_of_a_file_in_order(tmp_path):
    path = tmp_path / "audit_two.py"
    path.write_text(
        "from auditdp import Audit, PureDP, audit\n"
        "@audit()\ndef second():\n    return Audit(None, PureDP(1.0), [(0, 1)])\n"
        "@audit()\ndef first():\n    return Audit(None, PureDP(1.0), [(0, 1)])\n"
    )
    assert [d.id for d in collect(path, tmp_path)] == [
        "audit_two.py::second",
        "audit_two.py::first",
    ]
    path.write_text("x = 1\nraise RuntimeError('no')\n")
    with pytest.raises(
        CollectionError, match="line 2: does not import: RuntimeError: no"
    ):
        collect(path, tmp_path)


def test_data_files_come_from_the_folder_that_is_named(tmp_path, monkeypatch):
    monkeypatch.delenv("AUDITDP_DATA", raising=False)
    with pytest.raises(Skip, match=r"needs graph.txt; give its folder with --data"):
        data_file("graph.txt")
    monkeypatch.setenv("AUDITDP_DATA", str(tmp_path))
    with pytest.raises(Skip, match=r"needs graph.txt, which is not in"):
        data_file("graph.txt")
    (tmp_path / "graph.txt").write_text("0 1")
    assert data_file("graph.txt").read_text() == "0 1"


def test_the_examples_in_docstrings_are_true():
    package = Path(auditdp.__file__).parent
    files = [
        file
        for file in package.rglob("*.py")
        if ">>> " in file.read_text(encoding="utf-8")
    ]
    names = [
        ".".join(file.relative_to(package.parent).with_suffix("").parts).removesuffix(
            ".__init__"
        )
        for file in files
    ]
    results = {name: doctest.testmod(importlib.import_module(name)) for name in names}
    assert {name: r.failed for name, r in results.items() if r.failed} == {}
    assert results["auditdp.auditing.check"].attempted >= 4
    assert results["auditdp.claims.statements"].attempted >= 1
