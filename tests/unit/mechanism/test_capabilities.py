"""A mechanism's offers are found in one place, and wrong ones are refused there."""

import numpy as np
import pytest

from auditdp import FiniteLaw
from auditdp.errors import AuditError, MechanismError
from auditdp.mechanism.capabilities import ARGUMENTS, capabilities
from auditdp.mechanism.protocol import as_mechanism
from auditdp.testing import LaplaceMechanism, Response


def able(**offered):
    """Return the capabilities of a coin with some attributes."""

    def coin(data, rng):
        return int(rng.random() < 0.5)

    vars(coin).update(offered)
    return capabilities(coin)


def query(data, rng):
    return data


@pytest.mark.parametrize(
    "offered", [{}, dict.fromkeys([*ARGUMENTS, "sensitivity", "norm"])]
)
def test_a_missing_attribute_and_none_are_no_offer(offered):
    found = able(**offered)
    assert not found.offered()
    assert not found.is_calibrated
    for name in ("law", "law_of_output", "envelope", "log_prob", "finite_sensitivity"):
        assert getattr(found, name) is None


def test_the_law_of_the_output_comes_before_the_one_before_processing():
    final = FiniteLaw([0, 1], [0.1, 0.9])
    early = FiniteLaw([0, 1], [0.2, 0.8])
    before = {"before_processing": lambda data: early}
    both = able(distribution=lambda data: final, **before)
    assert both.law(0) is both.law_of_output(0) is final
    assert able(**before).law(0) is early
    assert able(**before).law_of_output is None


def test_offers_are_listed_as_they_are_called():
    offered = able(query=query, sensitivity=2, norm="l2", score=lambda outputs, pair: 0)
    expected = ["score(outputs, pair)", "query(data, rng)", "l2 sensitivity 2"]
    assert offered.offered() == expected
    expected = ["distribution(data)", "log_prob(outputs, data)"]
    assert capabilities(LaplaceMechanism(0.5)).offered() == expected

    def adapted(data, rng):
        return 0

    adapted.distribution = lambda data: FiniteLaw([0], [1])
    assert capabilities(as_mechanism(adapted)).offered() == expected[:1]


@pytest.mark.parametrize("name", ARGUMENTS)
def test_a_method_that_takes_other_arguments_is_refused_by_its_name(name):
    for wrong in (lambda a, b, c, d: None, 3.5):
        message = rf"coin: expected a method {name}\(.*got {name}"
        with pytest.raises(MechanismError, match=message):
            able(**{name: wrong}).offered()


@pytest.mark.parametrize(
    ("name", "method", "arguments", "fragment"),
    [
        ("distribution", lambda data: {0: 0.5}, (0,), "{0: 0.5}, expected FiniteLaw"),
        ("envelope", lambda: None, (), "None, expected Envelope"),
        *(
            (name, lambda outputs, given: 0.0, (np.zeros(3), 0), r"shape \(\) for 3")
            for name in ("log_prob", "score", "possible")
        ),
    ],
)
def test_other_results_of_a_method_are_refused(name, method, arguments, fragment):
    found = able(**{name: method})
    with pytest.raises(MechanismError, match=rf"coin.{name}: returned {fragment}"):
        getattr(found, "law" if name == "distribution" else name)(*arguments)


@pytest.mark.parametrize("wrong", [0, -1.0, np.inf, np.nan, "1"])
def test_a_sensitivity_that_is_no_positive_number_is_refused(wrong):
    found = able(query=query, sensitivity=wrong, norm="l1")
    assert found.is_calibrated
    assert found.finite_sensitivity is None
    with pytest.raises(AuditError, match="coin: expected a finite sensitivity > 0"):
        _ = found.sensitivity


@pytest.mark.parametrize(
    ("norm", "order", "name"), [("l1", 1, "l1"), ("linf", np.inf, "linf"), (3, 3, "l3")]
)
def test_norms_have_an_order_and_a_name(norm, order, name):
    found = able(norm=norm).norm
    assert found.order == order
    assert found.name == name


@pytest.mark.parametrize("norm", [None, "l7", 0.5])
def test_other_norms_are_refused(norm):
    message = "coin: expected norm 'l1', 'l2', 'linf' or an order >= 1"
    with pytest.raises(AuditError, match=message):
        _ = able(norm=norm).norm


def test_an_attribute_is_computed_only_when_it_is_needed():
    class Lazy(Response):
        @property
        def score(self):
            raise RuntimeError("not now")

    found = capabilities(Lazy(1.0))
    assert found.law(0).floats.sum() == pytest.approx(1)
    with pytest.raises(RuntimeError, match="not now"):
        _ = found.score
