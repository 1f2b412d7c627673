"""Which audits a command is about: paths, ids, ``-k`` and ``-P``; and ``list`` and ``show``, which run nothing."""

from __future__ import annotations

import pytest

pytestmark = [pytest.mark.dear, pytest.mark.usefixtures("without_sandbox")]

EDGES = """
class Named:
    name = "never called"

    def __call__(self, data, size, *, rng):
        Path("ran").touch()
        return rng.integers(0, 2, size)

BITS = AnyValues((0, 1))

@audit(source="A paper, Theorem 1")
def dprr(epsilon=1.0, nodes=8, strict=True, mode="fast"):
    '''The DPRR is private.

    And this is why.
    '''
    return Audit(Named(), PureDP(epsilon), BITS, controls=[Response(math.inf)], calls=50)

@audit(expect="violation")
def dprr_allocated(epsilon=2.0):
    '''The allocation is private.'''
    return Audit(Named(), PureDP(epsilon), BITS, calls=50)
"""
LABELS = """
@audit()
def response(epsilon=0.5, label="x"):
    return Audit(Response(epsilon), PureDP(epsilon, source=label), AnyValues((0, 1)), evidence=["exact"])

@audit()
def gpu():
    raise Skip("needs a CUDA device")

@audit()
def promise():
    return Audit(LaplaceMechanism(1.0), Unbiased(float, margin=1.0), inputs={"zero": [0.0]}, calls=100)

@audit()
def breaks():
    raise ValueError("no such data")
"""
ALL = ["edges.py::dprr", "edges.py::dprr_allocated", "labels.py::response", "labels.py::gpu", "labels.py::promise",
       "labels.py::breaks"]  # fmt: skip


@pytest.fixture(scope="module")
def two_files(shared_project):
    shared_project.audits(EDGES, "audits/audit_edges.py")
    shared_project.audits(LABELS, "audits/more/audit_labels.py")
    shared_project.audits("1 / 0", "audits/not_an_audit.py")
    return shared_project


def listed(outcome):
    return [
        line.split()[0].rpartition("audit_")[2] for line in outcome.out.splitlines()
    ]


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ([], ALL),
        (["audits/more"], ALL[2:]),
        (["audits/audit_edges.py"], ALL[:2]),
        (["audits/audit_edges.py::dprr"], ALL[:1]),
        (
            [
                "audits/more/audit_labels.py::gpu",
                "audits/audit_edges.py::dprr_allocated",
            ],
            [ALL[3], ALL[1]],
        ),
        (["audits", "audits/audit_edges.py"], ALL),
        (["./audits", "audits"], ALL),
        (["audits", "audits/audit_edges.py::dprr"], ALL),
        (["audits/audit_edges.py::dprr", "audits/audit_edges.py"], ALL[:2]),
        (["-k", "dprr"], ALL[:2]),
        (["-k", "DPRR"], ALL[:2]),
        (["-k", "dprr and not allocated"], ALL[:1]),
        (["-k", "gpu or response"], ALL[2:4]),
        (["-k", "not (gpu or edges)"], [ALL[2], ALL[4], ALL[5]]),
        (["-k", "labels.py::gpu"], [ALL[3]]),
        (["-k", "  "], ALL),
        (["audits/more", "-k", "response"], [ALL[2]]),
    ],
    ids=lambda value: " ".join(value)[:60] or "everything",
)
def test_what_is_selected(two_files, arguments, expected):
    outcome = two_files("list", *arguments)
    said = "no sandbox, by the environment, AUDITDP_SANDBOX: audits may touch what you may\n"
    assert (listed(outcome), outcome.code, outcome.err) == (expected, 0, said)


def test_an_absolute_path_is_the_same_file(two_files):
    assert (
        listed(
            two_files("list", "audits", two_files.root / "audits" / "audit_edges.py")
        )
        == ALL
    )


def test_an_audit_that_is_named_twice_runs_once_and_takes_one_share_of_alpha(two_files):
    record = two_files.run(
        "audits/audit_edges.py", "audits/audit_edges.py::dprr"
    ).record
    assert [entry["alpha"] for entry in record["alpha_ledger"]] == [0.025, 0.025]
    assert len(record["results"]) == 2


def test_list_shows_first_lines_and_declared_violations_and_runs_nothing(two_files):
    (two_files.root / "ran").unlink(missing_ok=True)
    lines = two_files("list").out.splitlines()
    assert lines[0] == "audits/audit_edges.py::dprr  The DPRR is private."
    assert (
        lines[1]
        == "audits/audit_edges.py::dprr_allocated  The allocation is private. [a violation is expected]"
    )
    assert not (two_files.root / "ran").exists()


def test_list_with_a_broken_file_lists_the_rest_and_says_which(project):
    project.audits(LABELS, "audits/audit_labels.py")
    project.write("audits/audit_broken.py", "import no_such_module")
    outcome = project("list")
    assert outcome.code == 3
    assert len(outcome.out.splitlines()) == 4
    assert "ERROR audits/audit_broken.py" in outcome.err
    assert "no_such_module" in outcome.err


def test_list_of_nothing(two_files):
    outcome = two_files("list", "-k", "nothing")
    assert (outcome.code, outcome.out) == (5, "")


