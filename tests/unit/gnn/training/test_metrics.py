"""Scores against counts by hand."""

import math

import pytest
import torch

from auditdp.errors import ConfigurationError
from gnn.training import accuracy, area_under_roc, f1, largest_share, macro_f1, micro_f1

# Predictions 0, 0, 1, 1, 2, 0.
LOGITS = torch.tensor(
    [[2.0, 1, 0], [3, 0, 0], [0, 1, 0], [0, 5, 4], [0, 0, 1], [1, 0, 0]]
)
TARGETS = torch.tensor([0, 1, 1, 1, 2, 2])


def test_accuracy():
    assert accuracy(LOGITS, TARGETS) == pytest.approx(4 / 6)
    assert math.isnan(accuracy(LOGITS[:0], TARGETS[:0]))


def test_the_share_of_the_most_frequent_prediction():
    assert largest_share(LOGITS, TARGETS) == 3 / 6
    assert largest_share(LOGITS[[0, 1, 5]], TARGETS[[0, 1, 5]]) == 1
    assert math.isnan(largest_share(LOGITS[:0], TARGETS[:0]))


def test_f1_by_hand():
    """Class 0: precision 1/3, recall 1; class 1: 1, 2/3; class 2: 1, 1/2."""
    assert macro_f1(LOGITS, TARGETS) == pytest.approx((1 / 2 + 4 / 5 + 2 / 3) / 3)
    assert micro_f1(LOGITS, TARGETS) == pytest.approx(4 / 6)
    with pytest.raises(ConfigurationError, match="did you mean 'micro'"):
        f1(LOGITS, TARGETS, average="micr")


def test_several_classes_each_by_hand():
    """Predictions 1 0 / 1 1 of targets 1 1 / 0 1: two true positives, a false one, and one missed."""
    logits, targets = (
        torch.tensor([[1.0, -1], [2, 3]]),
        torch.tensor([[1.0, 1], [0, 1]]),
    )
    assert micro_f1(logits, targets) == pytest.approx(2 * 2 / (2 * 2 + 1 + 1))
    assert macro_f1(logits, targets) == pytest.approx((2 / 3 + 2 / 3) / 2)
    assert accuracy(logits, targets) == 0.5


def test_area_is_the_share_of_pairs_in_order():
    """Scores .1, .4, .35, .8 with labels 0, 0, 1, 1: three of four pairs are in order."""
    scores = torch.tensor([0.1, 0.4, 0.35, 0.8])
    logits = torch.stack([-scores, scores], dim=1)
    assert area_under_roc(logits, torch.tensor([0, 0, 1, 1])) == pytest.approx(0.75)
    assert area_under_roc(logits, torch.tensor([0, 0, 0, 0])) != area_under_roc(
        logits, torch.tensor([0, 0, 1, 1])
    )


def test_area_of_confident_logits_has_no_ties():
    """Probabilities of these round to 1; their order must not."""
    logits = torch.tensor([[0.0, 100.0], [0.0, 200.0]])
    assert area_under_roc(logits, torch.tensor([0, 1])) == 1


def test_area_of_one_class_against_the_rest():
    """Perfect for class 0; classes 1 and 2 are swapped: each ranks above class 0 and below the other."""
    logits = torch.tensor([[9.0, -9, -9], [0, 0, 9], [0, 9, 0]])
    assert area_under_roc(logits, torch.tensor([0, 1, 2])) == pytest.approx(
        (1 + 0.5 + 0.5) / 3
    )
    assert math.isnan(area_under_roc(logits, torch.tensor([1, 1, 1])))


def test_area_of_several_classes_each():
    """The second column has ones alone, and no curve."""
    logits = torch.tensor([[1.0, 0], [2, 0], [3, 0]])
    assert area_under_roc(logits, torch.tensor([[0.0, 1], [0, 1], [1, 1]])) == 1
