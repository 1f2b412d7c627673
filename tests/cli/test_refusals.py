"""Commands that cannot be meant are refused with exit code 2 and a remedy, and change nothing.

A row of a table is a command and, after each bar, words of its message.
"""

import shutil

import numpy as np
import pytest

from tests.cli.conftest import RUN

pytestmark = pytest.mark.usefixtures("without_sandbox")

AUDITS = """
draws = np.random.default_rng()

@audit()
def good(epsilon=1.0, nodes=2, flag=True):
    Path("ran").touch()
    return Audit(Response(epsilon), PureDP(epsilon), BITS, evidence=["exact"])

@audit()
def played(epsilon=1.15):
    return Audit(Response(epsilon), PureDP(1.0), BITS, evidence=["game"], calls=600)

@audit()
def proved():
    return Audit(Response(1.0), PureDP(1.0), BITS, evidence=["exact"])

@audit()
def own():
    return Audit(unseeded(lambda data: draws.normal()), PureDP(1.0), BITS, calls=300)

@audit()
def crashes():
    raise ValueError("broken")

@audit()
def promise():
    return Audit(LaplaceMechanism(1.0), Unbiased(float, margin=1), inputs={"two": [2.0]}, calls=100)

@audit()
def refused():
    return Audit(coin, PureDP(1.0), Neighbours([(0, 1)], relation=lambda a, b: False), calls=50)
"""
FILES = {
    "a_file": "",
    "a.json": '{"root_seed": 1}',
    "theirs.html": "<html>a page of mine</html>\n",
    "pyproject.toml": "[tool.auditdp.profiles.ci]\nalpha = 0.02\n",
    "f.py": "class C: pass\ndef f(x, rng): pass\ndef nodata(rng): pass\n",
    "broken.py": "def f(\n",
    "worse.py": "def f(x, rng): pass\n",
    "empty/__init__.py": "",
    "no-module.py": "def f(x, rng): pass\n",
    "s.csv": "score,in,guess\n1,1,1\n2,0,0\n3,1,\n",
    "ragged.csv": "a,b\n1,2\n3\n",
    "twice.csv": "a,a\n1,2\n",
    "empty.csv": "",
    "words.csv": "score,in\n1,yes\n2,no\n",
    "minus.csv": "score,in\n1,1\n2,-1\n",
    "hole.csv": "score,in\n1,1\n,1\n2,0\n2,0\n",
    "ones.csv": "score,in\n1,1\n2,1\n3,1\n",
    "fake.npz": "not a zip file",
    "notes.txt": "a\n1\n",
}
TABLES = {
    "run": """
run -P epsilo=2 | -P epsilo | did you mean 'epsilon'?
run -P unheard=2 | -P unheard | epsilon, flag, nodes
run -P epsilon | -P epsilon | name=value
run -P epsilon=abc | -P epsilon=abc | float | 1.0
run --budget quik | 'quik' | did you mean 'quick'?
run --format jsn | 'jsn' | did you mean 'json'?
run --report htm=x.html | 'htm' | did you mean 'html'?
run --report html | --report html | format=PATH
run --report html= | --report html= | format=PATH
run --report html=a_file/report.html | a_file/report.html | another path
run --report html=audits | audits | another path
run --report html=theirs.html | is there and is no html report | give another path
run --log a_file/run.jsonl | a_file/run.jsonl | another --log
run --log audits | audits
run --log LONG | LONG
run no/such/folder | no/such/folder | a folder of audit_*.py files, a file, or an id
run audits/audit_it.py::goood | 'goood' | did you mean 'good'?
run --data no/such/folder | --data no/such/folder | no such folder
run --alpha 0 | alpha | between 0 and 1 | 0.0
run --alpha 1 | alpha | between 0 and 1 | 1.0
run --alpha nan | alpha | nan
run --alpha little | --alpha
run --timeout 0 | timeout > 0 | 0.0
run --timeout inf | timeout
run --collection-timeout nan | finite collection timeout > 0
run --max-memory 2X | --max-memory
run --max-memory 0 | --max-memory
run --seed -1 | seed >= 0 | -1
run --seed one | --seed
run -n 0 | -n 0 | >= 1, or auto
run -n -1 | -n -1 | >= 1, or auto
run -n two | -n two | >= 1, or auto
run -n ² | -n ² | >= 1, or auto
run -k 'good and' | -k 'good and' | and, or, not
run --fail-on never | never | inconclusive
run --sandbox ful | --sandbox ful: expected auto, required, off
run --find tail:0.2 --calls 300 | tail:0.2 and 300 are two budgets; give one
run --nonsense | --nonsense
run --profile cii | did you mean 'ci'?
run --resume --budget thorough | cannot resume
run --resume --log none.jsonl | no run is recorded | auditdp run
run --last-failed --log none.jsonl | start one with: auditdp run
run --last-failed audits | without paths and without --resume
run --last-failed --resume | without paths and without --resume
run --seed 1 --shard 3/2 | 1 <= NUMBER <= OF
run --seed 1 --shard two | such as 2/8
run --seed 1 --shard 1/9 | there are 7 audits
run --shard 1/2 | needs --seed
run --seed 1 --shard 1/2 --last-failed | does not go with --last-failed
run --executor dask | a cluster needs both
run --scheduler tcp://127.0.0.1:1 | a cluster needs both
run --compare main --changed-since main | --compare does not go with
run --compare main --executor dask --scheduler tcp://nowhere:1 | --compare does not go with
run --changed-since main | run inside a repository, or without this option
""",
    "run --continue": """
run --continue played | give the total number of calls of its game, such as --calls 1e7
run --continue played --calls 200 | the game of audits/audit_it.py::played has made 535 calls
run --continue played --calls 300,400 | give one number of calls, or one fault
run --continue played --calls 300 --seed 3 --resume | give it without --seed, --resume
run --continue played --calls 300 --trace | without --trace or --no-trace
run --continue plaid --calls 300 | did you mean 'played'?
run --continue proved --calls 300 | ended NOT_REFUTED and has no game to continue
run --continue crashes --calls 300 | ended ERROR and has no game to continue
run --continue own --calls 300 | its mechanism draws its own randomness, so its game cannot be repeated
""",
    "baseline": """
baseline update --reason so | --accept
baseline update --accept a | --reason
baseline update --accept a --reason so --expires soon | expected a date
baseline update found.json --accept a --reason so | no finding of this id
baseline check none.json | no such record
compare none.json none.json | no such record
baseline chekc | check
""",
    "recorded": """
replay anything --log none.jsonl | start one with: auditdp run
replay playd | did you mean 'played'?
replay audit_it | 'audit_it' is ambiguous: audits/audit_it.py::good,
replay audit_worse | audits/audit_worse.py did not import in that run
report none.jsonl | no run is recorded in none.jsonl
report none.json | no such record: none.json
report audits/audit_it.py | not the log of a run
report a.json | a.json is not a run record
report -f htm | did you mean 'html'?
report -o a_file/report.html | a_file/report.html | another path
confirm proved | no finding to confirm
""",
    "show": """
show playd | did you mean 'played'?
show audits/audit_it.py::playd | did you mean 'played'?
show audit_it | ambiguous
show audits/audit_none.py::good | no such file or folder: audits/audit_none.py
rum | run
config shwo | show
config show --profile cii | did you mean 'ci'?
""",
    "trace": """
trace playd | did you mean 'played'?
trace no/such.py::it | no such file or folder
trace promise | no pairs, since it is of a promise
trace refused | not neighbours under the given relation
trace played --pairs -1 | --pairs
trace played --seed -1 | --seed
trace played --timeout 0 | timeout > 0
trace played --format xml | --format
mutate --budget enormous | enormous
""",
    "init": """
init worse.py::f | audits/audit_worse.py: not Python in UTF-8
init nothing.py::f | nothing.py: no such file
init empty | nothing draws randomness there
init f.py::g | has no function 'g'
init f.py::C | is not a plain function; name a method, such as C.release
init f.py::nodata | takes no private data
init f.py::f -P x=1 | no function has such a parameter
init f.py::f -P x | expected name=VALUE
init f.py::f -P 'x=os.system()' | a value as Python writes it
init broken.py::f | broken.py, line 1: not Python
init no-module.py::f | 'no-module' is not a module name
init ../f.py::f | no such file
init f.py::f --ci travis | travis
""",
    "bounds": """
bounds | give one kind of record | got none
bounds s.csv SCORED --guesses guess | one kind of record | scores and guesses
bounds s.csv --scores score | --scores needs --labels COLUMN
bounds --scores score --labels in | --scores needs FILE
bounds s.csv --scores score --labels in | unknown design '' | arms: every row
bounds s.csv --scores scor --labels in --design coin | s.csv: no column 'scor' | did you mean 'score'?
bounds s.csv SCORED --method skan | 'skan' | did you mean 'scan'?
bounds s.csv SCORED --delta 0.1 --method scan | 'scan' does not fit coin | delta=0.1
bounds s.csv SCORED --delta 1 | delta in [0, 1) | 1.0
bounds s.csv SCORED --alpha 5 | alpha between 0 and 1 | 5.0
bounds s.csv SCORED --claim -1 | claim >= 0 | -1.0
bounds s.csv SCORED --parameter nu | --parameter | 'nu'
bounds s.csv --guesses guess --labels in | unknown design '' | arms: every row
bounds s.csv --guesses guess --labels in --design bogus | unknown design 'bogus'
bounds s.csv --guesses score --labels in --design coin | guesses: expected 1 for in and 0 for out
bounds s.csv --first score | --second is missing
bounds none.csv SCORED | none.csv: no such file
bounds notes.txt SCORED | notes.txt: cannot read .txt | .parquet
bounds empty.csv SCORED | empty.csv: no rows
bounds ragged.csv SCORED | row 2 has 1 cells, expected 2
bounds twice.csv SCORED | two columns have the same name | rename one
bounds words.csv SCORED | column 'in', row 1 | 'yes'
bounds minus.csv SCORED | 1 for in and 0 for out, got -1 | recode
bounds hole.csv SCORED | scores: row 2 is nan | the same for both labels
bounds ones.csv SCORED | 3 in and 0 out
bounds fake.npz SCORED | fake.npz: cannot read it as .npz: BadZipFile
bounds s.csv --guesses guess --labels in --design coin --propensities in | leave out --propensities
bounds s.csv --guesses guess --labels in --design coin --guess in | leave out --guess
bounds s.csv --guesses guess --labels in --design coin --guess-count 3 | leave out --guess-count
bounds s.csv --guesses guess --labels in --design coin --seed 3 | leave out --seed
bounds s.csv --first score --second in --design bogus | leave out --design
bounds s.csv --first score --second in --labels in | leave out --labels
bounds s.csv --scores score --labels in --propensities in --design coin | leave out --design
bounds s.csv --scores score --labels in --propensities in --delta 1e-5 | leave out --delta
bounds s.csv --scores score --labels in --propensities in --method scan | leave out --method
bounds h.csv --first value --second count | column 'count'
bounds --first h.csv --second h.csv | column 'count'
bounds n.npz --first pairs --second count | column 'count'
""",
}
SETTINGS = {
    "[tool.auditdp]\nbudgt = 'quick'": "tool.auditdp.budgt | did you mean 'budget'?",
    "[tool.auditdp]\npaths = ['no/such']": "no/such",
    "[tool.auditdp]\ndata = 'no/such'": "no/such",
    "[tool.auditdp]\nbudget = 'thorogh'": "'thorogh' | did you mean 'thorough'?",
    "[tool.auditdp]\nalpha = '5'": "pyproject.toml",
    "[tool]\nauditdp = 3": "pyproject.toml | tool.auditdp",
    "[tool.auditdp": "pyproject.toml",
    "\x00": "pyproject.toml",
}
HISTOGRAM = "value,count\n" + "\n".join(f"{k},{k * k % 17}" for k in range(-20, 21))
SCORED = "--scores score --labels in --design coin"


