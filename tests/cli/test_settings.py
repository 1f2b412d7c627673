"""Somebody's own repository: its pyproject.toml, its folder of audits, and the modules beside them."""

from __future__ import annotations

import shlex
import tomllib

import pytest

from auditdp.configuration import KINDS
from tests.cli.conftest import Project

pytestmark = pytest.mark.dear

AUDITS = """
def coin(data, size, *, rng):
    return rng.integers(0, 2, size)

@audit()
def fine():
    return Audit(coin, PureDP(1.0), AnyValues((0, 1)))
"""
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


def test_the_settings_of_a_project_are_used(project):
    project.write("pyproject.toml", SETTINGS)
    project.audits(AUDITS, "privacy/audit_one.py")
    project.audits(AUDITS, "more/audit_other.py")
    project.audits(AUDITS, "more/audit_unlisted.py")
    record = project("run", "--format", "json").record
    assert [r["id"] for r in record["results"]] == [
        "privacy/audit_one.py::fine",
        "more/audit_other.py::fine",
    ]
    assert record["root_seed"] == 77
    assert record["arguments"]["budget"] == "quick"
    assert record["arguments"]["timeout"] == 30
    assert {entry["alpha"] for entry in record["alpha_ledger"]} == {0.005}
    assert all(1_900 < result["calls"] <= 4_000 for result in record["results"])
    assert len(project("list").out.splitlines()) == 2


@pytest.mark.full
def test_options_beat_the_settings(project):
    project.write("pyproject.toml", SETTINGS.replace('"quick"', '"thorough"'))
    project.audits(AUDITS, "privacy/audit_one.py")
    project.audits(AUDITS, "more/audit_unlisted.py")
    record = project(
        *("run", "more/audit_unlisted.py", "--format", "json"),
        *("--seed", "3", "--budget", "quick", "--alpha", "0.2", "--timeout", "60"),
    ).record
    assert [r["id"] for r in record["results"]] == ["more/audit_unlisted.py::fine"]
    assert (
        record["root_seed"],
        record["arguments"]["budget"],
        record["arguments"]["timeout"],
    ) == (3, "quick", 60)
    assert record["alpha_ledger"][0]["alpha"] == 0.2


def test_a_project_without_settings_has_defaults(project):
    project.write("pyproject.toml", "[project]\nname = 'somebody-else'\n")
    project.audits(AUDITS.replace("AnyValues((0, 1))", "AnyValues((0, 1)), calls=50"))
    record = project("run", "--format", "json").record
    assert (
        record["arguments"]
        | {"paths": ["audits"], "budget": "standard", "timeout": 600}
        == record["arguments"]
    )
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
            return Audit(Response(beside.EPSILON), PureDP(EPSILON), AnyValues((0, 1)), evidence=["exact"])
        """
    )
    found = project.run("-n", workers).audit("mine")
    assert found["mechanism"] == "Response(0.5)"
    assert found["claim"]["epsilon"] == 0.5


@pytest.mark.full
def test_an_audit_outside_the_current_folder_has_its_whole_path_as_id(
    project, tmp_path
):
    project.audits(AUDITS, "../elsewhere/audit_one.py")
    outcome = project.run("../elsewhere")
    path = tmp_path / "elsewhere" / "audit_one.py"
    assert outcome.record["results"][0]["id"] == f"{path.as_posix()}::fine"


DATA = """
@audit()
def with_data():
    value = float(data_file("value.txt").read_text())
    return Audit(Response(value), PureDP(value), AnyValues((0, 1)), evidence=["exact"])
