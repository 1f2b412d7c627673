"""The standing set of mechanisms whose privacy is known, and a tenth of what the benchmark counts of it.

When the set was made, five counts of the tenth failed:

- bounds of leaky mechanisms: reset generator, seeded by a digest, fails seldom, sign of a zero;
- bounds of correct ones: taken by raw bits, sampled gaussian of fixed size, eight laplace numbers;
- certain sentences: copied and put back, discrete laplace by rejection, masks that cancel, and the first two bounds;
- harmless changes: sign by the data;
- right calibrations: eight releases of order two, last of four iterates by a statement.
"""

import math
import warnings
from collections import Counter

import numpy as np
import pytest

from benchmarks.parts import Options
from benchmarks.sound import part
from benchmarks.sound.calibrated import RIGHT, WRONG
from benchmarks.sound.changes import CHANGES
from benchmarks.sound.correct import CORRECT
from benchmarks.sound.laws import discrete_level, loss_of
from benchmarks.sound.leaky import LEAKY

TWENTIETH, FIRST = 20, 3
FEWEST = 5
"""Cases of each kind, at least."""
SINGLE = [
    *CORRECT,
    *LEAKY,
    *RIGHT,
    *WRONG,
    *(change.old for change in CHANGES),
    *(change.new for change in CHANGES),
]
LEAST = {
    "correct": 120,
    "leaky": 120,
    "harmless": 40,
    "worse": 40,
    "calibrated": 20,
    "miscalibrated": 10,
}


@pytest.fixture(scope="module")
def found(pytestconfig):
    """Results of every twentieth case of each kind, and of every tenth with ``--full``."""
    step = 10 if pytestconfig.getoption("--full") else TWENTIETH
    keys = list(part.units(Options(1, quick=True)).items())
    by_kind = {
        kind: [item for item in keys if item[0].startswith(f"{kind}: ")]
        for kind in part.KINDS
    }
    steps = {kind: min(step, len(items) // FEWEST) for kind, items in by_kind.items()}
    return {
        key: unit()
        for kind, items in by_kind.items()
        for key, unit in items[FIRST :: steps[kind]]
    }


@pytest.mark.parametrize(
    "false", part.FALSE_STATEMENTS, ids=[false.what for false in part.FALSE_STATEMENTS]
)
def test_nothing_false_is_stated_but_for_documented_limits(found, false):
    bar = false.bar(found)
    text = "\n".join(map(": ".join, false.made(found).items()))
    assert bar.met, f"{bar.text}: {bar.found}:\n{text}"


def test_what_is_wrong_is_found(found):
    wrong = {
        key: run
        for key, run in found.items()
        if key.startswith(("worse: ", "miscalibrated: "))
    }
    missed = [
        key for key, run in wrong.items() if not run["accuses"] and not run["changed"]
    ]
    assert len(missed) <= len(wrong) / 2, missed


def test_every_kind_is_large_enough_and_names_are_unique():
    for kind, cases in part.KINDS.items():
        assert len(cases) >= LEAST[kind]
    for listed in (CORRECT, LEAKY, RIGHT, WRONG, CHANGES):
        names = Counter(case.name for case in listed)
        assert max(names.values()) == 1, names.most_common(1)


@pytest.mark.parametrize("known", SINGLE, ids=[known.name for known in SINGLE])
def test_a_case_gives_an_output_on_both_inputs(known):
    outputs = 0
    with warnings.catch_warnings():
        warnings.simplefilter(
            "ignore", RuntimeWarning
        )  # an overflow is the fault of some
        for data in known.pairs[0]:
            try:
                known.function(data, np.random.default_rng(0))
            except ValueError:  # which is what some leak by
                continue
            outputs += 1
    assert outputs


def test_claims_of_correct_mechanisms_are_no_smaller_than_the_truth():
    assert all(
        known.truth <= known.claim.level * (1 + 1e-6) for known in (*CORRECT, *RIGHT)
    )
    exact = [known for known in CORRECT if known.truth >= 0.99 * known.claim.level]
    assert len(exact) >= 0.97 * len(CORRECT)
    assert all(known.truth > known.claim.level * (1 + 1e-6) for known in LEAKY)


def test_known_levels():
    """A discrete Gaussian of σ = 1 has ε = 4.430 at δ = 1e-5, by its table.

    Warner's response has ln 3.
    """
    assert discrete_level(1.0, 1e-5) == pytest.approx(4.4302, abs=1e-4)
    assert loss_of([0.75, 0.25], [0.25, 0.75]) == pytest.approx(math.log(3))


def test_a_false_statement_is_counted_with_its_name():
    quiet = {"bounds": [], "certain": [], "accuses": False, "changed": False}
    quiet["statement"] = ""
    results = {
        f"{kind}: {name}": quiet for kind, cases in part.KINDS.items() for name in cases
    }
    assert [bar.met for bar in part.view(results).bars] == [True] * 7 + [None] * 2
    assert not any(false.made(results) for false in part.FALSE_STATEMENTS)
    for key, stated in {
        "correct: laplace": {"bounds": [0.5], "certain": ["loss"], "accuses": True},
        "harmless: total: in a loop": {"accuses": True, "changed": True},
        "calibrated: one release": {"accuses": True},
        "leaky: half the scale": {"bounds": [1.0]},
    }.items():
        results[key] = quiet | stated | {"statement": "an accusation"}
    made = [false.made(results) for false in part.FALSE_STATEMENTS]
    assert [len(names) for names in made] == [1] * 7
    assert made[0] == {"half the scale": "at most 1; the truth is 2"}
    met = [bar.met for bar in part.view(results).bars[:7]]
    assert met == [True] * 3 + [False] * 4
