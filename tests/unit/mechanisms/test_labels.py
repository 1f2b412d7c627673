"""Randomised response on labels: known laws, exact losses, composition with features, and errors."""

import math
from fractions import Fraction

import numpy as np
import pytest
from flint import arb

from auditdp.errors import MechanismError
from auditdp.evidence.loss_of_laws import pair_loss
from auditdp.mechanism.laws import ball, precision
from mechanisms.features import MultiBit
from mechanisms.labels import FeaturesAndLabel, LabelRR
from mechanisms.labels.label_rr import LEAST_EPSILON, MOST_CLASSES

RNG = np.random.default_rng


def test_known_law():
    """E = 3 and four classes: the true label with 3/6, each other with 1/6."""
    law = LabelRR(math.log(3), 4).distribution(2)
    assert law.outcomes.tolist() == [0, 1, 2, 3]
    assert law.floats == pytest.approx([1 / 6, 1 / 6, 1 / 2, 1 / 6], rel=1e-14)
    assert sum(law.probabilities) == 1


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 4.0])
@pytest.mark.parametrize("classes", [2, 3, 10])
def test_exact_epsilon_is_the_claimed_one(epsilon, classes):
    response = LabelRR(epsilon, classes)
    exact = pair_loss(response.distribution(0), response.distribution(classes - 1))
    assert exact.upper <= epsilon
    assert exact.lower == pytest.approx(epsilon, rel=1e-9)


@pytest.mark.parametrize("epsilon", [LEAST_EPSILON, 1e-5, 1.0, 30.0, 50.0, 700.0])
@pytest.mark.parametrize("classes", [2, 3, MOST_CLASSES - 1, MOST_CLASSES])
def test_rounding_is_towards_privacy_in_both_directions(epsilon, classes):
    response = LabelRR(epsilon, classes)
    with precision(2000):
        most = arb(epsilon).exp()
        assert ball(response.true / response.other) <= most
        assert ball(response.other / response.true) <= most
    assert (response.other * 2**53).denominator == 1


def test_log_prob_agrees_with_the_law():
    response = LabelRR(1.3, 5)
    law = response.distribution(4)
    np.testing.assert_allclose(
        response.log_prob(law.outcomes, 4), law.log_prob(law.outcomes), atol=1e-14
    )


def test_every_stretch_of_the_uniform_number_is_one_label():
    """The deployed probabilities, by giving the sampler uniform numbers at the ends of every stretch."""
    response = LabelRR(0.9, 4)
    steps = int(response.other * 2**53)

    class Fixed(np.random.Generator):
        def random(self, size=None, **how):
            return (
                np.array(
                    [
                        0,
                        steps - 1,
                        steps,
                        2 * steps,
                        3 * steps - 1,
                        3 * steps,
                        2**53 - 1,
                    ]
                )
                / 2**53
            )

    released = response.perturb(np.full(7, 3), rng=Fixed(np.random.PCG64(0)))
    assert released.tolist() == [0, 0, 1, 2, 2, 3, 3]


def test_features_and_label_add_up():
    mechanism = FeaturesAndLabel(MultiBit(0.7, 2), LabelRR(0.4, 3))
    law = mechanism.distribution(np.array([0.0, 0.0, 0.0]))
    other = mechanism.distribution(np.array([1.0, 1.0, 2.0]))
    assert all(isinstance(p, Fraction) for p in law.probabilities)
    assert pair_loss(law, other).lower == pytest.approx(1.1, rel=1e-9)
    assert pair_loss(law, other).upper <= 1.1
    same_label = mechanism.distribution(np.array([1.0, 1.0, 0.0]))
    same_features = mechanism.distribution(np.array([0.0, 0.0, 1.0]))
    assert pair_loss(law, same_label).lower == pytest.approx(0.7, rel=1e-9)
    assert pair_loss(law, same_features).lower == pytest.approx(0.4, rel=1e-9)
    data = np.array([0.5, 1.0, 2.0])
    outputs = mechanism(data, 9, rng=RNG(0))
    np.testing.assert_allclose(
        mechanism.log_prob(outputs, data),
        mechanism.distribution(data).log_prob(outputs),
        atol=1e-12,
    )
    encoded, labels = mechanism.perturb(np.zeros((6, 2)), np.arange(6) % 3, rng=RNG(0))
    assert encoded.shape == (6, 2)
    assert labels.shape == (6,)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: LabelRR(-1.0, 3), r"expected epsilon, a finite number > 0, got -1\.0"),
        (lambda: LabelRR(1e-9, 3), r"expected epsilon >= 2\^-22"),
        (lambda: LabelRR(1.0, 1), r"expected classes, an integer >= 2, got 1"),
        (lambda: LabelRR(1.0, 2**16), r"at most 32768 classes"),
        (
            lambda: LabelRR(1.0, 3)(3, 1, rng=RNG(0)),
            r"integers from 0 to 2, got .*number the classes from 0",
        ),
        (lambda: LabelRR(1.0, 3).perturb([0.5], rng=RNG(0)), r"integers from 0 to 2"),
        (lambda: LabelRR(1.0, 3).perturb([-1], rng=RNG(0)), r"integers from 0 to 2"),
    ],
)
def test_errors_show_the_value_and_the_remedy(make, message):
    with pytest.raises(MechanismError, match=message):
        make()


def test_tensors_stay_where_they_are(device):
    import torch

    rng = torch.Generator(device).manual_seed(1)
    released = LabelRR(1.0, 7).perturb(torch.arange(70, device=device) % 7, rng=rng)
    assert released.dtype == torch.int16
    assert released.device.type == device
    assert bool(((released >= 0) & (released < 7)).all())