"""


def test_the_data_folder_comes_from_the_option_the_environment_or_the_settings(project):
    project.audits(DATA)
    for name, value in (("a", "1"), ("b", "2"), ("c", "3")):
        project.write(f"{name}/value.txt", value)

    def epsilon(*arguments, **variables):
        outcome = project(
            "run", "--format", "json", "--budget", "quick", *arguments, **variables
        )
        return outcome.audit("with_data")["claim"]["epsilon"]

    assert epsilon("--data", "a") == 1.0
    assert epsilon(AUDITDP_DATA="b") == 2.0
    assert epsilon("--data", "a", AUDITDP_DATA="b") == 1.0
    project.write("pyproject.toml", "[tool.auditdp]\ndata = 'c'\n")
    assert epsilon() == 3.0


def test_without_its_data_an_audit_is_skipped_with_the_remedy(project):
    project.audits(DATA)
    outcome = project.run()
    assert outcome.code == 5
    assert outcome.audit("with_data")["verdict"] == "SKIPPED"
    assert "--data" in outcome.audit("with_data")["summary"]
    (project.root / "empty").mkdir()
    found = project.run("--data", "empty").audit("with_data")
    assert found["verdict"] == "SKIPPED"
    assert "value.txt" in found["summary"]


@pytest.mark.full
def test_a_command_in_a_subfolder_is_that_of_the_project(project):
    """Its settings, its ids and hence its randomness, with the paths that are given taken from where it was given."""
    project.write("pyproject.toml", SETTINGS)
    project.audits(AUDITS, "privacy/audit_one.py")
    project.audits(AUDITS, "more/audit_other.py")
    whole = project("run", "--format", "json").untimed
    inside = Project(project.root / "more", project.server)
    assert inside("run", "--format", "json").untimed == whole
    assert [
        r["id"]
        for r in inside("run", "audit_other.py", "--format", "json").record["results"]
    ] == ["more/audit_other.py::fine"]
    written = inside(
        "run",
        "audit_other.py::fine",
        "--report",
        "json=out.json",
        "--log",
        "mine.jsonl",
    )
    assert written.code == 0, written.err
    assert (project.root / "more" / "out.json").is_file()
    assert (project.root / "more" / "mine.jsonl").is_file()
    assert inside("list", "audit_other.py").out.startswith("more/audit_other.py::fine")
    assert inside("replay", "more/audit_other.py::fine").code == 0


def test_config_show_says_where_every_value_comes_from(project):
    project.write(
        "pyproject.toml", SETTINGS + "[tool.auditdp.profiles.ci]\nalpha = 0.02\n"
    )
    path = project.root / "pyproject.toml"
    outcome = project("config", "show", "--profile", "ci", AUDITDP_SEED="5")
    assert outcome.code == 0
    rows = dict(
        line.split("  # ", 1)
        for line in (" ".join(x.split(" ")) for x in outcome.out.splitlines()[1:])
    )
    message = {name.strip(): source for name, source in rows.items()}
    assert message["seed = 5"] == "the environment, AUDITDP_SEED"
    assert message["alpha = 0.02"] == f"{path}, [tool.auditdp.profiles.ci]"
    assert (
        message['paths = ["privacy", "more/audit_other.py"]']
        == f"{path}, [tool.auditdp]"
    )
    assert message['workers = "1"'] == "default"
    values = tomllib.loads(outcome.out)
    assert set(values) == set(KINDS)


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
    project.write(
        "pyproject.toml",
        "[tool.auditdp]\nseed = 5\n[tool.auditdp.profiles.plain]\ntrace = false\n",
    )

    def traces(*arguments, **variables):
        outcome = project("run", "--format", "json", *arguments, **variables)
        found = {name: outcome.audit(name) for name in ("traced", "declines")}
        assert all(
            ("--no-trace" in result["reproduce"]) != whole(outcome)
            for result in found.values()
        )
        return {
            name
            for name, result in found.items()
            if result["evidence"][0]["details"].get("trace")
        }

    def whole(outcome):
        return outcome.record["arguments"].get("trace", True)

    assert traces() == traces("--trace", "--profile", "plain") == {"traced"}
    assert (
        traces("--no-trace")
        == traces("--profile", "plain")
        == traces(AUDITDP_TRACE="false")
        == set()
    )


@pytest.mark.full
def test_an_audit_that_was_not_traced_is_not_when_it_is_played_again(project):
    project.audits(TRACED)
    plain = project("run", "--no-trace", "--seed", "5", "--format", "json")
    assert "same outcome" in project("replay", "::traced").err
    assert project("run", "--resume", "--format", "json").untimed == plain.untimed
    assert "arguments differs" in project("run", "--resume", "--trace").err
    words = shlex.split(plain.audit("traced")["reproduce"])[1:]
    assert (
        project(*words, "--format", "json").audit("traced")["evidence"]
        == plain.audit("traced")["evidence"]
    )
    assert (
        "without --trace or --no-trace"
        in project("run", "--continue", "traced", "--calls", "200", "--trace").err
    )
    goes_on = project(
        "run", "--continue", "traced", "--calls", "200", "--format", "json"
    ).audit("traced")
    assert goes_on["evidence"][0]["details"].get("trace") is None


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["config", "show", "--profile", "cii"], "did you mean 'ci'?"),
        (["run", "--profile", "cii"], "did you mean 'ci'?"),
        (["config", "shwo"], "show"),
    ],
)
def test_a_profile_that_does_not_exist(project, arguments, message):
    project.write("pyproject.toml", "[tool.auditdp.profiles.ci]\nalpha = 0.02\n")
    outcome = project(*arguments)
    assert outcome.code == 2
    assert message in " ".join(outcome.err.split())


def test_a_broken_file_is_said_by_the_commands_that_need_settings_alone(project):
    project.write("pyproject.toml", "[tool.auditdp")
    assert project("--version").code == 0
    for command in (["config", "show"], ["run"], ["list"]):
        outcome = project(*command)
        assert (outcome.code, "pyproject.toml" in outcome.err) == (2, True)
