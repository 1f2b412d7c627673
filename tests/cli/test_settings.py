"""Somebody's own repository: its pyproject.toml, its folder of audits, and the modules beside them."""

import shlex
import tomllib

import pytest

from auditdp.configuration import KINDS
from tests.cli.conftest import Project

pytestmark = pytest.mark.dear

AUDITS = "@audit()\ndef fine():\n    return Audit(coin, PureDP(1.0), BITS)\n"
SETTINGS = """
[project]
name = "somebody-else"

[tool.auditdp]
paths = ["privacy", "more/audit_other.py"]
seed = 77
budget = "quick"
alpha = 0.01
timeout = 30
"""
IDS = ["privacy/audit_one.py::fine", "more/audit_other.py::fine"]


@pytest.fixture
def theirs(project):
    project.write("pyproject.toml", SETTINGS)
    for path in ("privacy/audit_one.py", "more/audit_other.py", "more/audit_no.py"):
        project.audits(AUDITS, path)
    return project


def ids(record):
    return [result["id"] for result in record["results"]]


def test_the_settings_of_a_project_are_used(theirs):
    record = theirs("run --format json").record
    arguments = {"budget": "quick", "timeout": 30}
    assert ids(record) == IDS
    assert record["root_seed"] == 77
    assert record["arguments"] | arguments == record["arguments"]
    assert {entry["alpha"] for entry in record["alpha_ledger"]} == {0.005}
    assert all(1_900 < result["calls"] <= 4_000 for result in record["results"])
    assert len(theirs("list").out.splitlines()) == 2


@pytest.mark.full
def test_options_beat_the_settings(theirs):
    theirs.write("pyproject.toml", SETTINGS.replace('"quick"', '"thorough"'))
    options = "--seed 3 --budget quick --alpha 0.2 --timeout 60"
    record = theirs(f"run more/audit_no.py --format json {options}").record
    arguments = {"budget": "quick", "timeout": 60}
    assert ids(record) == ["more/audit_no.py::fine"]
    assert record["root_seed"] == 3
    assert record["arguments"] | arguments == record["arguments"]
    assert record["alpha_ledger"][0]["alpha"] == 0.2


def test_a_project_without_settings_has_defaults(project):
    project.write("pyproject.toml", "[project]\nname = 'somebody-else'\n")
    project.audits(AUDITS.replace("BITS", "BITS, calls=50"))
    record = project("run --format json").record
    defaults = {"paths": ["audits"], "budget": "standard", "timeout": 600}
    assert record["arguments"] | defaults == record["arguments"]
    assert record["alpha_ledger"][0]["alpha"] == 0.05


@pytest.mark.parametrize("workers", ["1", "2"])
def test_modules_beside_the_audits_and_at_the_root_are_importable(project, workers):
    project.write("audits/beside.py", "EPSILON = 0.5\n")
    project.write("package/__init__.py", "")
    project.write("package/mechanisms.py", "from auditdp.testing import Response\n")
    project.audits(
        """
        from beside import EPSILON
        from package.mechanisms import Response

        @audit()
        def mine():
            import beside
            return Audit(Response(beside.EPSILON), PureDP(EPSILON), BITS, evidence=["exact"])
        """
    )
    found = project.run(f"-n {workers}").audit("mine")
    assert found["mechanism"] == "Response(0.5)"
    assert found["claim"]["epsilon"] == 0.5


DATA = """
@audit()
def with_data():
    value = float(data_file("value.txt").read_text())
    return Audit(Response(value), PureDP(value), BITS, evidence=["exact"])
"""


def test_the_data_folder_comes_from_the_option_the_environment_or_the_settings(project):
    project.audits(DATA)
    for name, value in (("a", "1"), ("b", "2"), ("c", "3")):
        project.write(f"{name}/value.txt", value)

    def epsilon(options="", **variables):
        outcome = project(f"run --format json --budget quick {options}", **variables)
        return outcome.audit("with_data")["claim"]["epsilon"]

    assert epsilon("--data a") == 1.0
    assert epsilon(AUDITDP_DATA="b") == 2.0
    assert epsilon("--data a", AUDITDP_DATA="b") == 1.0
    project.write("pyproject.toml", "[tool.auditdp]\ndata = 'c'\n")
    assert epsilon() == 3.0


