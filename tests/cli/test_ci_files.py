"""The files to copy: they are what their service expects, and their steps run here, without what installs."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import jsonschema
import pytest
import yaml

from auditdp.runner.sandbox import sandbox_of
from tests.cli.conftest import PATIENCE, SCRIPT, environment
from tests.cli.test_changed_since import git

pytestmark = pytest.mark.dear

ROOT = Path(__file__).parents[2]
FINE = "def noisy(x: int, rng):\n    '''A 1-DP number.'''\n    return x + rng.laplace(scale={})\n"
TEXT = {"type": "string", "minLength": 1}
ACTION = {
    "type": "object",
    "required": ["name", "description", "runs"],
    "properties": {
        "inputs": {
            "additionalProperties": {
                "required": ["description", "default"],
                "properties": {"default": TEXT | {"minLength": 0}},
            }
        },
        "outputs": {"additionalProperties": {"required": ["description", "value"]}},
        "runs": {
            "required": ["using", "steps"],
            "properties": {
                "using": {"const": "composite"},
                "steps": {
                    "items": {
                        "required": ["run", "shell"],
                        "properties": {"run": TEXT, "shell": {"const": "bash"}},
                    }
                },
            },
        },
    },
}
"""What the documentation of GitHub asks of a composite action."""
WORKFLOW = {
    "required": ["on", "jobs"],
    "properties": {
        "jobs": {
            "additionalProperties": {
                "required": ["runs-on", "steps"],
                "properties": {
                    "steps": {
                        "items": {
                            "oneOf": [{"required": ["uses"]}, {"required": ["run"]}]
                        }
                    }
                },
            }
        }
    },
}
HOOKS = {
    "type": "array",
    "items": {
        "required": ["id", "name", "entry", "language"],
        "properties": {"language": {"enum": ["python", "system"]}},
    },
}


def parsed(path):
    # YAML 1.1 reads the key `on` as true; the services do not.
    content = yaml.safe_load((ROOT / path).read_text(encoding="utf-8"))
    return (
        {("on" if key is True else key): value for key, value in content.items()}
        if isinstance(content, dict)
        else content
    )


@pytest.fixture(scope="module")
def finished(shared_project):
    """A repository that `auditdp init` has been run in, with its baseline."""
    shared_project.write("mine.py", FINE.format(1.0))
    assert shared_project("init", "mine.py::noisy").code == 0
    assert shared_project("run", "--profile", "ci", "-q").code == 0
    assert shared_project("baseline", "update").code == 0
    git(shared_project.root, "init", "-q", "-b", "main")
    shared_project.write(
        ".gitignore", ".auditdp/\n__pycache__/\nauditdp-reports/\nauditdp.*\n"
    )
    git(shared_project.root, "add", ".")
    git(shared_project.root, "commit", "-qm", "first")
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


@pytest.mark.parametrize(
    ("path", "schema"),
    [
        ("action.yml", ACTION),
        ("auditdp/cli/templates/github.yml", WORKFLOW),
        (".pre-commit-hooks.yaml", HOOKS),
    ],
)
def test_they_are_what_the_service_expects(path, schema):
    jsonschema.validate(parsed(path), schema)


@pytest.mark.full
def test_the_action_passes_a_repository_and_fails_a_broken_mechanism(repository):
    action = parsed("action.yml")
    step = next(step for step in action["runs"]["steps"] if step.get("id") == "audit")
    inputs = {name: given["default"] for name, given in action["inputs"].items()} | {
        "profile": "ci"
    }

    def run(**given):
        values = inputs | {
            name.replace("_", "-"): value for name, value in given.items()
        }
        variables = {
            name: values[text.removeprefix("${{ inputs.").removesuffix(" }}")]
            for name, text in step["env"].items()
        }
        return shell(repository, step["run"], **variables)

    fine = run()
    assert fine.returncode == 0, fine.stderr
    assert "nothing worse was seen" in fine.stdout
    assert repository.root.with_name("GITHUB_OUTPUT").read_text() == "code=0\n"
    unchanged = run(changed_since="HEAD")
    assert (unchanged.returncode, "no audit is concerned" in unchanged.stderr) == (
        0,
        True,
    )
    repository.write("mine.py", FINE.format(0.4))
    broken = run(changed_since="HEAD")
    assert broken.returncode == 1
    assert (
        "::error file=mine.py,line=3,title=finding%3A noisy_is_private::"
        in broken.stdout
    )
    assert (
        "✕ 1 new finding"
        in repository.root.with_name("GITHUB_STEP_SUMMARY").read_text()
    )
    for name in ("auditdp.sarif", "junit.xml", "comment.md"):
        assert (repository.root / "auditdp-reports" / name).is_file()
    for output in ("sarif", "comment"):
        assert (repository.root / action["outputs"][output]["value"]).is_file()


def test_the_workflow_passes_a_repository(repository):
    steps = parsed("auditdp/cli/templates/github.yml")["jobs"]["audits"]["steps"]
    script = {step.get("name"): step.get("run", "") for step in steps}
    assert (repository.root / ".github/workflows/privacy.yml").read_text() == (
        ROOT / "auditdp/cli/templates/github.yml"
    ).read_text()
    fine = shell(repository, script["audit"], TRUSTED="main")
    assert fine.returncode == 0, fine.stderr


SANDBOX = pytest.mark.skipif(
    bool(sandbox_of("auto", network=False).lacking),
    reason="this system has no whole sandbox",
)


def script_of(service):
    """What a job runs once all is installed."""
    if service == "github":
        steps = parsed("auditdp/cli/templates/github.yml")["jobs"]["audits"]["steps"]
        return next(step["run"] for step in steps if step.get("name") == "audit")
    return "\n".join(
        parsed("auditdp/cli/templates/gitlab.yml")["privacy-audits"]["script"]
    )


@SANDBOX
@pytest.mark.parametrize("service", ["github", "gitlab"])
def test_a_pull_request_does_not_judge_itself(repository, service):
    """It breaks the mechanism, turns the sandbox and the audits off, and brings reports of a clean run."""
    git(repository.root, "update-ref", "refs/remotes/origin/main", "main")
    git(
        repository.root,
        "remote",
        "add",
        "origin",
        "https://gitlab-ci-token:secret@example.org/x.git",
    )
    repository.write("mine.py", FINE.format(0.4))
    audit = repository.root / "audits/audit_mine.py"
    leaked = "import os\nassert 'CI_JOB_TOKEN' not in os.environ\n"
    audit.write_text(
        audit.read_text().replace("\nfrom", f"\n{leaked}from", 1)
        if service == "gitlab"
        else audit.read_text()
    )
    assert service == "github" or leaked in audit.read_text()
    repository.write("nothing/audit_nothing.py", "")
    settings = '[tool.auditdp]\npaths = ["nothing"]\nsandbox = "off"\nalpha = 1e-9\n[tool.auditdp.profiles.ci]\n'
    repository.write("pyproject.toml", settings)
    repository.write("auditdp.xml", '<testsuites tests="1" failures="0"/>')
    base = {
        "github": {"BASE": "main", "TRUSTED": "origin/main"},
        "gitlab": {"CI_MERGE_REQUEST_TARGET_BRANCH_NAME": "main"},
    }
    done = shell(
        repository,
        script_of(service),
        CI="true",
        CI_JOB_TOKEN="secret",
        **base[service],
    )
    assert done.returncode == 1, done.stderr
    assert 'failures="1"' in (repository.root / "auditdp.xml").read_text()
    if service == "gitlab":
        assert "secret" not in (repository.root / ".git/config").read_text()


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
    packages = shared_project.root / "packages"
    shared_project.write("packages/needed.py", FINE.format(1.0))
    shared_project.write("packages/sitecustomize.py", RUNS)
    shared_project.write("packages/plugged.py", RUNS + PLUGIN)
    shared_project.write(
        "packages/plugged-1.dist-info/METADATA",
        "Metadata-Version: 2.1\nName: plugged\nVersion: 1\n",
    )
    shared_project.write(
        "packages/plugged-1.dist-info/entry_points.txt",
        "[pydantic]\nplugged = plugged:plugin\n",
    )
    shared_project.write("audits/audit_importing.py", IMPORTING)
    script = "auditdp run audits/audit_importing.py --budget quick --seed 1"
    judged = shell(shared_project, script, AUDITDP_IMPORTS=str(packages))
    assert (judged.returncode, "runs" in judged.stderr) == (0, False), judged.stdout
    on_the_path = os.pathsep.join(
        filter(None, [os.environ.get("PYTHONPATH"), str(packages)])
    )
    seen = shell(shared_project, script, PYTHONPATH=on_the_path)
    assert {"sitecustomize runs", "plugged runs"} <= set(seen.stderr.splitlines())


def test_the_workflows_keep_who_judges_apart():
    github = parsed("auditdp/cli/templates/github.yml")["jobs"]
    checkouts = [
        step
        for job in github.values()
        for step in job["steps"]
        if "checkout" in step.get("uses", "")
    ]
    assert len(checkouts) == 2
    assert all(step["with"]["persist-credentials"] is False for step in checkouts)
    install = next(
        step["run"]
        for step in github["audits"]["steps"]
        if step.get("name") == "install"
    )
    gitlab = parsed("auditdp/cli/templates/gitlab.yml")["privacy-audits"][
        "before_script"
    ]
    for text in (install, "\n".join(gitlab)):
        installed = [
            line
            for line in text.splitlines()
            if "pip install" in line.replace("$pip", "pip")
        ]
        assert len(installed) == 4
        assert all(
            "--no-index --no-deps" in line or "pip.txt" in line or "pylock" in line
            for line in installed
        )
        assert "sha256sum" in text
        assert "AUDITDP_IMPORTS=" in text
        assert ".pth" not in text
    for service in ("github", "gitlab"):
        assert "--sandbox required" in script_of(service)


@pytest.mark.full
def test_the_job_for_gitlab(repository):
    job = parsed("auditdp/cli/templates/gitlab.yml")["privacy-audits"]
    script = script_of("gitlab")
    repository.write("mine.py", FINE.format(0.4))
    assert shell(repository, script).returncode == 1
    assert (
        'failures="1"'
        in (repository.root / job["artifacts"]["reports"]["junit"]).read_text()
    )


@pytest.mark.full
def test_the_hooks_before_a_commit(repository):
    hooks = {hook["id"]: hook["entry"] for hook in parsed(".pre-commit-hooks.yaml")}
    assert (
        shell(repository, hooks["auditdp-baseline"]).stdout
        == "auditdp-baseline.toml: 1 audit\n"
    )
    repository.write("mine.py", FINE.format(0.4))
    assert shell(repository, hooks["auditdp"]).returncode == 1
    repository.write("auditdp-baseline.toml", "<<<<<<< HEAD\n")
    assert shell(repository, hooks["auditdp-baseline"]).returncode == 2
