"""Sentences about a game: its forecasters, and numbers on the right side."""

import math
import re
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
import pytest

from auditdp import ApproxDP, GaussianDP, Pair, PureDP
from auditdp.betting.forecasters.forecaster import default_forecasters
from auditdp.betting.game import Game
from auditdp.evidence.game_sentences import looked_at, odds, suspected
from auditdp.evidence.output_support import BitPatterns
from auditdp.mechanism.protocol import as_mechanism
from auditdp.numerics.streams import stream
from auditdp.testing import Response
from tests.unit.evidence.toys import NOT_REFUTED, VIOLATED, played

STREAMS = partial(stream, 0, "wording")


@dataclass
class Report:
    who: str
    mean: float


def play(mechanism, claim, calls, **options):
    return played(mechanism, claim, [(0, 1)], calls, streams=STREAMS, **options)


def keys(data, rng):
    return {"a - b": data, "output": rng.random(), "n": 2**60 + 1, "z": 1j}


def bits(data, size, *, rng):
    return rng.integers(0, 2, (size, 4)).astype(np.int8)


@pytest.mark.parametrize(
    "mechanism",
    [
        lambda data, rng: float(data + np.float32(rng.laplace())),
        lambda data, rng: rng.laplace(size=40) + data,
        lambda data, rng: np.where(rng.random(3) < 0.5, np.nan, 1.0),
        lambda data, rng: [0] * int(rng.integers(1, 5)),
        lambda data, rng: f"{rng.integers(4)} of {data}",
        keys,
        lambda data, rng: Report("me", rng.random()),
        bits,
        Response(1.0),
    ],
)
def test_every_forecaster_is_described_without_its_name(mechanism):
    mechanism = as_mechanism(mechanism)
    for forecasters in (default_forecasters(mechanism), [BitPatterns()]):
        game = Game(mechanism, PureDP(1.0), [Pair(1, 0)], forecasters, STREAMS)
        assert len(game.names) > 10 or forecasters[0].name == "bit patterns"
        for name in game.names:
            text = looked_at(name)
            assert " in cells" not in text
            assert "forecaster" not in text, name
            assert not text.startswith("["), name


@pytest.mark.parametrize(
    ("name", "text"),
    [
        (
            "[1] - [0] in cells, nested",
            "the difference between output[1] and output[0]",
        ),
        ("number 1 in output in cells, cautious", "number 1 in the output"),
        ("output in cells", "the value of the output"),
        (
            "report['output'] in halves",
            "the part of the output that the forecaster \"report['output'] in halves\" uses",
        ),
        (
            "output['a'][0], seen before",
            "whether exactly this value of output['a'][0] occurred before",
        ),
        (
            "value beyond the steps of its noise in cells",
            "the part of the value of the output that is finer than the steps of its noise",
        ),
        (
            "output - its type in cells",
            "the value of the output beside the type of the output",
        ),
        (
            "part 5 in cells, cautious",
            "part 5 of the output, which not every output has",
        ),
        ("possible outputs", "whether the input can give exactly this output"),
    ],
)
def test_forecasters_are_described_by_the_users_own_keys(name, text):
    assert looked_at(name) == text


@pytest.mark.parametrize("value", [1.0, 7.9, 53.4, 999.0, 12345678.0, 9.99e8])
def test_odds_are_whole_and_rounded_down(value):
    shown = int(odds(math.log(value)).replace(",", ""))
    assert min(value * 0.99, value - 1) <= shown <= value * (1 + 1e-9)


def test_large_odds_are_powers_of_ten():
    assert odds(math.log(5e9)) == "10^9"
    assert odds(5000.0) == "10^2171"


@pytest.mark.dear
@pytest.mark.parametrize(
    "claim", [PureDP(0.5), ApproxDP(0.5, 0.01), GaussianDP(0.3)], ids=str
)
def test_a_finding_is_two_sentences_without_undefined_letters(claim):
    found = play(lambda data, rng: data + rng.laplace(scale=0.3), claim, 2_000)
    assert found.verdict is VIOLATED
    assert re.fullmatch(
        r"[\d,]+ calls were enough to refute the claim \([εμ] ≥ [\d.]+, confidence 95%\), and [\d,]+ fresh calls, made "
        r"one by one, confirmed the refutation",
        found.statement,
    )
    assert re.fullmatch(
        r"In [\d,]+ fresh calls, the input was guessed by bets, and a stake of 1 became ([\d,]+|10\^\d+)\. If the claim "
        r"were true, this would happen with probability at most 1/\1\. The best bets were based on [^()]+",
        found.counterexample.explanation,
    )


def test_a_clean_game_states_the_violation_that_it_would_have_found():
    few = play(Response(1.0), PureDP(1.0), 90, alpha=1e-6)
    assert "did not refute the claim; no size of violation is known" in few.statement

    small = play(Response(0.01), PureDP(1.0), 300)
    assert small.epsilon_lower == 0.0
    assert "≥" not in small.statement
    assert "with probability 9 in 10 they would have refuted ε = " in small.statement


def test_a_traced_loss_that_no_calls_show_is_a_suspicion_with_a_number_of_calls():
    def play_halved(calls, claim):
        def halved(data, rng):
            return data + rng.laplace(scale=1 / 1.3)

        options = {"alpha": 0.001, "stop_when_refuted": True}
        return play(halved, PureDP(claim), calls, **options)

    found = play_halved(500, 1.0)
    assert found.verdict is NOT_REFUTED

    suspicion = re.search(
        r"suspicion: .*scale 0\.769.* differs by 1 between the inputs; 1-DP needs scale 1\. .*About ([\d,]+) calls",
        found.details.notices[0],
    )
    enough = int(suspicion[1].replace(",", ""))
    assert play_halved(enough, 1.0).verdict is VIOLATED
    assert "suspicion" not in " ".join(play_halved(500, 1.3).details.notices)

    trace = found.details.trace
    assert suspected(trace, lambda: enough, enough - 1)
    assert not suspected(trace, lambda: enough, enough)

    unconfirmed = replace(trace.findings[0], confirmed=False)
    trace = replace(trace, findings=[unconfirmed])
    assert not suspected(trace, lambda: enough, 100)


def raises_on_one(data, rng):
    if data and rng.random() < 0.9:
        raise ValueError(data)
    return rng.random()


def raises_on_both(data, rng):
    if rng.random() < 0.5:
        raise ValueError(data)
    return data + rng.random()


@pytest.mark.parametrize("shape", [float, lambda x: {"a": x}], ids=["number", "dict"])
def test_an_exception_that_one_input_raises_is_named(shape):
    def explanation(function):
        options = {"trace": False}
        found = play(
            lambda data, rng: shape(function(data, rng)), PureDP(0.5), 300, **options
        )
        return found.counterexample.explanation

    assert re.search(
        r"One input raises ValueError in \d+ of \d+ calls, and the other in 0 of \d+$",
        explanation(raises_on_one),
    )
    assert "raises ValueError" not in explanation(raises_on_both)