@pytest.mark.parametrize("identifier", ["audits/audit_edges.py::dprr", "dprr"])
def test_show_spells_an_audit_out_and_runs_nothing(two_files, identifier):
    (two_files.root / "ran").unlink(missing_ok=True)
    outcome = two_files("show", identifier)
    assert outcome.code == 0
    assert outcome.out.startswith("audits/audit_edges.py::dprr\n")
    shown = [" ".join(line.split()) for line in outcome.out.splitlines()]
    for row in (
        "The DPRR is private.", "And this is why.", "source A paper, Theorem 1", "expected holds",
        "parameter epsilon = 1.0", "parameter nodes = 8", "parameter strict = True", "parameter mode = 'fast'",
        "mechanism never called", "claim 1-DP", "pair 1 | 0", "control Response(inf)",
    ):  # fmt: skip
        assert row in shown
    assert not (two_files.root / "ran").exists()


def test_show_lists_what_the_mechanism_offers(two_files):
    outcome = two_files("show", "audits/more/audit_labels.py::response")
    shown = [" ".join(line.split()) for line in outcome.out.splitlines()]
    assert [row for row in shown if row.startswith("offers")] == [
        "offers distribution(data)"
    ]


def test_show_of_a_promise_lists_its_inputs(two_files):
    shown = [
        " ".join(line.split()) for line in two_files("show", "promise").out.splitlines()
    ]
    assert "inputs zero" in shown
    assert "claim unbiased (margin 1)" in shown


def test_show_of_what_cannot_run_here_says_why(two_files):
    outcome = two_files("show", "gpu")
    assert outcome.code == 0
    assert "needs a CUDA device" in outcome.out


def test_show_of_an_audit_that_cannot_be_built_says_why(two_files):
    """Exit code 1 would say that a violation was found."""
    outcome = two_files("show", "breaks")
    assert outcome.code in (2, 3)
    assert "no such data" in outcome.out + outcome.err
    assert "Traceback" not in outcome.err


@pytest.mark.parametrize(
    ("identifier", "message"),
    [
        ("dpr_allocated", "did you mean 'dprr_allocated'?"),
        ("audits/audit_edges.py::dpr", "did you mean 'dprr'?"),
        ("labels", "ambiguous"),
        ("audits/audit_none.py::dprr", "no such file or folder: audits/audit_none.py"),
    ],
)
def test_show_of_what_does_not_exist(two_files, identifier, message):
    outcome = two_files("show", identifier)
    assert (outcome.code, outcome.out) == (2, "")
    assert message in outcome.err


@pytest.mark.parametrize(
    ("option", "name", "value"),
    [
        ("epsilon=3", "epsilon", 3.0),
        ("epsilon=2.5e-1", "epsilon", 0.25),
        ("nodes=12", "nodes", 12),
        ("strict=false", "strict", False),
        ("strict=0", "strict", False),
        ("strict=True", "strict", True),
        ("mode=slow and steady=1", "mode", "slow and steady=1"),
        ("mode=12", "mode", "12"),
        ("mode=", "mode", ""),
    ],
)
def test_parameters_are_read_in_the_type_of_their_default(
    two_files, option, name, value
):
    found = two_files.run("audits/audit_edges.py::dprr", "-P", option).audit("dprr")
    assert (found["parameters"][name], type(found["parameters"][name])) == (
        value,
        type(value),
    )
    others = {"epsilon": 1.0, "nodes": 8, "strict": True, "mode": "fast"}
    assert {**found["parameters"], name: None} == {**others, name: None}


def test_a_parameter_reaches_every_audit_that_has_it_and_no_other(two_files):
    record = two_files.run("-k", "not breaks", "-P", "epsilon=0.75").record
    claims = {
        r["id"].rpartition("::")[2]: (r["claim"] or {}).get("epsilon")
        for r in record["results"]
    }
    assert claims == {
        "dprr": 0.75,
        "dprr_allocated": 0.75,
        "response": 0.75,
        "gpu": None,
        "promise": None,
    }
    assert record["arguments"]["options"] == ["epsilon=0.75"]


PUBLISHED = """
from auditdp import AnyValues, Audit, PureDP, audit
from auditdp.testing import Response


@audit(row="a mechanism", reading="as deployed", smallest={"users": [1, 2]}, expect="violation")
def published(users=2):
    '''It is private.'''
    return Audit(Response(2.0), PureDP(1.0), AnyValues((0, 1)))


@audit(row="a mechanism", reading="half of it", repairs="published")
def repaired():
    '''Half of it is private.'''
    return Audit(Response(0.5), PureDP(1.0), AnyValues((0, 1)))
"""


def test_show_says_where_the_ledger_lists_an_audit(project):
    project.write("audits/audit_published.py", PUBLISHED)
    shown = [
        " ".join(line.split()) for line in project("show", "published").out.splitlines()
    ]
    assert "published a mechanism, as deployed" in shown
    assert "tried users = 1, 2" in shown
    assert "repairs published" in [
        " ".join(line.split()) for line in project("show", "repaired").out.splitlines()
    ]


def test_a_run_writes_the_ledger(project):
    project.write("audits/audit_published.py", PUBLISHED)
    outcome = project(
        "run",
        "--budget",
        "quick",
        "--seed",
        "1",
        "--report",
        "claims=claims.md",
        "--report",
        "claims-json=claims.json",
    )
    assert outcome.code == 0
    text = (project.root / "claims.md").read_text()
    assert "1 claim: 1 VIOLATED." in text
    assert "CERTIFIED: Half of it is private." in text
    assert '"verdict": "VIOLATED"' in (project.root / "claims.json").read_text()
