from dataclasses import fields

import pytest

from auditdp.configuration import FAILURES, KINDS, Configuration, load, project_name
from auditdp.errors import ConfigurationError


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('[project]\nname = "counts"\n', "counts"),
        ("[project]\n", "folder"),
        ("[project]\nname = 3\n", "folder"),
        ("project = 3\n", "folder"),
        ("no toml at all [", "folder"),
        (None, "folder"),
    ],
)
def test_the_name_of_a_project(tmp_path, text, expected):
    folder = tmp_path / "folder"
    folder.mkdir()
    if text is not None:
        (folder / "pyproject.toml").write_text(text)
    assert project_name(folder) == expected


TABLE = """
[tool.auditdp]
seed = 7
budget = "quick"
fail_on = ["inconclusive"]
[tool.auditdp.profiles.ci]
seed = 8
workers = 2
[tool.auditdp.profiles.night]
budget = "thorough"
"""


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "pyproject.toml").write_text(TABLE)
    return tmp_path


def test_each_layer_stands_above_the_one_below(folder):
    plain, ci = (
        load(folder, environment={}),
        load(folder, "ci", {"AUDITDP_BUDGET": "thorough"}),
    )
    assert (plain.seed, plain.budget, plain.workers, plain.alpha) == (
        7,
        "quick",
        "1",
        0.05,
    )
    assert (ci.seed, ci.budget, ci.workers, ci.fail_on, ci.profile) == (
        8,
        "thorough",
        "2",
        ("inconclusive",),
        "ci",
    )
    path = folder / "pyproject.toml"
    assert ci.sources["seed"] == f"{path}, [tool.auditdp.profiles.ci]"
    assert ci.sources["budget"] == "the environment, AUDITDP_BUDGET"
    assert ci.sources["fail_on"] == f"{path}, [tool.auditdp]"
    assert ci.sources["alpha"] == "default"


def test_a_profile_of_the_environment_gives_way_to_one_that_is_given(folder):
    assert load(folder, environment={"AUDITDP_PROFILE": "night"}).budget == "thorough"
    assert load(folder, "ci", {"AUDITDP_PROFILE": "night"}).budget == "quick"


def test_the_file_is_found_upward_but_not_beyond_the_repository(folder):
    inside = folder / "a" / "b"
    inside.mkdir(parents=True)
    found = load(inside, environment={"AUDITDP_DATA": "data", "AUDITDP_PATHS": "x:y"})
    assert (found.folder, found.seed) == (folder, 7)
    assert (found.data, found.paths) == ("a/b/data", ("a/b/x", "a/b/y"))
    (folder / "a" / "pyproject.toml").write_text("[project]\nname = 'another'\n")
    assert load(inside, environment={}).seed == 7
    (folder / "a" / ".git").mkdir()
    assert load(inside, environment={}).seed is None
    assert load(inside, environment={}).folder == inside


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "[tool.auditdp]\nsede = 1",
            "unknown key tool.auditdp.sede; did you mean 'seed'?",
        ),
        (
            "[tool.auditdp.profiles.ci]\nbugdet = 'quick'",
            "tool.auditdp.profiles.ci.bugdet; did you mean 'budget'?",
        ),
        (
            "[tool.auditdp.profiles.ci]\nalpha = 1",
            "tool.auditdp.profiles.ci.alpha = 1; expected a number strictly",
        ),
        (
            "[tool.auditdp]\nprofiles = 3",
            "expected tables such as [tool.auditdp.profiles.ci]",
        ),
        (
            "[tool.auditdp]\nfail_on = ['never']",
            "expected a list of none, error, inconclusive, skipped",
        ),
        ("[tool.auditdp]\nworkers = 0", "expected a number >= 1, or 'auto'"),
        ("[tool.auditdp]\nworkers = true", "expected a number >= 1, or 'auto'"),
        ("[tool.auditdp]\nbudget = 'quik'", "did you mean 'quick'?"),
        ("[tool.auditdp]\npaths = [3]", "expected a list of folders and files"),
        ("[tool.auditdp]\nbaseline = ''", "expected the path of a file"),
    ],
)
def test_what_the_file_may_not_say(tmp_path, text, message):
    (tmp_path / "pyproject.toml").write_text(text)
    with pytest.raises(ConfigurationError) as error:
        load(tmp_path, environment={})
    assert message in str(error.value)
    assert str(tmp_path / "pyproject.toml") in str(error.value)


@pytest.mark.parametrize(
    ("environment", "message"),
    [
        ({"AUDITDP_SEED": "one"}, "AUDITDP_SEED=one: expected an integer >= 0"),
        ({"AUDITDP_SEED": "-1"}, "AUDITDP_SEED=-1: expected an integer >= 0"),
        (
            {"AUDITDP_ALPHA": "nan"},
            "AUDITDP_ALPHA=nan: expected a number strictly between 0 and 1",
        ),
        ({"AUDITDP_FAIL_ON": "error,nevr"}, "expected a list of none, error"),
        (
            {"AUDITDP_SEDE": "1"},
            "unknown environment variable AUDITDP_SEDE; did you mean 'AUDITDP_SEED'?",
        ),
        ({"AUDITDP_PROFIL": "ci"}, "did you mean 'AUDITDP_PROFILE'?"),
        (
            {"AUDITDP_PROFILE": "cii"},
            "AUDITDP_PROFILE=cii: no such profile; did you mean 'ci'?",
        ),
    ],
)
def test_what_the_environment_may_not_say(folder, environment, message):
    with pytest.raises(ConfigurationError) as error:
        load(folder, environment=environment)
    assert message in str(error.value)


def test_variables_of_others_and_empty_ones_are_left_alone(folder):
    found = load(
        folder,
        environment={
            "AUDITDP_FORKSERVER": "x",
            "AUDITDP_SEED": "",
            "AUDITDP_OF_MINE": "1",
        },
    )
    assert found.seed == 7


def test_a_profile_that_does_not_exist_is_refused_with_what_there_is(folder):
    with pytest.raises(
        ConfigurationError,
        match="--profile weekly: no such profile; known: ci, night; or write",
    ):
        load(folder, "weekly", {})


def test_the_names_are_those_of_the_rooms_that_use_them():
    from auditdp.cli.run_options import FailOn

    assert set(FAILURES) == set(map(str, FailOn))
    assert {field.name for field in fields(Configuration)} == {
        *KINDS,
        "profile",
        "folder",
        "sources",
    }


@pytest.mark.parametrize(
    ("written", "budget"),
    [("200000", "200000"), ("'1e5'", "1e5"), ("'tail:0.005'", "tail:0.005")],
)
def test_a_budget_may_be_a_number_or_a_fault(tmp_path, written, budget):
    (tmp_path / "pyproject.toml").write_text(f"[tool.auditdp]\nbudget = {written}\n")
    assert load(tmp_path, environment={}).budget == budget


@pytest.mark.parametrize("written", ["0", "true", "2.5", "['quick']", "'tail:2'"])
def test_what_is_no_budget_is_refused_with_all_that_may_be_one(tmp_path, written):
    (tmp_path / "pyproject.toml").write_text(f"[tool.auditdp]\nbudget = {written}\n")
    with pytest.raises(
        ConfigurationError,
        match="expected quick, standard, thorough, a number of calls, or a fault to find",
    ):
        load(tmp_path, environment={})