def test_without_its_data_an_audit_is_skipped_with_the_remedy(project):
    project.audits(DATA)
    (project.root / "empty").mkdir()
    for options, remedy in (("", "--data"), ("--data empty", "value.txt")):
        outcome = project.run(options)
        found = outcome.audit("with_data")
        assert (found["verdict"], outcome.code) == ("SKIPPED", 5)
        assert remedy in found["summary"]


@pytest.mark.full
def test_a_command_in_a_subfolder_is_that_of_the_project(theirs):
    """Its settings, its ids and hence its randomness; the paths that are given are relative to where it is given."""
    whole = theirs("run --format json").untimed
    inside = Project(theirs.root / "more", theirs.server)
    assert inside("run --format json").untimed == whole
    assert ids(inside("run audit_other.py --format json").record) == IDS[1:]
    log = "--report json=out.json --log mine.jsonl"
    written = inside(f"run audit_other.py::fine {log}")
    assert written.code == 0, written.err
    for name in ("out.json", "mine.jsonl"):
        assert (theirs.root / "more" / name).is_file()
    assert inside("list audit_other.py").out.startswith(IDS[1])
    assert inside(f"replay {IDS[1]}").code == 0
    outside = theirs.audits(AUDITS, "../elsewhere/audit_one.py").resolve()
    # An audit outside the project has its whole path as id.
    elsewhere = theirs.run("../elsewhere").record
    assert ids(elsewhere) == [f"{outside.as_posix()}::fine"]


def test_config_show_says_where_every_value_comes_from(project):
    profile = "[tool.auditdp.profiles.ci]\nalpha = 0.02\n"
    path = project.write("pyproject.toml", SETTINGS + profile)
    outcome = project("config show --profile ci", AUDITDP_SEED="5")
    rows = (line.partition("  # ") for line in outcome.out.splitlines()[1:])
    sources = {value.strip(): source for value, _, source in rows}
    expected = {
        "seed = 5": "the environment, AUDITDP_SEED",
        "alpha = 0.02": f"{path}, [tool.auditdp.profiles.ci]",
        'paths = ["privacy", "more/audit_other.py"]': f"{path}, [tool.auditdp]",
        'workers = "1"': "default",
    }
    assert sources | expected == sources
    assert set(tomllib.loads(outcome.out)) == set(KINDS)
    assert outcome.code == 0


TRACED = """
def noisy(x, rng):
    return x + rng.laplace()

@audit()
def traced():
    return Audit(noisy, PureDP(1.0), [Pair(0.0, 1.0)], calls=100)

@audit()
def declines():
    return Audit(noisy, PureDP(1.0), [Pair(0.0, 1.0)], calls=100, trace=False)
"""


@pytest.mark.full
def test_settings_and_options_say_whether_the_code_is_traced(project):
    project.audits(TRACED)
    profile = "[tool.auditdp]\nseed = 5\n[tool.auditdp.profiles.plain]\ntrace = false\n"
    project.write("pyproject.toml", profile)

    def traces(options="", **variables):
        outcome = project(f"run --format json {options}", **variables)
        is_traced = outcome.record["arguments"].get("trace", True)
        found = set()
        for name in ("traced", "declines"):
            result = outcome.audit(name)
            assert ("--no-trace" in result["reproduce"]) != is_traced
            if result["evidence"][0]["details"].get("trace"):
                found.add(name)
        return found

    assert traces() == traces("--trace --profile plain") == {"traced"}
    untraced = (traces("--no-trace"), traces("--profile plain"))
    assert untraced == (set(), set())
    assert traces(AUDITDP_TRACE="false") == set()


@pytest.mark.full
def test_an_audit_that_was_not_traced_is_not_when_it_is_played_again(project):
    project.audits(TRACED)
    plain = project("run --no-trace --seed 5 --format json")
    assert "same outcome" in project("replay ::traced").err
    assert project("run --resume --format json").untimed == plain.untimed
    assert "arguments differs" in project("run --resume --trace").err
    words = shlex.split(plain.audit("traced")["reproduce"])[1:]
    again = project(shlex.join(words), "--format", "json").audit("traced")
    assert again["evidence"] == plain.audit("traced")["evidence"]
    on = project("run --continue traced --calls 200 --format json").audit("traced")
    assert on["evidence"][0]["details"].get("trace") is None
