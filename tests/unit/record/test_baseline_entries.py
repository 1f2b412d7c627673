"""Claims are compared by their numbers, within what floating point may change and no more."""

from __future__ import annotations

from dataclasses import replace

import pytest

from auditdp.record.baseline_entries import Claimed, same_text
from auditdp.record.results import ClaimRecord

RECORDS = [
    ClaimRecord("PureDP", "2.50001-DP", "value LDP", epsilon=2.500005, delta=0.0),
    ClaimRecord(
        "ApproxDP",
        "(1, 0.0137)-DP",
        "edge DP, 4 nodes",
        epsilon=1.0,
        delta=0.013729229156159647,
    ),
    ClaimRecord(
        "GaussianDP",
        "0.866025-GDP",
        "changes by at most 0.333333",
        parameter="mu",
        mu=0.75**0.5,
    ),
    ClaimRecord("ZeroConcentratedDP", "0.3-zCDP", "records", parameter="rho", rho=0.3),
    ClaimRecord(
        "AccountedDP",
        "the curve through (1, 1e-05)-DP",
        "x",
        epsilon=1.0,
        curve=[(0.0, 0.33), (7.2, 2e-12)],
    ),
    ClaimRecord(
        "VarianceAtMost",
        "variance ≤ 5.15292",
        "3 classes of inputs",
        parameter="",
        level=5.152923,
    ),
]
FIELDS = ("epsilon", "delta", "mu", "rho", "level")


def disturbed(record, relative, *, name=None):
    """Return a record in which every number, or one, is another, and the text is printed from it."""
    names = [
        field for field in FIELDS if getattr(record, field) and name in (None, field)
    ]
    values = {field: getattr(record, field) * (1 + relative) for field in names}
    curve = (
        [(e * (1 + relative), d * (1 + relative)) for e, d in record.curve]
        if name in (None, "curve")
        else record.curve
    )
    return replace(record, curve=curve, **values)


def same(one, other):
    forth, back = (
        Claimed.of(one).same(Claimed.of(other)),
        Claimed.of(other).same(Claimed.of(one)),
    )
    assert forth == back
    return forth


@pytest.mark.parametrize("record", RECORDS, ids=lambda record: record.kind)
@pytest.mark.parametrize("relative", [1e-12, -1e-12, 1e-9, -1e-9])
def test_what_floating_point_changes_is_the_same_claim(record, relative):
    assert same(record, disturbed(record, relative))


@pytest.mark.parametrize("record", RECORDS, ids=lambda record: record.kind)
@pytest.mark.parametrize("relative", [1e-5, -1e-5])
def test_a_change_of_one_number_is_another_claim(record, relative):
    changed = [disturbed(record, relative, name=name) for name in (*FIELDS, "curve")]
    changed = [each for each in changed if each != record]
    assert changed
    for other in changed:
        assert not same(record, other)


def test_digits_in_texts_turn_with_their_numbers():
    """2.500005 is at an edge of six digits, and .333333 may be .333334: a text is rounded, and rounding has edges."""
    edge = RECORDS[0]
    assert same(edge, replace(edge, text="2.5-DP", epsilon=2.500005 * (1 - 1e-12)))
    assert same(edge, replace(edge, text="2.5-DP", epsilon=None, delta=None)), (
        "as in a baseline without numbers"
    )
    assert same(
        RECORDS[2], replace(RECORDS[2], adjacency="changes by at most 0.333334")
    )
    for other in ("3-DP", "2.50001-GDP", "2.50004-DP"):
        assert not same(
            replace(edge, epsilon=None, delta=None),
            replace(edge, text=other, epsilon=None, delta=None),
        )
    for other in (
        "edge DP, 5 nodes",
        "node DP, 4 nodes",
        "edge DP, 4 nodes, 1 of them new",
    ):
        assert not same(RECORDS[1], replace(RECORDS[1], adjacency=other))
    assert same_text("Twin(scale=1e-05)", "Twin(scale=9.99999e-06)")
    assert not same_text("[-1, 1]", "[1, 1]")


def test_the_digits_of_two_sets_of_kernels():
    """The same audits where numpy and scipy take kernels for AVX-512 and for AVX2."""
    avx512 = [
        1.8282506973344403,
        1.4252947024258573,
        3.6866849658201617,
        0.013729229156159647,
    ]
    avx2 = [
        1.828250697764309,
        1.4252947018863722,
        3.6866849660242003,
        0.013729229156160948,
    ]
    for one, other in zip(avx512, avx2, strict=True):
        assert same(*(replace(RECORDS[0], epsilon=value) for value in (one, other)))
    curves = (
        [(4.3, 4.307555982335704e-05), (9.1, 5.637183255848928e-13)],
        [(4.3, 4.30755598234606e-05), (9.1, 5.636931565478494e-13)],
    )
    assert same(*(replace(RECORDS[4], curve=curve) for curve in curves))


def test_where_it_was_published_is_no_part_of_a_claim():
    assert same(RECORDS[0], replace(RECORDS[0], source="elsewhere"))
    assert not same(RECORDS[4], replace(RECORDS[4], curve=RECORDS[4].curve[:1]))
    assert Claimed.of(None) == Claimed()


@pytest.mark.parametrize(
    ("one", "other", "alike"),
    [
        ("3f", "3f", True),
        ("3f", "a0", False),
        ("3f", "", True),
        ("", "", True),
        ("3f without lock", "3f", False),
    ],
)
def test_neighbours_are_the_same_where_their_digests_are(one, other, alike):
    record = RECORDS[0]
    assert same(replace(record, digest=one), replace(record, digest=other)) is alike
    assert not same(
        replace(record, digest=one), replace(record, digest=one, adjacency="edge LDP")
    )
