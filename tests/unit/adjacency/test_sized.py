"""Claims that depend on how many records there are, and the pairs that they are about."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from auditdp import ApproxDP, Audit, Verdict
from auditdp.adjacency import AnyValues, Pair, Rows, as_adjacency
from auditdp.adjacency.values import OfSize, records
from auditdp.auditing.gathering import Settings
from auditdp.auditing.judging import run_audit
from auditdp.betting.pairs.search import can_search
from auditdp.errors import AdjacencyError, AuditError
from auditdp.record.budget import Budget

DIGITS = st.integers(0, 9)


def squared(n):
    return ApproxDP(1.0, 1 / n**2)


def one_of_them(data, rng):
    """Publish one of n records, which shows a replaced one with probability 1/n."""
    return data[rng.integers(len(data))]


@pytest.mark.parametrize(
    ("pairs", "n"),
    [
        (Rows(DIGITS, "replace", least=3, most=3), 3),
        (Rows(DIGITS, "add/remove", least=4, most=5), 4),
        ([((0, 0), (0, 1)), ((0, 0), (0, 0, 5))], 2),
        (Pair("abc", "abcd"), 3),
    ],
)
def test_n_is_the_size_of_the_smaller_input(pairs, n):
    audit = Audit(one_of_them, squared, pairs)
    assert audit.claim == ApproxDP(1.0, 1 / n**2)
    adjacency = as_adjacency(audit.pairs)
    assert f"n = {n} in the smaller input" in adjacency.name
    assert adjacency.pairs()
    assert {records(pair) for pair in adjacency.pairs()} == {n}
    for pair in adjacency.pairs():
        adjacency.check(pair)
    assert can_search(adjacency) == can_search(as_adjacency(pairs))


REPLACED = [([0, 0], [0, 1])]
TWO_SIZES = "the smaller inputs of the pairs have [1, 2]"


@pytest.mark.parametrize(
    ("claim", "pairs", "play", "message"),
    [
        (
            squared,
            Rows(DIGITS, "replace", most=4),
            None,
            "give pairs of one size, such",
        ),
        (squared, [([0], [1]), *REPLACED], None, TWO_SIZES),
        (
            squared,
            Rows(DIGITS, "add/remove", most=1),
            None,
            "claim(0), for 0 records, raised ZeroDivisionError",
        ),
        (squared, None, None, "a claim for each number of records needs pairs="),
        (
            squared,
            AnyValues((0, 1)),
            None,
            "expected two inputs with a number of records",
        ),
        (lambda n: 1 / n**2, REPLACED, None, "as PureDP(1.0), got claim=0.25"),
    ],
)
def test_without_one_claim_nothing_is_audited(claim, pairs, play, message):
    with pytest.raises(AuditError) as raised:
        Audit(one_of_them, claim, pairs, play=play)
    assert message in str(raised.value)


WHOLE = Rows(DIGITS, "add/remove", least=1, most=6)
SIZED = OfSize(WHOLE, 2)


@given(st.one_of(SIZED.strategy(), SIZED.wide()))
def test_generated_pairs_are_of_that_size(pair):
    SIZED.check(pair)
    assert sorted([len(pair.data), len(pair.neighbour)]) == [2, 3]


def test_corner_cases_are_of_that_size_and_others_are_refused():
    assert (
        {records(pair) for pair in SIZED.corner_cases()}
        == {2}
        < {records(pair) for pair in WHOLE.corner_cases()}
    )
    with pytest.raises(AdjacencyError, match="the smaller input has 3 records"):
        SIZED.check(Pair([1, 2, 3], [1, 2, 3, 4]))
    with pytest.raises(AdjacencyError, match="expected one"):
        SIZED.check(Pair([1, 2], [3, 4, 5]))


def test_an_audit_reports_the_claim_and_the_number_of_records():
    pairs = [([0] * 5, [0, 0, 0, 0, 1])]
    audit = Audit(one_of_them, squared, pairs, evidence=["game"])
    result = run_audit(audit, Settings(0.01, Budget(4_000), 1))
    assert result.verdict is Verdict.VIOLATED
    assert result.claim.delta == squared(5).delta
    assert "n = 5 in the smaller input" in result.claim.adjacency
