"""What a run did beside what the accountant of its claim was told."""

import sys
from functools import cache
from pathlib import Path

import numpy as np
import pytest

from auditdp import AccountedDP, GaussianDP, PureDP
from auditdp.accountants import PLDUpper
from auditdp.evidence.trace_records import findings_of
from auditdp.tracing import Trace, compare
from auditdp.tracing.training_steps import as_run, is_suspect

CLAIM = AccountedDP(PLDUpper(1.0, 0.5, 2))
RECORDS = np.array([2.0, -0.5, 0.3, 0.1])


def poisson(rng, records):
    return [rng.random(len(records)) < 0.5 for _ in range(2)]


def shuffled(rng, records):
    order = rng.permutation(len(records))
    return [order[:2], order[2:]]


def at_another_rate(rng, records):
    return [rng.random(len(records)) < 0.75 for _ in range(2)]


def one_by_one_at_another_rate(rng, records):
    return [[k for k in range(len(records)) if rng.random() < 0.75] for _ in range(2)]


def all_of_them(rng, records):
    return [np.arange(len(records))] * 2


def once_more(rng, records):
    return [rng.random(len(records)) < 0.5 for _ in range(3)]


@cache
def trainer(batches, norm=1.0):
    def train(data, rng):
        return [
            np.clip(data[batch], -norm, norm).sum() + rng.normal()
            for batch in batches(rng, data)
        ]

    return train


@cache
def seen(train, claim=CLAIM):
    """A trace of a trainer, and what it says of a pair, at four seeds."""
    code, rngs = Trace(train), map(np.random.default_rng, range(4))
    return code, [
        compare(code, RECORDS, RECORDS * [0, 1, 1, 1], rng, claim=claim) for rng in rngs
    ]


def said(train, claim=CLAIM):
    return {
        finding.sentence
        for trace in seen(train, claim)[1]
        for finding in trace.findings
        if finding.kind == "steps"
    }


@pytest.mark.parametrize(
    ("train", "shown"),
    [
        (
            trainer(shuffled),
            "draws records by permutation; the accountant was told of Poisson batches at rate 0.5",
        ),
        (
            trainer(one_by_one_at_another_rate),
            "takes records with probability 0.75; the accountant",
        ),
        (
            trainer(at_another_rate),
            "takes records with probability 0.75; the accountant",
        ),
        (trainer(all_of_them), "no line draws which records are in a batch"),
        (trainer(once_more), "adds noise 3 times; the accountant was told of 2 steps"),
        (
            trainer(poisson, norm=2.0),
            "a value that moves by 2, a multiplier of 0.5; the accountant was told of 1",
        ),
    ],
)
def test_a_difference_is_named_and_is_no_loss_that_is_read_off(train, shown):
    (sentence,) = said(train)
    assert shown in sentence


def of_binomial_size(rng, records):
    """Poisson batches: a number of records that is binomial, and so many of them."""
    return [
        rng.choice(len(records), size=rng.binomial(len(records), 0.5), replace=False)
        for _ in range(2)
    ]


@pytest.mark.parametrize("norm", [1.0, 2.0])
def test_nothing_is_named_where_another_draw_decides_the_batches(norm):
    assert said(trainer(of_binomial_size, norm)) == set()


def by_torch(rng, records):
    torch = sys.modules["torch"]
    return [(torch.rand(len(records)) < 0.5).numpy() for _ in range(2)]


def one_by_one(rng, records):
    return [[k for k in range(len(records)) if rng.random() < 0.5] for _ in range(2)]


def one_by_one_later(rng, records):
    tossed = [[rng.random() for _ in records] for _ in range(2)]
    return [[k for k, u in enumerate(each) if u < 0.5] for each in tossed]


@pytest.mark.parametrize("batches", [poisson, by_torch, one_by_one, one_by_one_later])
@pytest.mark.parametrize("way", [0, 1])
def test_the_coins_of_other_records_are_the_same_where_one_is_added_or_removed(
    batches, way
):
    if batches is by_torch:
        pytest.importorskip("torch")
    pair = [RECORDS, RECORDS[[0, 2, 3]]]
    for seed in range(4):
        trace = compare(
            Trace(trainer(batches)),
            *pair[:: 1 - 2 * way],
            np.random.default_rng(seed),
            claim=CLAIM,
        )
        assert all(moved.distance in (0, pytest.approx(0.5)) for moved in trace.noisy)
        assert [
            finding for finding in trace.findings if finding.kind in ("steps", "flow")
        ] == []


