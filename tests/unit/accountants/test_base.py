"""The inverses that every accountant is made of, and what they refuse."""

import math
import subprocess
import sys
from dataclasses import fields, replace
from fractions import Fraction
from importlib import import_module
from pathlib import Path
from pkgutil import walk_packages

import pytest
from flint import arb
from hypothesis import given
from hypothesis import strategies as st

from auditdp import accountants as room
from auditdp.accountants import (
    RDP,
    ZCDP,
    Accountant,
    AccountantError,
    AdvancedComposition,
    BasicComposition,
    ClassicGaussian,
    FixedSizeSubsampled,
    FixedSizeUpper,
    GaussianCurve,
    HeterogeneousComposition,
    KairouzCorollary,
    LaplaceLower,
    LaplaceUpper,
    NodeLevelRDP,
    Opacus,
    OptimalComposition,
    PLDLower,
    PLDUpper,
    PoissonSubsampled,
    Soundness,
    TopKAdvanced,
    TopKBoundedRange,
    TopKDurfeeRogers,
    TopKNonAdaptive,
    TopKOptimalComposition,
    TopKPure,
    TopKZCDP,
    WithReplacementSubsampled,
    amplified,
    bounded_range,
    cross_check,
    fixed_size_accountants,
    node_level_accountants,
    shuffled_accountants,
    unamplified,
)
from auditdp.accountants.root_finding import (
    epsilon_below,
    epsilon_from,
    greatest,
    least,
    settle,
)
from auditdp.claims.statements import ApproxDP
from auditdp.numerics.balls import as_written, double_above
from auditdp.record.results import Verdict

ALL = [
    OptimalComposition(0.1, 1e-9, 20),
    BasicComposition(0.1, 1e-9, 20),
    AdvancedComposition(0.1, 1e-9, 20),
    KairouzCorollary(0.1, 1e-9, 20),
    HeterogeneousComposition((0.1, 0.2), (0.0, 1e-9)),
    GaussianCurve(2.0),
    ClassicGaussian(5.0),
    ClassicGaussian(0.5, everywhere=True),
    LaplaceUpper(2.0, count=3),
    LaplaceLower(2.0, count=3),
    ZCDP(0.1),
    *(
        each(20, 0.1)
        for each in (
            TopKPure,
            TopKAdvanced,
            TopKDurfeeRogers,
            TopKBoundedRange,
            TopKZCDP,
            TopKOptimalComposition,
            TopKNonAdaptive,
        )
    ),
    PoissonSubsampled(0.1, 1e-9, 0.5),
    FixedSizeSubsampled(0.1, 1e-9, 0.5),
    WithReplacementSubsampled(0.1, 1e-9, 20, 10),
    *(each(2.0, 0.1, 3) for each in (PLDUpper, PLDLower, RDP)),
    *fixed_size_accountants(2.0, 20, 2, 3),
    *shuffled_accountants(2.0, 10),
    *node_level_accountants(2.0, 20, 2, 5, 3),
]


def accountants():
    """Every class of the room that is an accountant."""
    for module in walk_packages(room.__path__, f"{room.__name__}."):
        for name, each in vars(import_module(module.name)).items():
            own = (
                getattr(each, "__module__", "") == module.name
                and not name.startswith("_")
                and each is not Accountant
            )
            if own and hasattr(each, "soundness") and hasattr(each, "source"):
                yield each


def test_every_accountant_of_the_room_is_listed_here_and_in_the_reference():
    """The defects of Opacus have tests of their own."""
    assert {type(accountant) for accountant in ALL} == {
        each for each in accountants() if not issubclass(each, Opacus)
    }
    path = Path(__file__).parents[3] / "docs/pages/api/accountants.md"
    page = path.read_text(encoding="utf-8")
    for each in accountants():
        assert f"::: {each.__module__}\n" in page


def is_family(kind):
    return "__dataclass_fields__" in vars(kind)


