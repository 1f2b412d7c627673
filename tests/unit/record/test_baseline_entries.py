"""Claims are compared by their numbers, within the rounding of floating point and no more."""

from dataclasses import replace

import pytest

from auditdp.record.baseline_entries import Claimed, same_text
from auditdp.record.results import ClaimRecord

CURVE = [(0.0, 0.33), (7.2, 2e-12)]
PURE = ClaimRecord("PureDP", "2.50001-DP", "value LDP", epsilon=2.500005, delta=0.0)
APPROXIMATE = ClaimRecord(
    "ApproxDP",
    "(1, 0.0137)-DP",
    "edge DP, 4 nodes",
    epsilon=1.0,
    delta=0.013729229156159647,
)
GAUSSIAN = ClaimRecord(
    "GaussianDP", "0.866025-GDP", "changes by at most 0.333333", mu=0.75**0.5
)
CONCENTRATED = ClaimRecord("ZeroConcentratedDP", "0.3-zCDP", "records", rho=0.3)
ACCOUNTED = ClaimRecord(
    "AccountedDP", "the curve through (1, 1e-05)-DP", "x", epsilon=1.0, curve=CURVE
)
VARIANCE = ClaimRecord(
    "VarianceAtMost", "variance ≤ 5.15292", "3 classes of inputs", level=5.152923
)
FIELDS = ("epsilon", "delta", "mu", "rho", "level", "curve")
of_each_record = pytest.mark.parametrize(
    "record",
    [PURE, APPROXIMATE, GAUSSIAN, CONCENTRATED, ACCOUNTED, VARIANCE],
    ids=lambda record: record.kind,
)


def scaled(record, factor, names=FIELDS):
    """The record with other numbers in the named fields, and with the same text."""
    changes = {name: getattr(record, name) for name in names if getattr(record, name)}
    for name, value in changes.items():
        if name == "curve":
            changes[name] = [(x * factor, y * factor) for x, y in value]
        else:
            changes[name] = value * factor
    return replace(record, **changes)


def same(one, other):
    forth = Claimed.of(one).same(Claimed.of(other))
    assert forth == Claimed.of(other).same(Claimed.of(one))
    return forth


@of_each_record
@pytest.mark.parametrize("relative", [1e-9, -1e-9, 1e-5, -1e-5])
def test_claims_are_the_same_within_rounding_and_not_beyond_it(record, relative):
    changed = [scaled(record, 1 + relative, [name]) for name in FIELDS]
    for other in [each for each in changed if each != record]:
        assert same(record, other) is (abs(relative) < 1e-6)
    whole = scaled(record, 1 + relative)
    assert same(record, whole) is (abs(relative) < 1e-6)


TEXTS = [
    (replace(PURE, epsilon=None, delta=None), "text", "2.5-DP", True),
    (replace(PURE, epsilon=None, delta=None), "text", "3-DP", False),
    (replace(PURE, epsilon=None, delta=None), "text", "2.50001-GDP", False),
    (replace(PURE, epsilon=None, delta=None), "text", "2.50004-DP", False),
    (GAUSSIAN, "adjacency", "changes by at most 0.333334", True),
    (APPROXIMATE, "adjacency", "edge DP, 5 nodes", False),
    (APPROXIMATE, "adjacency", "node DP, 4 nodes", False),
    (APPROXIMATE, "adjacency", "edge DP, 4 nodes, 1 of them new", False),
    (PURE, "source", "elsewhere", True),
    (ACCOUNTED, "curve", CURVE[:1], False),
]


@pytest.mark.parametrize(("record", "name", "value", "expected"), TEXTS)
def test_texts_are_the_same_up_to_the_last_of_six_digits(record, name, value, expected):
    """A baseline without numbers has only the text, in which 2.500005 is 2.5 or 2.50001."""
    assert same(record, replace(record, **{name: value})) is expected


def test_digits_in_texts_have_a_sign_and_an_exponent():
    assert same(PURE, replace(PURE, text="2.5-DP", epsilon=2.500005 * (1 - 1e-12)))
    assert same_text("Twin(scale=1e-05)", "Twin(scale=9.99999e-06)")
    assert not same_text("[-1, 1]", "[1, 1]")


def test_the_digits_of_two_sets_of_kernels():
    """The same audit where numpy and scipy choose kernels for AVX-512 and for AVX2."""
    avx512 = [(4.3, 4.307555982335704e-05), (9.1, 5.637183255848928e-13)]
    avx2 = [(4.3, 4.30755598234606e-05), (9.1, 5.636931565478494e-13)]
    one = replace(ACCOUNTED, epsilon=1.8282506973344403, curve=avx512)
    assert same(one, replace(ACCOUNTED, epsilon=1.828250697764309, curve=avx2))


@pytest.mark.parametrize(
    ("one", "other", "expected"),
    [
        ("3f", "3f", True),
        ("3f", "a0", False),
        ("3f", "", True),
        ("3f without lock", "3f", False),
    ],
)
def test_neighbours_are_the_same_where_their_digests_are(one, other, expected):
    record = replace(PURE, digest=one)
    assert same(record, replace(PURE, digest=other)) is expected
    assert not same(record, replace(record, adjacency="edge LDP"))
    assert Claimed.of(None) == Claimed()
