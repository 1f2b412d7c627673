"""``auditdp trace``: which line loses what, read off ordinary functions of a small project."""

import pytest

pytestmark = pytest.mark.dear

FUNCTIONS = """\
import os
import numpy as np


def total(ages, rng):
    return sum(ages) + rng.laplace(scale=50.0)


def clipped(ages, rng):
    return sum(min(age, 50) for age in ages) + rng.laplace(scale=50.0)


def twice(ages, rng):
    count = len(ages) + rng.laplace(scale=1.0)
    return count, len(ages) + rng.laplace(scale=1.0)


def leaks(ages, rng):
    return len(ages), len(ages) + rng.laplace(scale=1.0)


def largest(ages, rng):
    noisy = [age + rng.laplace(scale=50.0) for age in (max(ages, default=0), 0)]
    return noisy[0] > noisy[1]


def elsewhere(ages, rng):
    return len(ages) + int.from_bytes(os.urandom(2), "big") / 1000


def cubed(ages, rng):
    return (len(ages) + rng.laplace()) ** 3 + rng.laplace() ** 2 * len(ages)


def raises(ages, rng):
    raise KeyError("no such column")


def endless(ages, rng):
    while True:
        pass


def asked(rounds):
    def often(ages, rng):
        return [len(ages) + rng.laplace(scale=1.5) for _ in range(rounds)]

    return often
"""
AUDITS = """
from functions import *
from hypothesis import strategies as st

AGES = [([20], [20, 100]), ([], [20])]

{declared}

@audit()
def searched():
    return Audit(total, PureDP(1.0), Rows(st.integers(0, 100), "add/remove", most=3), play=[Pair([20], [])])

@audit(smallest={{"rounds": range(1, 4)}}, expect="violation")
def rounds(rounds=1):
    return Audit(asked(rounds), PureDP(1.0), AGES)

@audit()
def skips():
    raise Skip("not here")

@audit()
def breaks():
    raise RuntimeError("no such data")

@audit()
def dies():
    os._exit(3)
"""
NAMES = [
    "total",
    "clipped",
    "twice",
    "leaks",
    "largest",
    "elsewhere",
    "cubed",
    "raises",
    "endless",
]
DECLARED = (
    "@audit()\ndef of_{0}():\n    return Audit({0}, PureDP(1.0), AGES, calls=50)\n"
)


@pytest.fixture(scope="module")
def functions(shared_project):
    declared = "\n".join(DECLARED.format(name) for name in NAMES)
    shared_project.write("functions.py", FUNCTIONS)
    shared_project.audits(AUDITS.format(declared=declared))
    return shared_project


def lines_of(outcome):
    return [" ".join(line.split()) for line in outcome.out.splitlines()]


def test_a_broken_function_is_proposed_at_its_line(functions):
    outcome = functions("trace audits/audit_it.py::of_total")
    assert (outcome.code, outcome.err) == (0, "")
    assert lines_of(outcome) == [
        "audits/audit_it.py::of_total",
        "claim 1-DP; 2 listed and 0 generated pairs",
        "",
        "line noise scale moved at most ε lost share of the claim",
        "functions.py:6 Laplace 50 100 2 2",
        "",
        "confirmed: line 6 adds Laplace noise of scale 50 to a value that differs by 100 "
        "between the inputs; 1-DP needs scale 100 (functions.py); on 1 of 2 pairs, such as [20] | [20, 100]",
        "",
        "line 6 loses more than the claim, 1-DP, on [20] | [20, 100], in runs with other draws as well (a trace "
        "proposes, it proves nothing)",
    ]


def test_the_loss_of_a_correct_function_is_what_its_noise_allows(functions):
    shown = lines_of(functions("trace of_clipped"))
    assert "functions.py:10 Laplace 50 50 1 1" in shown
    result = "at most ε = 1 on 2 pairs traced (a trace proposes, it proves nothing)"
    assert shown[-1] == result
    starts = ("confirmed", "suspicion", "where to look", "opaque")
    assert not any(line.startswith(starts) for line in shown)


def test_of_several_sizes_the_first_with_a_finding_is_shown(functions):
    """As a run tries them: one round keeps the claim, and two do not."""
    outcome = functions("trace audits/audit_it.py::rounds")
    claim = "claim 1-DP at rounds = 2; 2 listed and 0 generated pairs"
    assert lines_of(outcome)[1] == claim
    together = "2 times: the values differ by 2 in total between the inputs; 1-DP needs scale 2"
    assert together in outcome.text


RESULTS = {
    "twice": "lines 14, 15 together lose more than the claim, 1-DP, on [20] | [20, 100]",
    "leaks": "the output loses more than the claim, 1-DP, on [20] | [20, 100]",
    "largest": "line 23 loses more than the claim, 1-DP, on [20] | [20, 100], if the output shows all that noise and chance "
    "decide there: runs with other draws did not confirm it (a trace proposes",
    "elsewhere": "what the output loses is not known: no draw was seen on 2 pairs",
    "cubed": "what is understood loses ε = 1 on 2 pairs traced (a trace proposes, it proves nothing); the output may",
}


@pytest.mark.parametrize("name", RESULTS)
def test_the_result_names_the_lines_or_says_what_is_not_known(functions, name):
    outcome = functions(f"trace of_{name}")
    assert outcome.code == 0
    assert lines_of(outcome)[-1].startswith(RESULTS[name])


def test_json_holds_the_same_as_data(functions):
    found = functions("trace of_leaks --format json").record
    fields = {
        "id": "audits/audit_it.py::of_leaks",
        "claim": "1-DP",
        "parameter": "epsilon",
        "pairs": 2,
        "level": 1.0,
    }
    assert found | fields == found
    (line,) = found["lines"]
    numbers = dict.fromkeys(("moved", "loss", "share", "needed"), 1.0)
    place = {"file": "functions.py", "line": 19, "family": "Laplace", "scale": "1"}
    assert line == place | numbers
    (finding,) = found["findings"]
    expected = {"kind": "round", "read_off": True, "pairs": 2}
    assert finding | expected == finding


def test_generated_pairs_are_traced_and_the_same_seed_generates_the_same(functions):
    def traced(options):
        return functions(f"trace searched {options} --format json")

    listed = traced("--pairs 0").record
    assert (listed["pairs"], listed["generated"]) == (1, 0)
    assert listed["level"] == pytest.approx(0.4)
    three, again, four = (traced(f"--pairs 12 --seed {seed}") for seed in (3, 3, 4))
    found = three.record
    assert (found["pairs"], found["generated"]) == (13, 12)
    assert 1 < found["level"] <= 2
    assert found["result"].startswith("line 6 loses more")
    assert three.out == again.out != four.out


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        ("breaks", 3, "no such data"),
        ("of_raises", 3, "raised KeyError on every input: 'no such column'"),
        ("of_endless --timeout 1", 3, "stopped after 1 seconds"),
        ("dies", 3, "died"),
        ("skips", 5, "not here"),
    ],
)
def test_what_cannot_be_traced_ends_with_its_own_code(
    functions, arguments, code, words
):
    outcome = functions(f"trace {arguments}")
    assert (outcome.code, outcome.out) == (code, ""), outcome
    assert words in outcome.text
    assert "Traceback" not in outcome.err