def test_every_public_name_has_the_short_address_and_is_no_file():
    for each in accountants():
        for kind in {each, *filter(is_family, each.__mro__)}:
            assert getattr(room, kind.__name__) is kind
    for name in room.__all__:
        assert getattr(room, name).__module__.startswith(f"{room.__name__}.")
        assert not (Path(room.__file__).parent / f"{name}.py").exists()
    with pytest.raises(AttributeError, match="no attribute 'Nothing'"):
        _ = room.Nothing


def test_the_room_loads_none_of_its_files_before_they_are_used():
    code = f"import sys, {room.__name__}; print(*sys.modules)"
    done = subprocess.run(
        [sys.executable, "-c", code], check=True, capture_output=True, text=True
    )
    loaded = done.stdout.split()
    assert [name for name in loaded if name.startswith(f"{room.__name__}.")] == []
    assert not {"flint", "numpy", "scipy"} & set(loaded)


@pytest.mark.parametrize("accountant", ALL, ids=lambda accountant: accountant.name)
def test_every_accountant_keeps_the_protocol(accountant):
    assert isinstance(accountant, Accountant)
    assert accountant.soundness in set(Soundness)
    assert all(
        getattr(accountant, text)
        for text in ("name", "adjacency", "sampling", "source")
    )
    assert accountant.epsilon_at(1.0) == 0.0
    assert accountant.delta_at(math.inf) <= accountant.delta_at(0.0) <= 1.0
    for wrong in (-1e-9, 1.5, math.nan):
        kind = type(accountant).__name__
        with pytest.raises(AccountantError, match=f"^{kind}.*: expected delta in"):
            accountant.epsilon_at(wrong)
    for wrong in (-0.1, math.nan):
        with pytest.raises(AccountantError, match="expected epsilon >= 0"):
            accountant.delta_at(wrong)


WRONG = {
    "int": (0, -1, 1.5, True, math.nan),
    "float": (0.0, -1.0, math.inf, math.nan),
    "delta": (-0.1, 1.2, math.nan),
    "rate": (0.0, 1.5, math.nan),
}
"""By the name of a parameter, or else by its type."""


@pytest.mark.parametrize("accountant", ALL, ids=lambda accountant: accountant.name)
def test_parameters_outside_their_ranges_are_refused(accountant):
    for field in fields(accountant):
        for wrong in WRONG.get(field.name, WRONG.get(field.type, ())):
            kind, value = type(accountant).__name__, f"{field.name}={wrong}"
            expected = rf"{kind}: expected .*\b{field.name} .*, got {value}"
            with pytest.raises(AccountantError, match=expected):
                replace(accountant, **{field.name: wrong})


TOGETHER = [
    (lambda: FixedSizeUpper(1.0, 10, 11, 1), "batch <= records=10, got batch=11"),
    (lambda: NodeLevelRDP(1.0, 10, 11, 5, 1), "reached <= nodes=10, got 11"),
    (lambda: LaplaceUpper(1e300, 1e-300), "expected finite ratio > 0"),
    (lambda: bounded_range(0.0), "expected finite scale > 0"),
    (lambda: NodeLevelRDP(1.0, 10, 2, 11, 1), "batch <= nodes=10, got 11"),
    (lambda: HeterogeneousComposition((1.0, 2.0), (0.0,)), "2 epsilons and 1 deltas"),
    (lambda: HeterogeneousComposition((math.inf,), (0.0,)), "got epsilon=inf"),
    (lambda: GaussianCurve.sigma_for(0.0, 1e-300), "use a larger target"),
    (lambda: amplified(-1.0, 0.5), "got epsilon=-1"),
    (lambda: amplified(1.0, 0), "got rate=0"),
    (lambda: unamplified(1.0, 0), "got rate=0"),
]


@pytest.mark.parametrize(("construct", "fragment"), TOGETHER)
def test_parameters_that_do_not_fit_together_are_refused(construct, fragment):
    with pytest.raises(AccountantError, match=fragment):
        construct()


def test_least_has_no_argument_where_the_function_stays_above():
    assert least(lambda x: 2 + 1 / (1 + x), 1.0) == math.inf
    assert least(lambda x: math.exp(-x), 1e-9, high=2.0) == math.inf
    assert least(lambda x: math.exp(-x), 0.5, low=3.0) == 3.0


