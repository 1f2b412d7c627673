"""The files to copy: they are what their service expects, and their steps run here, without what installs."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest
import yaml

from auditdp.runner.sandbox import sandbox_of
from tests.cli.conftest import PATIENCE, SCRIPT, environment, git

pytestmark = pytest.mark.dear

ROOT = Path(__file__).parents[2]
FINE = "def noisy(x: int, rng):\n    '''A 1-DP number.'''\n    return x + rng.laplace(scale={})\n"


def parsed(path):
    return yaml.safe_load((ROOT / path).read_text(encoding="utf-8"))


def github():
    return parsed("auditdp/cli/templates/github.yml")["jobs"]


def gitlab():
    return parsed("auditdp/cli/templates/gitlab.yml")["privacy-audits"]


def script_of(service, name="audit"):
    """Return the commands that a job runs in one of its steps."""
    if service == "gitlab":
        return "\n".join(gitlab()["script" if name == "audit" else "before_script"])
    (script,) = (
        step["run"] for step in github()["audits"]["steps"] if step.get("name") == name
    )
    return script


@pytest.fixture(scope="module")
def finished(shared_project):
    """A repository that `auditdp init` has been run in, with its baseline."""
    shared_project.write("mine.py", FINE.format(1.0))
    for command in ("init mine.py::noisy", "run --profile ci -q", "baseline update"):
        assert shared_project(command).code == 0
    ignored = ".auditdp/\n__pycache__/\nauditdp-reports/\nauditdp.*\n"
    shared_project.write(".gitignore", ignored)
    git(shared_project.root, "init -q -b main")
    git(shared_project.root, "add .")
    git(shared_project.root, "commit -qm first")
    return shared_project.root


@pytest.fixture
def repository(project, finished):
    """A copy of it."""
    shutil.copytree(finished, project.root, dirs_exist_ok=True)
    return project


def shell(project, script, **variables):
    """Run a step as a runner does: bash that stops at an error, with the script's folder on the path."""
    path = f"{SCRIPT.parent}:{os.environ['PATH']}"
    for name in ("GITHUB_OUTPUT", "GITHUB_STEP_SUMMARY"):
        variables[name] = str(project.root.with_name(name))
    return subprocess.run(
        ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", script],
        cwd=project.root,
        env={**environment(), "PATH": path, **variables},
        capture_output=True,
        text=True,
        timeout=PATIENCE,
    )


def test_they_are_what_the_service_expects():
    """What the documentation of GitHub asks of a composite action, and pre-commit of hooks."""
    action = parsed("action.yml")
    assert action["name"]
    assert action["description"]
    assert action["runs"]["using"] == "composite"
    for step in action["runs"]["steps"]:
        assert step["run"]
        assert step["shell"] == "bash"
    for given in action["inputs"].values():
        assert isinstance(given["default"], str)
        assert given["description"]
    for each in action["outputs"].values():
        assert set(each) >= {"description", "value"}
    for job in github().values():
        assert job["runs-on"]
        assert all(("uses" in step) != ("run" in step) for step in job["steps"])
    for hook in parsed(".pre-commit-hooks.yaml"):
        assert set(hook) >= {"id", "name", "entry"}
        assert hook["language"] in ("python", "system")


@pytest.mark.full
def test_the_action_passes_a_repository_and_fails_a_broken_mechanism(repository):
    action = parsed("action.yml")
    (step,) = (each for each in action["runs"]["steps"] if each.get("id") == "audit")
    inputs = {name: given["default"] for name, given in action["inputs"].items()}
    inputs |= {"profile": "ci"}
    root = repository.root

    def run(**given):
        variables = {}
        for name, text in step["env"].items():
            option = text.removeprefix("${{ inputs.").removesuffix(" }}")
            variables[name] = given.get(option.replace("-", "_"), inputs[option])
        return shell(repository, step["run"], **variables)

    fine = run()
    assert fine.returncode == 0, fine.stderr
    assert "nothing worse was seen" in fine.stdout
    assert root.with_name("GITHUB_OUTPUT").read_text() == "code=0\n"
    unchanged = run(changed_since="HEAD")
    assert unchanged.returncode == 0
    assert "no audit is concerned" in unchanged.stderr
    repository.write("mine.py", FINE.format(0.4))
    broken = run(changed_since="HEAD")
    assert broken.returncode == 1
    finding = "::error file=mine.py,line=3,title=finding%3A noisy_is_private::"
    assert finding in broken.stdout
    assert "✕ 1 new finding" in root.with_name("GITHUB_STEP_SUMMARY").read_text()
    for name in ("auditdp.sarif", "junit.xml", "comment.md"):
        assert (root / "auditdp-reports" / name).is_file()
    for output in ("sarif", "comment"):
        assert (root / action["outputs"][output]["value"]).is_file()


def test_the_workflow_passes_a_repository(repository):
    written = (repository.root / ".github/workflows/privacy.yml").read_text()
    assert written == (ROOT / "auditdp/cli/templates/github.yml").read_text()
    fine = shell(repository, script_of("github"), TRUSTED="main")
    assert fine.returncode == 0, fine.stderr


