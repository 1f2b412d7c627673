"""What a mechanism offers is found in one place, and what is not what its name promises is refused there."""

import numpy as np
import pytest

from auditdp.errors import AuditError, MechanismError
from auditdp.mechanism.capabilities import ARGUMENTS, capabilities
from auditdp.mechanism.laws import FiniteLaw
from auditdp.mechanism.protocol import as_mechanism
from auditdp.testing import LaplaceMechanism, Response


class Coin:
    """A mechanism that offers nothing until it is given attributes."""

    name = "coin"

    def __call__(self, data, rng):
        return int(rng.random() < 0.5)


def coin(**offered):
    made = Coin()
    vars(made).update(offered)
    return made


def test_what_is_missing_or_none_is_not_offered():
    for mechanism in (
        coin(),
        coin(**dict.fromkeys([*ARGUMENTS, "sensitivity", "norm"])),
    ):
        able = capabilities(mechanism)
        assert able.offered() == []
        assert (
            able.law
            is able.law_of_output
            is able.envelope
            is able.log_prob
            is able.finite_sensitivity
            is None
        )
        assert not able.is_calibrated


def test_the_law_of_the_output_comes_before_those_before_post_processing():
    laws = {
        name: FiniteLaw([0, 1], [p, 1 - p])
        for name, p in [("distribution", 0.1), ("before_processing", 0.2)]
    }
    stating = {name: lambda data, law=law: law for name, law in laws.items()}
    both, before = (
        capabilities(coin(**stating)),
        capabilities(coin(before_processing=stating["before_processing"])),
    )
    assert both.law(0) is both.law_of_output(0) is laws["distribution"]
    assert before.law(0) is laws["before_processing"]
    assert before.law_of_output is None


def test_a_function_of_one_output_keeps_what_it_offers_when_it_is_adapted():
    offered = coin(distribution=lambda data: FiniteLaw([0, 1], [0.5, 0.5]))
    assert capabilities(as_mechanism(offered)).offered() == ["distribution(data)"]


def test_what_is_offered_is_listed_as_it_is_called():
    offered = coin(
        query=lambda data, rng: data,
        sensitivity=2,
        norm="l2",
        score=lambda outputs, pair: outputs,
    )
    assert capabilities(offered).offered() == [
        "score(outputs, pair)",
        "query(data, rng)",
        "l2 sensitivity 2",
    ]
    assert capabilities(LaplaceMechanism(0.5)).offered() == [
        "distribution(data)",
        "log_prob(outputs, data)",
    ]


@pytest.mark.parametrize("name", ARGUMENTS)
def test_a_method_that_takes_other_arguments_is_refused_by_its_name(name):
    expected = rf"coin: expected a method {name}\(.*"
    for wrong in (lambda a, b, c, d: None, 3.5):
        with pytest.raises(MechanismError, match=expected + "got " + name):
            capabilities(coin(**{name: wrong})).offered()


def test_what_a_method_returns_is_checked():
    with pytest.raises(
        MechanismError,
        match=r"coin.distribution: returned {0: 0.5}, expected FiniteLaw or StepLaw",
    ):
        capabilities(coin(distribution=lambda data: {0: 0.5})).law(0)
    with pytest.raises(
        MechanismError, match=r"coin.envelope: returned None, expected Envelope"
    ):
        capabilities(coin(envelope=lambda: None)).envelope()
    for name in ("log_prob", "score", "possible"):
        one = capabilities(coin(**{name: lambda outputs, given: 0.0}))
        with pytest.raises(
            MechanismError,
            match=rf"coin.{name}: returned shape \(\) for 3 outputs, .* shape \(3,\)",
        ):
            getattr(one, name)(np.zeros(3), 0)


@pytest.mark.parametrize("wrong", [0, -1.0, np.inf, np.nan, "1"])
def test_a_sensitivity_that_is_none_is_refused_with_its_value(wrong):
    able = capabilities(
        coin(query=lambda data, rng: data, sensitivity=wrong, norm="l1")
    )
    assert able.is_calibrated
    assert able.finite_sensitivity is None
    with pytest.raises(
        AuditError, match="coin: expected a finite sensitivity > 0, got sensitivity="
    ):
        _ = able.sensitivity


@pytest.mark.parametrize(
    ("norm", "order", "name"), [("l1", 1, "l1"), ("linf", np.inf, "linf"), (3, 3, "l3")]
)
def test_norms_have_an_order_and_a_name(norm, order, name):
    able = capabilities(coin(norm=norm))
    assert (able.norm.order, able.norm.name) == (order, name)


@pytest.mark.parametrize("norm", [None, "l7", 0.5])
def test_what_is_no_norm_is_refused(norm):
    with pytest.raises(
        AuditError, match="coin: expected norm 'l1', 'l2', 'linf' or an order >= 1"
    ):
        _ = capabilities(coin(norm=norm)).norm


def test_an_attribute_that_cannot_be_computed_is_asked_only_when_it_is_needed():
    class Lazy(Response):
        @property
        def score(self):
            raise RuntimeError("not now")

    able = capabilities(Lazy(1.0))
    assert able.law(0).floats.sum() == pytest.approx(1)
    with pytest.raises(RuntimeError, match="not now"):
        _ = able.score
