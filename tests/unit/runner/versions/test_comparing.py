"""An audit of two small trees on disk: what a comparison of them says, and what it gives the audit of the newer one."""

import itertools

import pytest

from auditdp.adjacency import Pair
from auditdp.auditing.gathering import Settings
from auditdp.claims.statements import PureDP
from auditdp.numerics.streams import stream
from auditdp.record.budget import Budget
from auditdp.record.versions import LawChange
from auditdp.runner import version_comparison
from auditdp.runner.collecting import find
from auditdp.runner.plan import Against, Task
from auditdp.runner.version_comparison import LIMITS, compared
from auditdp.runner.version_process import OtherVersion
from auditdp.tracing import Trace, compare

pytestmark = pytest.mark.dear

NUMBER = itertools.count()
COUNT = "def count(rows, rng):\n    return len(rows) + rng.laplace(scale={0})\n"
AUDIT = """
from auditdp import Audit, PureDP, audit
from {0} import count

@audit
def counted():
    return Audit(count, PureDP(1.0), [{1}])
"""


@pytest.fixture
def between(tmp_path, monkeypatch):
    """Compare two trees, each given by the text of its module and of further files."""

    def compare(
        before, after, *, audited_before=True, calls=400, pair="([1, 2], [1])", **files
    ):
        name = f"compared_{next(NUMBER)}"
        for tree, text in (("old", before), ("new", after)):
            (tmp_path / tree).mkdir()
            (tmp_path / tree / f"{name}.py").write_text(text)
            if tree == "new" or audited_before:
                (tmp_path / tree / f"audit_{name}.py").write_text(
                    AUDIT.format(name, pair)
                )
        for file, text in files.items():
            (tmp_path / "new" / f"{file}.py").write_text(text)
        new = tmp_path / "new"
        monkeypatch.chdir(new)
        file = new / f"audit_{name}.py"
        against = Against("main (abc)", "abc", str(tmp_path / "old"))
        key = f"audit_{name}.py::counted"
        task = Task(
            key,
            str(file),
            "counted",
            str(new),
            {},
            "holds",
            0.05,
            "quick",
            None,
            root_seed=1,
            against=against,
        )
        settings = Settings(0.05, Budget(calls, is_limit=True), 1, key)
        with OtherVersion(task) as other:
            built, _ = find(task).build({})
            return built, settings, compared(built, task, other, settings)

    return compare


def test_less_noise_is_read_off_told_apart_and_played_more(between):
    built, settings, found = between(COUNT.format(1.0), COUNT.format(0.3))
    seen = found.result
    assert (seen.change, seen.differs) == (LawChange.CHANGED, True)
    assert "the scale is 0.3 and was 1" in seen.lines[0]
    assert seen.loss == "ε of its releases, on the compared pairs, is 3.333 and was 1"
    assert "the claim 1-DP does not hold on [1, 2] | [1], and held before" in seen.worse
    assert "distinguished their outputs by the value of the output, on" in seen.outputs
    assert (
        found.settings(settings).budget.calls
        == LIMITS.more_calls * settings.budget.calls
    )
    assert found.audit(built).claim == built.claim


def test_a_pair_like_the_listed_one_shows_what_it_does_not(between):
    total = "def count(rows, rng):\n    return sum(rows) + rng.laplace(scale={0})\n"
    _, _, found = between(
        total.format(9.0), total.format(6.5), pair="([1, 8, 2], [1, 2, 2])"
    )  # 8 may become 1 as well
    assert (
        "the claim 1-DP does not hold on a pair like the given: " in found.result.worse
    )
    assert not found.pairs  # to be played: nobody said that those are neighbours, and the listed one is played anyway


@pytest.mark.full
def test_more_noise_is_another_law_and_not_worse(between):
    _, _, found = between(COUNT.format(1.0), COUNT.format(4.0))
    assert (found.result.change, found.result.worse) == (LawChange.CHANGED, "")
    assert found.result.loss.endswith("is 0.25 and was 1")


@pytest.mark.full
def test_the_same_law_by_other_draws_is_no_other_law(between):
    other = "def count(rows, rng):\n    return len(rows) + rng.choice([-1, 1]) * rng.exponential()\n"
    _, _, found = between(COUNT.format(1.0), other)
    assert (found.result.change, found.result.worse, found.result.outputs) == (
        LawChange.DRAWS,
        "",
        "",
    )
    assert "no bets distinguished the outputs" in found.result.text


ONE_BY_ONE = "def count(rows, rng):\n    rows = np.asarray(rows, float)\n    return rows + rng.laplace(size=len(rows))\n"
IN_ORDER = """def count(rows, rng):
    rows, order = np.asarray(rows, float), np.argsort(rows)
    noisy = np.empty(len(rows))
    noisy[order] = rows[order] + rng.laplace(size=len(rows))
    return noisy
"""
BY_SIGN = """def count(rows, rng):
    rows = np.asarray(rows, float)
    return rows + np.where(rows > 2.5, -1, 1) * rng.laplace(size=len(rows))
"""
BY_MIXTURE = """def count(rows, rng):
    rows = np.asarray(rows, float)
    return rows + np.sqrt(2 * rng.exponential(size=len(rows))) * rng.normal(size=len(rows))
"""
BY_A_COPY = """def count(rows, rng):
    twin = copy.deepcopy(rng)
    rng.laplace(size=len(rows))
    return np.asarray(rows, float) + twin.laplace(size=len(rows))
"""