BASE = {
    "github": {"BASE": "main", "TRUSTED": "origin/main"},
    "gitlab": {"CI_MERGE_REQUEST_TARGET_BRANCH_NAME": "main"},
}
SETTINGS = '[tool.auditdp]\npaths = ["nothing"]\nsandbox = "off"\nalpha = 1e-9\n[tool.auditdp.profiles.ci]\n'
LEAKED = "import os\nassert 'CI_JOB_TOKEN' not in os.environ\n"


@pytest.mark.skipif(
    bool(sandbox_of("auto", network=False).lacking),
    reason="this system has no whole sandbox",
)
@pytest.mark.parametrize("service", BASE)
def test_a_pull_request_does_not_judge_itself(repository, service):
    """It breaks the mechanism, turns the sandbox and the audits off, and brings reports of a clean run."""
    root = repository.root
    git(root, "update-ref refs/remotes/origin/main main")
    url = "https://gitlab-ci-token:secret@example.org/x.git"
    git(root, f"remote add origin {url}")
    repository.write("mine.py", FINE.format(0.4))
    if service == "gitlab":
        audit = root / "audits/audit_mine.py"
        text = audit.read_text().replace("\nfrom", f"\n{LEAKED}from", 1)
        assert LEAKED in text
        audit.write_text(text)
    repository.write("nothing/audit_nothing.py", "")
    repository.write("pyproject.toml", SETTINGS)
    repository.write("auditdp.xml", '<testsuites tests="1" failures="0"/>')
    secret = {"CI": "true", "CI_JOB_TOKEN": "secret"}
    done = shell(repository, script_of(service), **secret, **BASE[service])
    assert done.returncode == 1, done.stderr
    assert 'failures="1"' in (root / "auditdp.xml").read_text()
    if service == "gitlab":
        assert "secret" not in (root / ".git/config").read_text()


RUNS = "import os, sys\nos.write(2, f'{__name__} runs\\n'.encode())\n"
PLUGIN = """
class Plugin:
    def new_schema_validator(self, *given, **named):
        return None, None, None

plugin = Plugin()
"""
IMPORTING = """
from auditdp import Audit, PureDP, audit
import needed

@audit
def noisy():
    return Audit(needed.noisy, PureDP(1.0), pairs=[(0, 1)])
"""


def test_who_judges_imports_nothing_that_is_for_audits(shared_project):
    """What Python and libraries load of a folder on their path, whatever is imported from there."""
    metadata = "Metadata-Version: 2.1\nName: plugged\nVersion: 1\n"
    for name, text in {
        "needed.py": FINE.format(1.0),
        "sitecustomize.py": RUNS,
        "plugged.py": RUNS + PLUGIN,
        "plugged-1.dist-info/METADATA": metadata,
        "plugged-1.dist-info/entry_points.txt": "[pydantic]\nplugged = plugged:plugin\n",
    }.items():
        shared_project.write(f"packages/{name}", text)
    shared_project.write("audits/audit_importing.py", IMPORTING)
    packages = str(shared_project.root / "packages")
    script = "auditdp run audits/audit_importing.py --budget quick --seed 1"
    judged = shell(shared_project, script, AUDITDP_IMPORTS=packages)
    assert (judged.returncode, "runs" in judged.stderr) == (0, False), judged.stdout
    path = os.pathsep.join([os.environ.get("PYTHONPATH", ""), packages])
    taken = shell(shared_project, script, PYTHONPATH=path.strip(os.pathsep))
    assert {"sitecustomize runs", "plugged runs"} <= set(taken.stderr.splitlines())


def test_the_workflows_keep_who_judges_apart():
    steps = [step for job in github().values() for step in job["steps"]]
    checkouts = [step for step in steps if "checkout" in step.get("uses", "")]
    kept = [step["with"]["persist-credentials"] for step in checkouts]
    assert kept == [False, False]
    for service in BASE:
        assert "--sandbox required" in script_of(service)
        text = script_of(service, "install").replace("$pip", "pip")
        installed = [line for line in text.splitlines() if "pip install" in line]
        assert len(installed) == 4
        for line in installed:
            pinned = ("--no-index --no-deps", "pip.txt", "pylock")
            assert any(each in line for each in pinned)
        assert "sha256sum" in text
        assert "AUDITDP_IMPORTS=" in text
        assert ".pth" not in text


@pytest.mark.full
def test_the_job_for_gitlab(repository):
    repository.write("mine.py", FINE.format(0.4))
    assert shell(repository, script_of("gitlab")).returncode == 1
    report = repository.root / gitlab()["artifacts"]["reports"]["junit"]
    assert 'failures="1"' in report.read_text()


@pytest.mark.full
def test_the_hooks_before_a_commit(repository):
    hooks = {hook["id"]: hook["entry"] for hook in parsed(".pre-commit-hooks.yaml")}
    known = shell(repository, hooks["auditdp-baseline"]).stdout
    assert known == "auditdp-baseline.toml: 1 audit\n"
    repository.write("mine.py", FINE.format(0.4))
    assert shell(repository, hooks["auditdp"]).returncode == 1
    repository.write("auditdp-baseline.toml", "<<<<<<< HEAD\n")
    assert shell(repository, hooks["auditdp-baseline"]).returncode == 2
