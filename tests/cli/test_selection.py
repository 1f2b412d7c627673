"""The audits that a command is about: paths, ids, ``-k`` and ``-P``; and ``list`` and ``show``, which run nothing."""

import pytest

pytestmark = pytest.mark.usefixtures("without_sandbox")

EDGES = """
class Named:
    name = "never called"

    def __call__(self, data, size, *, rng):
        Path("ran").touch()
        return rng.integers(0, 2, size)

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
    return Audit(Response(epsilon), PureDP(epsilon, source=label), BITS, evidence=["exact"])

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
NAMES = ["dprr", "dprr_allocated", "response", "gpu", "promise", "breaks"]
# Each selection, and the numbers of the audits that it selects.
SELECTED = {
    "": "012345",
    "audits/more": "2345",
    "audits/audit_edges.py": "01",
    "audits/audit_edges.py::dprr": "0",
    "audits/more/audit_labels.py::gpu audits/audit_edges.py::dprr_allocated": "31",
    "audits audits/audit_edges.py": "012345",
    "./audits audits": "012345",
    "audits audits/audit_edges.py::dprr": "012345",
    "audits/audit_edges.py::dprr audits/audit_edges.py": "01",
    "-k dprr": "01",
    "-k DPRR": "01",
    "-k 'dprr and not allocated'": "0",
    "-k 'gpu or response'": "23",
    "-k 'not (gpu or edges)'": "245",
    "-k labels.py::gpu": "3",
    "-k '  '": "012345",
    "audits/more -k response": "2",
}


@pytest.fixture(scope="module")
def two_files(shared_project):
    shared_project.audits(EDGES, "audits/audit_edges.py")
    shared_project.audits(LABELS, "audits/more/audit_labels.py")
    shared_project.audits("1 / 0", "audits/not_an_audit.py")
    return shared_project


def listed(outcome):
    lines = outcome.out.splitlines()
    return [line.split()[0].rpartition("::")[2] for line in lines]


@pytest.mark.full
def test_paths_ids_and_words_select_audits(two_files):
    for arguments, numbers in SELECTED.items():
        outcome = two_files(f"list {arguments}")
        assert listed(outcome) == [NAMES[int(k)] for k in numbers], arguments
        assert outcome.code == 0
        assert outcome.err.startswith("no sandbox, by the environment, AUDITDP_SANDBOX")


def test_list_shows_first_lines_and_declared_violations_and_runs_nothing(two_files):
    outcome = two_files("list", two_files.root / "audits" / "audit_edges.py", "audits")
    assert listed(outcome) == NAMES
    lines = outcome.out.splitlines()
    edges = "audits/audit_edges.py::dprr"
    assert lines[0] == f"{edges}  The DPRR is private."
    allocated = f"{edges}_allocated  The allocation is private."
    assert lines[1] == f"{allocated} [a violation is expected]"
    assert not (two_files.root / "ran").exists()
    nothing = two_files("list -k nothing")
    assert (nothing.code, nothing.out) == (5, "")


@pytest.mark.dear
def test_list_with_a_broken_file_lists_the_rest_and_says_which(project):
    project.audits(LABELS, "audits/audit_labels.py")
    project.write("audits/audit_broken.py", "import no_such_module")
    outcome = project("list")
    assert (outcome.code, listed(outcome)) == (3, NAMES[2:])
    assert "ERROR audits/audit_broken.py" in outcome.err
    assert "no_such_module" in outcome.err


SHOWN = {
    "audits/audit_edges.py::dprr": [
        "The DPRR is private.",
        "And this is why.",
        "source A paper, Theorem 1",
        "expected holds",
        "parameter epsilon = 1.0",
        "parameter nodes = 8",
        "parameter strict = True",
        "parameter mode = 'fast'",
        "mechanism never called",
        "claim 1-DP",
        "pair 1 | 0",
        "control Response(inf)",
    ],
    "response": ["offers distribution(data)"],
    "promise": ["inputs zero", "claim unbiased (margin 1)"],
    "published": ["published a mechanism, as deployed", "tried users = 1, 2"],
    "repaired": ["repairs published"],
}
PUBLISHED = """
@audit(row="a mechanism", reading="as deployed", smallest={"users": [1, 2]}, expect="violation")
def published(users=2):
    '''It is private.'''
    return Audit(Response(2.0), PureDP(1.0), BITS)


@audit(row="a mechanism", reading="half of it", repairs="published")
def repaired():
    '''Half of it is private.'''
    return Audit(Response(0.5), PureDP(1.0), BITS)
"""


def test_show_spells_an_audit_out_and_runs_nothing(two_files, project):
    project.audits(PUBLISHED)
    for name, rows in SHOWN.items():
        where = project if name in PUBLISHED else two_files
        outcome = where("show", name)
        shown = [" ".join(line.split()) for line in outcome.out.splitlines()]
        assert (outcome.code, set(rows) - set(shown)) == (0, set()), outcome
    assert not (two_files.root / "ran").exists()
    here = two_files("show gpu")
    assert (here.code, "needs a CUDA device" in here.out) == (0, True)
    # Exit code 1 would say that a violation was found.
    broken = two_files("show breaks")
    assert broken.code in (2, 3)
    assert "no such data" in broken.text
    assert "Traceback" not in broken.err


PARAMETERS = {
    "epsilon=3": 3.0,
    "epsilon=2.5e-1": 0.25,
    "nodes=12": 12,
    "strict=false": False,
    "strict=0": False,
    "strict=True": True,
    "mode=slow and steady=1": "slow and steady=1",
    "mode=12": "12",
    "mode=": "",
}


@pytest.mark.dear
@pytest.mark.parametrize("option", PARAMETERS)
def test_parameters_are_read_in_the_type_of_their_default(two_files, option):
    edges = "audits/audit_edges.py"
    run = two_files.run(f"{edges} {edges}::dprr", "-P", option)
    # Named twice, it runs once and takes one share of alpha.
    assert run.names == NAMES[:2]
    assert [each["alpha"] for each in run.record["alpha_ledger"]] == [0.025] * 2
    others = {"epsilon": 1.0, "nodes": 8, "strict": True, "mode": "fast"}
    expected = others | {option.partition("=")[0]: PARAMETERS[option]}
    found = run.audit("dprr")["parameters"]
    assert found == expected
    assert list(map(type, found.values())) == list(map(type, expected.values()))


@pytest.mark.dear
def test_a_parameter_reaches_every_audit_that_has_it_and_no_other(two_files):
    run = two_files.run("-k 'not breaks' -P epsilon=0.75")
    claims = [(run.audit(name)["claim"] or {}).get("epsilon") for name in NAMES[:5]]
    assert claims == [0.75, 0.75, 0.75, None, None]
    assert run.record["arguments"]["options"] == ["epsilon=0.75"]


@pytest.mark.dear
def test_a_run_writes_the_ledger(project):
    project.audits(PUBLISHED)
    assert project.run("--report claims=c.md --report claims-json=c.json").code == 0
    text = (project.root / "c.md").read_text()
    assert "1 claim: 1 VIOLATED." in text
    assert "CERTIFIED: Half of it is private." in text
    assert '"verdict": "VIOLATED"' in (project.root / "c.json").read_text()