def at_two_lines(data, rng):
    made = []
    for _ in range(2):
        batch = data[rng.random(len(data)) < 0.5]
        if len(batch) > 2:
            made.append(np.clip(batch, -1.0, 1.0).sum() + rng.normal())
        else:
            made.append(np.clip(batch, -1.0, 1.0).sum() + 1.0 * rng.normal())
    return made


def test_nothing_is_said_of_what_was_run_as_it_was_told_or_of_a_claim_that_tells_nothing():
    assert (
        said(trainer(poisson))
        == said(trainer(one_by_one))
        == said(at_two_lines)
        == set()
    )
    assert said(trainer(shuffled), GaussianDP(1.0)) == set()


@pytest.mark.parametrize(
    ("train", "ran"),
    [
        (trainer(poisson, norm=2.0), (0.5, 0.5, 2)),
        (trainer(at_another_rate), (1.0, 0.75, 2)),
        (trainer(once_more), (1.0, 0.5, 3)),
        (trainer(one_by_one_at_another_rate), (1.0, 0.75, 2)),
        (trainer(shuffled), None),
    ],
)
def test_what_was_run_is_told_to_an_accountant(train, ran):
    code, traces = seen(train)
    moved = [trace for trace in traces if any(each.distance for each in trace.noisy)]
    found = as_run(moved[0])
    assert (found and (found.noise_multiplier, found.rate, found.steps)) == ran
    findings, _ = findings_of([((RECORDS, RECORDS), moved[0])], CLAIM, Path(), code)
    (steps,) = [finding.sentence for finding in findings if finding.kind == "steps"]
    assert ("ASSUMING that every step is released and can move as far" in steps) == (
        ran is not None
    )


def with_sizes(data, rng):
    batches = poisson(rng, data)
    return [np.clip(data[batch], -1, 1).sum() + rng.normal() for batch in batches], [
        batch.sum() for batch in batches
    ]


def with_noise_once(data, rng):
    first, second = (np.clip(data[batch], -1, 1).sum() for batch in poisson(rng, data))
    return first + second + rng.normal()


def randomised(data, rng):
    return np.where(rng.random(len(data)) < 0.25, data > 0, data <= 0)


ZEROED, REMOVED = RECORDS * [0, 1, 1, 1], RECORDS[1:]


@pytest.mark.parametrize(
    ("train", "claim", "neighbours", "suspect"),
    [
        (trainer(poisson), CLAIM, (ZEROED, REMOVED), False),
        (trainer(one_by_one), CLAIM, (ZEROED, REMOVED), False),
        (trainer(shuffled), CLAIM, (ZEROED,), False),
        (at_two_lines, CLAIM, (ZEROED, REMOVED), False),
        (randomised, PureDP(np.log(3)), (ZEROED, REMOVED), False),
        (trainer(shuffled), GaussianDP(1.0), (ZEROED, REMOVED), False),
        (trainer(poisson, norm=2.0), CLAIM, (ZEROED, REMOVED), True),
        (trainer(once_more), CLAIM, (ZEROED, REMOVED), True),
        (trainer(at_another_rate), CLAIM, (ZEROED, REMOVED), True),
        (trainer(shuffled), CLAIM, (REMOVED,), True),  # the others move up into batches
        (with_sizes, CLAIM, (REMOVED,), True),
        (with_noise_once, CLAIM, (ZEROED, REMOVED), True),
    ],
)
def test_a_run_is_suspect_that_costs_more_than_was_told_or_shows_which_records_were_drawn(
    train, claim, neighbours, suspect
):
    code = Trace(train)
    for neighbour in neighbours:
        rngs = [np.random.default_rng(k) for k in range(4)]
        traces = [
            compare(code, RECORDS, neighbour, rng, claim=claim, outcomes=k % 2)
            for k, rng in enumerate(rngs)
        ]
        assert any(map(is_suspect, traces)) is suspect
