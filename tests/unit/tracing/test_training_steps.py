"""Steps of a traced training beside the steps that the claim's accountant counts."""

import sys
from functools import cache
from pathlib import Path

import numpy as np
import pytest

from auditdp import AccountedDP, GaussianDP
from auditdp.accountants import PLDUpper
from auditdp.evidence.trace_records import findings_of
from auditdp.tracing import Trace, compare
from auditdp.tracing.training_steps import as_run, is_suspect

CLAIM = AccountedDP(PLDUpper(1.0, 0.5, 2))
RECORDS = np.array([2.0, -0.5, 0.3, 0.1])
ZEROED = RECORDS * [0, 1, 1, 1]
REMOVED = RECORDS[1:]


def poisson(rng, records, rate=0.5, steps=2):
    return [rng.random(len(records)) < rate for _ in range(steps)]


def by_binomial(rng, records):
    return [rng.binomial(1, 0.5, len(records)) == 1 for _ in range(2)]


def once_more(rng, records):
    return poisson(rng, records, steps=3)


def shuffled(rng, records):
    order = rng.permutation(len(records))
    return [order[:2], order[2:]]


def without_replacement(rng, records):
    return [rng.choice(len(records), 2, replace=False) for _ in range(2)]


def one_by_one(rng, records, rate=0.5):
    return [[k for k in range(len(records)) if rng.random() < rate] for _ in range(2)]


def one_by_one_at_another_rate(rng, records):
    return one_by_one(rng, records, rate=0.75)


def one_by_one_later(rng, records):
    tossed = [[rng.random() for _ in records] for _ in range(2)]
    return [[k for k, u in enumerate(each) if u < 0.5] for each in tossed]


def all_of_them(rng, records):
    return [np.arange(len(records))] * 2


def by_torch(rng, records):
    torch = sys.modules["torch"]
    return [(torch.rand(len(records)) < 0.5).numpy() for _ in range(2)]


# Poisson batches too: a binomial number of records.
def of_binomial_size(rng, records):
    n = len(records)
    return [rng.choice(n, size=rng.binomial(n, 0.5), replace=False) for _ in range(2)]


@cache
def trainer(batches, norm=1.0):
    def train(data, rng):
        released = []
        for batch in batches(rng, data):
            released.append(np.clip(data[batch], -norm, norm).sum() + rng.normal())
        return released

    return train


def traced(code, neighbour=ZEROED, claim=CLAIM, seeds=4, **options):
    for seed in range(seeds):
        rng = np.random.default_rng(seed)
        yield compare(code, RECORDS, neighbour, rng, claim=claim, **options)


def two_layers(data, rng):
    sums = [np.clip(data[batch], -1.0, 1.0).sum() for batch in poisson(rng, data)]
    return [share * total + rng.normal() for total in sums for share in (0.6, 0.8)]


def step_sentences(train, claim=CLAIM):
    pairs = traced(Trace(train), claim=claim, outcomes=0)
    found = [finding for pair in pairs for finding in pair.findings]
    return {finding.sentence for finding in found if finding.kind == "steps"}


def at_two_lines(data, rng):
    made = []
    for batch in poisson(rng, data):
        total = np.clip(data[batch], -1.0, 1.0).sum()
        if batch.sum() > 2:
            made.append(total + rng.normal())
        else:
            made.append(total + 1.0 * rng.normal())
    return made


@pytest.mark.parametrize(
    ("train", "claim", "difference"),
    [
        (trainer(shuffled), CLAIM, "draws records by permutation"),
        (trainer(without_replacement), CLAIM, "draws records by sample of items"),
        (
            trainer(one_by_one_at_another_rate),
            CLAIM,
            "with probability 0.75; the accountant",
        ),
        (trainer(all_of_them), CLAIM, "no line draws the records of a batch"),
        (trainer(once_more), CLAIM, "adds noise 3 times"),
        (trainer(one_by_one), CLAIM, None),
        (at_two_lines, CLAIM, None),
        (two_layers, CLAIM, None),
        (trainer(of_binomial_size, norm=2.0), CLAIM, None),
        (trainer(shuffled), GaussianDP(1.0), None),
    ],
)
def test_the_difference_from_the_accountant_is_named(train, claim, difference):
    found = step_sentences(train, claim)
    if difference is None:
        assert found == set()
    else:
        (sentence,) = found
        assert difference in sentence


@pytest.mark.parametrize("batches", [poisson, by_torch, one_by_one, one_by_one_later])
@pytest.mark.parametrize("is_added", [False, True])
def test_the_coins_of_other_records_are_the_same_on_both_inputs(batches, is_added):
    if batches is by_torch:
        pytest.importorskip("torch")
    first = RECORDS
    second = RECORDS[[0, 2, 3]]
    if is_added:
        first, second = second, first
    code = Trace(trainer(batches))
    for seed in range(3):
        rng = np.random.default_rng(seed)
        pair = compare(code, first, second, rng, claim=CLAIM, outcomes=0)
        assert all(moved.distance in (0, pytest.approx(0.5)) for moved in pair.noisy)
        found = {finding.kind for finding in pair.findings}
        assert found.isdisjoint(["steps", "flow"])


@pytest.mark.parametrize(
    ("train", "expected"),
    [
        (trainer(poisson, norm=2.0), (0.5, 0.5, 2)),
        (trainer(one_by_one_at_another_rate), (1.0, 0.75, 2)),
        (trainer(by_binomial, norm=2.0), (0.5, 0.5, 2)),
        (trainer(shuffled), None),
    ],
)
def test_an_accountant_computes_the_cost_of_the_run(train, expected):
    code = Trace(train)
    pairs = traced(code, outcomes=0)
    pair = next(pair for pair in pairs if any(moved.distance for moved in pair.noisy))
    run = as_run(pair)
    assert (run and (run.noise_multiplier, run.rate, run.steps)) == expected
    findings, _ = findings_of([((RECORDS, RECORDS), pair)], CLAIM, Path(), code)
    (steps,) = [finding.sentence for finding in findings if finding.kind == "steps"]
    is_counted = "ASSUMING that every step is released and can move as far" in steps
    assert is_counted == (expected is not None)


def with_sizes(data, rng):
    batches = poisson(rng, data)
    sums = [np.clip(data[batch], -1, 1).sum() + rng.normal() for batch in batches]
    return sums, [batch.sum() for batch in batches]


def with_noise_once(data, rng):
    first, second = (np.clip(data[batch], -1, 1).sum() for batch in poisson(rng, data))
    return first + second + rng.normal()


BOTH = (ZEROED, REMOVED)


@pytest.mark.parametrize(
    ("train", "claim", "neighbours", "suspect"),
    [
        (trainer(shuffled), CLAIM, (ZEROED,), False),
        (at_two_lines, CLAIM, BOTH, False),
        (trainer(poisson, norm=2.0), CLAIM, BOTH, True),
        # The other records move up into earlier batches.
        (trainer(shuffled), CLAIM, (REMOVED,), True),
        (with_sizes, CLAIM, (REMOVED,), True),
        (with_noise_once, CLAIM, BOTH, True),
    ],
)
def test_a_run_is_suspect_if_it_costs_more_or_shows_the_drawn_records(
    train, claim, neighbours, suspect
):
    code = Trace(train)
    for neighbour in neighbours:
        pairs = [
            *traced(code, neighbour, claim, outcomes=0),
            *traced(code, neighbour, claim, seeds=2),
        ]
        assert any(map(is_suspect, pairs)) is suspect