@pytest.mark.parametrize(
    "other",
    [IN_ORDER, BY_SIGN, BY_MIXTURE, BY_A_COPY],
    ids=["order", "sign", "mixture", "copy"],
)
def test_the_same_law_in_other_code_is_not_worse(between, other):
    imports = "import copy\nimport numpy as np\n"
    _, _, found = between(
        imports + ONE_BY_ONE, imports + other, pair="([3.0, 2.5, 1.0], [2.0, 2.5, 1.0])"
    )
    assert found.result.worse == ""


def test_of_the_same_code_nothing_is_seen_and_nothing_is_played_more(between):
    same = "def count(rows, rng):\n    noise = rng.laplace(scale=1.0)\n    return len(rows) + noise\n"
    built, settings, found = between(COUNT.format(1.0), same)
    assert found.result.change is LawChange.UNSEEN
    assert (found.settings(settings), found.audit(built)) == (settings, built)


def test_an_exception_is_an_output_of_either_version(between):
    raising = "def count(rows, rng):\n    if rng.random() < 0.5:\n        raise KeyError(1)\n    return 0\n"
    assert (
        between(raising, raising + "\n\nX = 1\n")[2].result.change is LawChange.UNSEEN
    )


def test_an_audit_that_is_new_is_compared_on_the_code_that_was_there(between):
    _, _, found = between(COUNT.format(1.0), COUNT.format(0.3), audited_before=False)
    assert found.result.change is LawChange.CHANGED


def test_code_that_cannot_run_there_is_said(between):
    _, _, found = between("def other():\n    pass\n", COUNT.format(1.0))
    assert found.result.change is LawChange.FAILED
    assert "cannot import name 'count'" in found.result.text
    assert found.pairs == ()


def test_a_mixture_of_both_trees_is_refused(between):
    module = f"helper_{next(NUMBER)}"
    _, _, found = between(
        "x = 1\n",
        f"from {module} import count\n",
        audited_before=False,
        **{module: COUNT.format(1.0)},
    )
    assert found.result.change is LawChange.FAILED


@pytest.mark.full
def test_noise_that_is_drawn_until_it_pleases_loses_more(between):
    until = "    noisy = 0\n    while noisy < 3:\n        noisy = len(rows) + rng.laplace(scale=1.0)\n    return noisy\n"
    _, _, found = between(COUNT.format(1.0), f"def count(rows, rng):\n{until}")
    assert found.result.change is LawChange.CHANGED
    assert "the claim, 1-DP, is not kept on" in found.result.worse


EACH = "    return [count + rng.laplace(scale=6.0) for count in counts]\n"
VECTOR = """    level = 3 + rng.laplace(scale=2.0)
    for k, count in enumerate(counts):
        if count + rng.laplace(scale=4.0) >= level:
            return k
    return None
"""
UNTIL = """    noisy = [-1.0] * 6
    while min(noisy) < 0:
        noisy = [count + rng.laplace(scale=6.0) for count in counts]
    return noisy
"""


def test_noise_of_the_same_function_is_worse_where_it_loses_more():
    for body, worse in ((VECTOR, False), (UNTIL, True)):
        pair, traces, made = Pair([3] * 6, [4] * 6), [], {}
        for text in (EACH, body):
            exec(f"def f(counts, rng):\n{text}", made)
            rng = stream(1, "rewritten")
            traces.append(
                compare(
                    Trace(made["f"]), pair.data, pair.neighbour, rng, claim=PureDP(1.0)
                )
            )
        seen = version_comparison._BothTraces(pair, *traces)
        assert (
            bool(
                version_comparison._worse([seen], PureDP(1.0), made["f"], changed=True)
            )
            is worse
        )


@pytest.mark.parametrize("changed", [False, True])
def test_outputs_that_noise_may_hide_accuse_nobody(changed):
    def hidden(counts, rng):
        return counts[0] + rng.laplace(scale=6.0) > counts[1]

    def shown(counts, rng):
        return hidden(counts, rng), counts[1]

    pair, claim = Pair([3, 3], [4, 9]), PureDP(1.0)
    kept = compare(
        Trace(lambda _, rng: rng.laplace()),
        pair.data,
        pair.neighbour,
        stream(1, "kept"),
        claim=claim,
    )
    for mechanism, worse in ((hidden, False), (shown, changed)):
        with Trace(mechanism) as trace:
            traced = [
                compare(
                    trace, pair.data, pair.neighbour, stream(1, "given", k), claim=claim
                )
                for k in range(20)
            ]
        seen = [version_comparison._BothTraces(pair, kept, each) for each in traced]
        assert (
            bool(version_comparison._worse(seen, claim, mechanism, changed=changed))
            is worse
        )
