"""Budgets in hindsight: the smallest that so many games share."""

import numpy as np

from benchmarks.hindsight import BUDGETS, calls_of


def test_the_kth_number_is_the_smallest_budget_with_which_k_games_refute():
    budgets = [2 * max(10, round(times * 500)) for times in BUDGETS]
    needed = {0: budgets[2] // 2, 1: budgets[5] // 2, 2: 10**9}

    def draw(size, game):
        return np.zeros(size), np.full(size, needed[game])

    found = calls_of(
        lambda first, second: float(len(first) >= second[0]),
        draw,
        0.5,
        1_000.0,
        [1, 2, 0],
    )
    assert found == [budgets[2], budgets[5], None]