@pytest.mark.parametrize(
    ("function", "target", "expected"),
    [
        (lambda x: math.exp(-x), 1e-9, 9 * math.log(10)),
        (lambda x: 1.0 if x < 3.3 else 0.0, 0.5, 3.3),
        (lambda x: max(0.0, 1 - x / 1e-7), 0.3, 7e-8),
        (lambda x: 1 / (1 + x**8), 1e-60, 10**7.5),
    ],
)
def test_least_inverts_any_decreasing_function_about_as_fast_as_bisection(
    function, target, expected
):
    calls = []
    x = least(lambda x: calls.append(x) or function(x), target)
    assert x == pytest.approx(expected, rel=1e-13)
    assert function(x) <= target
    # 25 to double up to 3e7 or to come down to 7e-8, 53 to halve, a few to begin.
    assert len(calls) <= 85


def test_greatest_inverts_an_increasing_function_over_many_orders_of_magnitude():
    for target in (1e-12, 0.3, 7.0, 1e12):
        x = greatest(lambda x: x * x, target)
        assert x * x <= target
        assert x == pytest.approx(math.sqrt(target), rel=1e-13)
    assert greatest(lambda x: x + 1, 0.5) == 0.0


def test_an_upper_inverse_lies_above_the_crossing_and_a_lower_one_below():
    def curve(epsilon):
        return math.exp(-epsilon)

    assert curve(epsilon_from(curve, 1e-5)) <= 1e-5 < curve(epsilon_below(curve, 1e-5))
    assert epsilon_below(curve, 1e-5) == pytest.approx(
        epsilon_from(curve, 1e-5), rel=1e-13
    )
    assert epsilon_below(curve, 1.0) == 0.0
    assert epsilon_below(lambda _: 0.5, 0.1) == math.inf


def test_settle_adds_precision_until_a_difference_is_known():
    tiny = settle(lambda: (1 + arb(2) ** -500) - 1)
    assert tiny.rel_accuracy_bits() >= 60
    with pytest.raises(AccountantError, match="6,144 bits"):
        settle(lambda: arb(2).sqrt() ** 2 - 2)


@pytest.mark.parametrize(
    ("accountant", "delta", "epsilon"),
    [
        (PoissonSubsampled(1.0, 1e-6, 0.1), 1e-7, math.log1p(0.1 * math.expm1(1.0))),
        (OptimalComposition(0.7, 0.1, 2), 0.19, 1.4),
        (KairouzCorollary(0.1, 0.1, 2), 0.19, 0.2),
        (HeterogeneousComposition((0.1, 0.2), (0.0, 1e-6)), 1e-6, 0.3),
        (TopKPure(3, bounded_range(20.0)), 0.0, 0.3),
    ],
    ids=lambda value: type(value).__name__ if not isinstance(value, float) else "",
)
def test_products_of_decimals_are_the_decimals_that_somebody_writes(
    accountant, delta, epsilon
):
    """As rationals 0.1·1e-6 is above 1e-7, and 3·0.1 above 0.3.

    The written decimals were rounded to doubles.
    """
    assert accountant.epsilon_at(delta) == pytest.approx(epsilon, rel=1e-15)
    claimed = epsilon * (1 + 1e-15) if delta else epsilon
    check = cross_check(ApproxDP(claimed, delta), [accountant])
    assert check.verdict is Verdict.CERTIFIED
    assert accountant.delta_at(epsilon * 0.999) > delta


@given(numbers=st.lists(st.floats(1e-12, 1.0), min_size=2, max_size=2))
def test_other_products_are_rounded_up(numbers):
    exact = math.prod(map(Fraction, numbers))
    found = double_above(lambda read: math.prod(map(read, numbers)))
    if found < exact:
        assert Fraction(f"{found:.15g}") == math.prod(map(as_written, numbers))
    assert math.isclose(found, exact, rel_tol=3e-16)
