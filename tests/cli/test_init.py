"""``auditdp init``: what it writes runs, and nothing that is there is lost."""

import tomllib

import pytest

pytestmark = pytest.mark.dear


def test_what_it_writes_runs_and_leaves_what_is_there(project):
    project.write("pyproject.toml", "[project]\nname = 'mine'\n")
    project.write(".github/workflows/privacy.yml", "name: mine\n")
    source = """
    import numpy as np

    def histogram(records: np.ndarray, size, scale, *, generator, epsilon=2.0):
        return records + generator.laplace(scale=scale / epsilon, size=(size, 3))
    """
    project.write("package/release.py", source)
    init = "init package/release.py::histogram"
    assert project(init).refuses("needs scale; give a value: -P scale=VALUE")
    made = project(f"{init} -P scale=1.0")
    assert made.code == 0, made.err
    assert "left .github/workflows/privacy.yml as it is" in made.out
    settings = tomllib.loads((project.root / "pyproject.toml").read_text())
    assert settings["project"]["name"] == "mine"
    assert set(settings["tool"]["auditdp"]["profiles"]) == {"ci", "paper"}
    found = project("run --profile ci --calls 900 --format json")
    assert found.code == 0, found.err
    audit = found.audit("histogram_is_private")
    assert audit["claim"]["epsilon"] == 2.0
    assert audit["claim"]["source"] == "the parameters of histogram"
    (control,) = audit["controls"]
    assert control["name"] == "mechanism without noise"
    assert control["verdict"] == "VIOLATED"
    assert project("config show --profile paper").code == 0
    again = project(f"{init} -P scale=1.0")
    assert again.refuses("has histogram_is_private already")


@pytest.mark.full
def test_a_function_that_draws_elsewhere_and_a_job_for_gitlab(project):
    source = """
    import random

    def flip(bit: bool):
        '''An (1.5, 1e-6)-DP bit.'''
        return bit ^ (random.random() < .3)
    """
    project.write("flip.py", source)
    made = project("init flip.py::flip --ci gitlab")
    assert "wrote privacy.gitlab-ci.yml" in made.out
    found = project("run --profile ci --format json").audit("flip_is_private")
    assert (found["claim"]["epsilon"], found["claim"]["delta"]) == (1.5, 1e-6)
    assert "draws its own randomness" in found["reproduce"]
    assert project("init flip.py::flip --ci none").code == 2


def test_a_folder_is_searched_and_what_is_written_sees_the_noise_vanish(project):
    source = """
    def count(ages: list[int], rng, epsilon=1.0):
        return len(ages) + {noise} * rng.laplace(scale=1 / epsilon)

    def capped(ages: list[int], rng, cap):
        return sum(ages) + rng.laplace(scale=cap)
    """
    project.write("package/release.py", source.format(noise=1))
    made = project("init package --ci none")
    assert (
        "wrote audits/audit_release.py: count; answer the questions in its comments"
        in made.out
    )
    left_out = "left out package/release.py::capped: it needs cap; give -P cap=VALUE"
    assert left_out in made.out
    added = project("init package -P cap=100 --ci none")
    assert "added to audits/audit_release.py: capped" in added.out
    project.write("package/release.py", source.format(noise=0))
    run = "run audits/audit_release.py::count_is_private --calls 900 -q"
    assert project(run).code == 1


@pytest.mark.full
def test_inputs_of_which_nothing_is_known_are_not_guessed(project):
    source = "def mean(ages, rng):\n    return sum(ages) / len(ages) + rng.laplace()\n"
    project.write("ages.py", source)
    made = project("init ages.py::mean --ci none")
    assert made.code == 0
    needs = "needs two values of ages that differ in one person's data"
    assert f"pairs= in audits/audit_ages.py {needs}" in made.out
    file = project.root / "audits" / "audit_ages.py"
    written = file.read_text()
    assert "nothing in the source says what ages is" in written
    assert max(map(len, written.splitlines())) <= 120
    unsettled = project("run --profile ci")
    assert unsettled.code == 3
    assert "expected at least one pair of neighbouring inputs" in unsettled.out
    file.write_text(written.replace("pairs=[]", "pairs=[([30, 50], [30])]"))
    assert project("run --profile ci").code == 1