@pytest.fixture(scope="module")
def everything(shared_project):
    """A project with files of every kind and a finished run."""
    shared_project.audits(AUDITS)
    shared_project.write("audits/audit_worse.py", "import (")
    for name, text in {**FILES, "h.csv": HISTOGRAM}.items():
        shared_project.write(name, text)
    columns = {"pairs": np.arange(400.0).reshape(200, 2), "count": np.arange(200)}
    np.savez(shared_project.root / "n.npz", **columns)
    assert shared_project(RUN).code == 3
    shared_project.run(
        "audits/audit_it.py::proved --log found.jsonl --report json=found.json"
    )
    (shared_project.root / "ran").unlink()
    return shared_project


def content(root):
    return {
        path.relative_to(root): path.read_bytes()
        for path in root.rglob("*")
        if path.is_file()
    }


def refusals(table, every):
    """Return each ``every``-th command of a table with its words."""
    for row in table.strip().splitlines()[::every]:
        row = row.replace("SCORED", SCORED).replace("LONG", "x" * 300)
        command, *words = row.split(" | ")
        yield command, words


@pytest.mark.parametrize("table", TABLES)
def test_a_command_that_cannot_be_meant_is_refused(everything, table, pytestconfig):
    """Every fifth row of a table here, and all rows with ``--full``."""
    before = content(everything.root)
    every = 1 if pytestconfig.getoption("--full") else 5
    for command, words in refusals(TABLES[table], every):
        outcome = everything(command)
        assert outcome.refuses(*words), (command, outcome)
    assert content(everything.root) == before


@pytest.mark.full
def test_settings_that_cannot_be_used_are_refused(project):
    project.audits(AUDITS)
    for text, words in SETTINGS.items():
        project.write("pyproject.toml", text)
        assert project("run").refuses(*words.split(" | ")), text
    assert not (project.root / "ran").exists()


@pytest.mark.dear
def test_only_commands_that_need_settings_read_them(project):
    project.write("pyproject.toml", "[tool.auditdp")
    assert project("--version").code == 0
    for command in ("config show", "run", "list"):
        assert project(command).refuses("pyproject.toml")


@pytest.mark.full
def test_a_baseline_with_a_conflict_of_a_merge_is_refused(everything, project):
    shutil.copytree(everything.root, project.root, dirs_exist_ok=True)
    project.write("auditdp-baseline.toml", "<<<<<<< HEAD\nversion = 1\n")
    before = content(project.root)
    for command in ("run --check", "baseline check", "baseline update"):
        assert project(command).refuses("a conflict of a merge")
    assert content(project.root) == before
