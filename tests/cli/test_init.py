"""``auditdp init``: what it writes runs, and nothing that is there is lost."""

from __future__ import annotations

import tomllib

import pytest

pytestmark = pytest.mark.dear


def test_what_it_writes_runs_and_leaves_what_is_there(project):
    project.write("pyproject.toml", "[project]\nname = 'mine'\n")
    project.write(".github/workflows/privacy.yml", "name: mine\n")
    project.write(
        "package/release.py",
        """
        import numpy as np

        def histogram(records: np.ndarray, size, scale, *, generator, epsilon=2.0):
            return records + generator.laplace(scale=scale / epsilon, size=(size, 3))
        """,
    )
    missing = project("init", "package/release.py::histogram")
    assert (
        missing.code,
        "needs scale; give a value: -P scale=VALUE" in missing.err,
    ) == (2, True)
    made = project("init", "package/release.py::histogram", "-P", "scale=1.0")
    assert made.code == 0, made.err
    assert "left .github/workflows/privacy.yml as it is" in made.out
    settings = tomllib.loads((project.root / "pyproject.toml").read_text())
    assert settings["project"]["name"] == "mine"
    assert set(settings["tool"]["auditdp"]["profiles"]) == {"ci", "paper"}
    found = project("run", "--profile", "ci", "--calls", "900", "--format", "json")
    assert found.code == 0, found.err
    audit = found.audit("histogram_is_private")
    assert (audit["claim"]["epsilon"], audit["claim"]["source"]) == (
        2.0,
        "the parameters of histogram",
    )
    assert [control["name"] for control in audit["controls"]] == [
        "mechanism without noise"
    ]
    assert audit["controls"][0]["verdict"] == "VIOLATED"
    assert project("config", "show", "--profile", "paper").code == 0
    again = project("init", "package/release.py::histogram", "-P", "scale=1.0")
    assert (again.code, "has histogram_is_private already" in again.err) == (2, True)


@pytest.mark.full
def test_a_function_that_draws_elsewhere_and_a_job_for_gitlab(project):
    project.write(
        "flip.py",
        "import random\n\ndef flip(bit: bool):\n    '''An (1.5, 1e-6)-DP bit.'''\n    return bit ^ (random.random() < .3)\n",
    )
    made = project("init", "flip.py::flip", "--ci", "gitlab")
    assert "wrote privacy.gitlab-ci.yml" in made.out
    found = project("run", "--profile", "ci", "--format", "json").audit(
        "flip_is_private"
    )
    assert (found["claim"]["epsilon"], found["claim"]["delta"]) == (1.5, 1e-6)
    assert "draws its own randomness" in found["reproduce"]
    assert project("init", "flip.py::flip", "--ci", "none").code == 2


def test_a_folder_is_searched_and_what_is_written_sees_the_noise_vanish(project):
    source = """
        def count(ages: list[int], rng, epsilon=1.0):
            return len(ages) + {noise} * rng.laplace(scale=1 / epsilon)

        def capped(ages: list[int], rng, cap):
            return sum(ages) + rng.laplace(scale=cap)
        """
    project.write("package/release.py", source.format(noise=1))
    made = project("init", "package", "--ci", "none")
    assert "wrote audits/audit_release.py: count; settle its comments" in made.out
    assert (
        "left out package/release.py::capped: it needs cap; give -P cap=VALUE"
        in made.out
    )
    added = project("init", "package", "-P", "cap=100", "--ci", "none")
    assert "added to audits/audit_release.py: capped" in added.out
    project.write("package/release.py", source.format(noise=0))
    assert (
        project(
            "run", "audits/audit_release.py::count_is_private", "--calls", "900", "-q"
        ).code
        == 1
    )


@pytest.mark.full
def test_inputs_of_which_nothing_is_known_are_not_guessed(project):
    project.write(
        "ages.py",
        "def mean(ages, rng):\n    return sum(ages) / len(ages) + rng.laplace()\n",
    )
    made = project("init", "ages.py::mean", "--ci", "none")
    assert made.code == 0
    assert (
        "pairs= in audits/audit_ages.py needs two values of ages that differ in one person's data"
        in made.out
    )
    written = (project.root / "audits" / "audit_ages.py").read_text()
    assert "nothing in the source says what ages is" in written
    assert max(map(len, written.splitlines())) <= 120
    unsettled = project("run", "--profile", "ci")
    assert (
        unsettled.code,
        "expected at least one pair of neighbouring inputs" in unsettled.out,
    ) == (3, True)
    project.write(
        "audits/audit_ages.py", written.replace("pairs=[]", "pairs=[([30, 50], [30])]")
    )
    assert project("run", "--profile", "ci").code == 1


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["nothing.py::f"], "nothing.py: no such file"),
        (["empty"], "nothing draws randomness there"),
        (["f.py::g"], "has no function 'g'"),
        (["f.py::C"], "is no plain function; name a method, such as C.release"),
        (["f.py::nodata"], "takes no private data"),
        (["f.py::f", "-P", "x=1"], "no function has such a parameter"),
        (["f.py::f", "-P", "x"], "expected name=VALUE"),
        (["f.py::f", "-P", "x=os.system()"], "a value as Python writes it"),
        (["broken.py::f"], "broken.py, line 1: no Python"),
        (["no-module.py::f"], "'no-module' is no name of a module"),
        (["../f.py::f"], "no such file"),
        (["f.py::f", "--ci", "travis"], "travis"),
    ],
)
def test_what_it_cannot_read_is_refused_and_nothing_written(
    project, arguments, message
):
    project.write("f.py", "class C: pass\ndef f(x, rng): pass\ndef nodata(rng): pass\n")
    project.write("broken.py", "def f(\n")
    project.write("empty/__init__.py", "")
    project.write("no-module.py", "def f(x, rng): pass\n")
    before = sorted(path.name for path in project.root.iterdir())
    outcome = project("init", *arguments)
    assert (outcome.code, message in " ".join(outcome.err.split())) == (2, True), (
        outcome.err
    )
    assert sorted(path.name for path in project.root.iterdir()) == before
