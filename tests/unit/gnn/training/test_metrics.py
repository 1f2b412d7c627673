"""Scores against counts by hand."""

import math

import pytest
import torch
from torch import tensor

from gnn.training import accuracy, area_under_roc, largest_share, macro_f1, micro_f1

# Predictions 0, 0, 1, 1, 2, 0.
LOGITS = tensor(
    [
        [2.0, 1, 0],
        [3, 0, 0],
        [0, 1, 0],
        [0, 5, 4],
        [0, 0, 1],
        [1, 0, 0],
    ]
)
TARGETS = tensor([0, 1, 1, 1, 2, 2])
# Predictions 1 0 and 1 1: two true positives, a false one, and one missed.
SEVERAL = tensor([[1.0, -1], [2, 3]])
SEVERAL_TARGETS = tensor([[1.0, 1], [0, 1]])


@pytest.mark.parametrize(
    ("score", "logits", "targets", "expected"),
    [
        (accuracy, LOGITS, TARGETS, 4 / 6),
        (largest_share, LOGITS, TARGETS, 3 / 6),
        # Precision and recall are 1/3 and 1, 1 and 2/3, 1 and 1/2.
        (macro_f1, LOGITS, TARGETS, (1 / 2 + 4 / 5 + 2 / 3) / 3),
        (micro_f1, LOGITS, TARGETS, 4 / 6),
        (accuracy, SEVERAL, SEVERAL_TARGETS, 0.5),
        (micro_f1, SEVERAL, SEVERAL_TARGETS, 2 * 2 / (2 * 2 + 1 + 1)),
        (macro_f1, SEVERAL, SEVERAL_TARGETS, (2 / 3 + 2 / 3) / 2),
    ],
)
def test_scores_by_hand(score, logits, targets, expected):
    assert score(logits, targets) == pytest.approx(expected)


@pytest.mark.parametrize("score", [accuracy, largest_share])
def test_a_score_of_nothing_is_not_a_number(score):
    assert math.isnan(score(LOGITS[:0], TARGETS[:0]))


def two_classes(*scores):
    second = tensor(scores)
    return torch.stack([-second, second], dim=1)


@pytest.mark.parametrize(
    ("logits", "targets", "expected"),
    [
        # Three of four pairs are in order.
        (two_classes(0.1, 0.4, 0.35, 0.8), [0, 0, 1, 1], 0.75),
        # Both probabilities round to 1; the order of the logits must not be lost.
        (two_classes(50.0, 100.0), [0, 1], 1),
        # Classes 1 and 2 are swapped: each is above class 0 and below the other.
        (
            tensor(
                [
                    [9.0, -9, -9],
                    [0, 0, 9],
                    [0, 9, 0],
                ]
            ),
            [0, 1, 2],
            2 / 3,
        ),
        # Each item has several classes; the second column has ones alone, and no curve.
        (
            tensor(
                [
                    [1.0, 0],
                    [2, 0],
                    [3, 0],
                ]
            ),
            [
                [0, 1],
                [0, 1],
                [1, 1],
            ],
            1,
        ),
    ],
)
def test_the_area_is_the_share_of_pairs_in_order(logits, targets, expected):
    assert area_under_roc(logits, tensor(targets)) == pytest.approx(expected)
