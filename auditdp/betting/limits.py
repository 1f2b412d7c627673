"""Caps on time and memory of the game, and tolerances of its arithmetic.

A change of a cap changes the bets that are made, and so the numbers of a game, but never
its validity.
"""

from dataclasses import dataclass


@dataclass(frozen=True)
class GameLimits:
    """Caps on the work of forecasters and of bets.

    Attributes:
        memory_bytes: Bytes of the outputs of one pair that are kept.
        memory_numbers: Outputs of one pair that are kept if each is one number.
        memory_vectors: Outputs that are kept if each has several numbers, because
            learned views read all of them.
        coordinates: Numbers of an output with a view of their own. Learned views choose
            among the numbers of longer outputs.
        repeating_columns: Numbers of an output whose repeated values are counted.
        repeating_trial: Outputs after which a number that repeats is left to cells.
        repeating_values: Values of a number whose coins are kept.
        names: Names that have a cell of their own.
        quantiles: Quantiles between the tails that are edges of cells.
        repeated_values: Values that repeat and get a cell of their own.
        sampled_rows: Rows that estimate the share of distinct rows.
        few_rows: Rows up to which a batch is viewed in one piece, and up to which each
            half of the rows is counted by the view learned from the other half.
        early_cut_growth: Growth of the calls after which views are cut into cells
            again.
        late_cut_growth: The same after ``few_rows`` calls.
        quantile_rows: Rows that estimate a quantile for a learned view.
        newton_width: Columns up to which Newton's method fits a regression faster.
        regression_steps: Most iterations of a regression.
        regression_tolerance: Largest gradient of a fitted regression, for each row and
            unit of C.
        recent_batches: Batches that the law of a single forecaster is estimated from.
        recent_calls: Calls of each of these batches.
        ranked_calls: Calls of a pair after which its players rank their views.
        anchor_spacing: Levels between two anchors; leaders are chosen at anchors alone.
        law_cells: Cells of a law for which a bet is optimised.
        stored_law_cells: Cells of a stated law.
        curve_lines: Statements of a curve for which a bet is optimised. All statements
            make its price.
        judged_anchors: Anchors at which all forecasters are judged.
        eager_ranks: Forecasters, by rank, whose law is compared with the claim.
        bins: Bins of positive log-odds in bets against a curve.
        solver_steps: Steps of the optimisation of a bet; about fourteen are usual.
        calls_to_find: Calls up to which the power of a game is computed.
    """

    memory_bytes: int = 1 << 26
    memory_numbers: int = 1 << 23
    memory_vectors: int = 1 << 20
    coordinates: int = 32
    repeating_columns: int = 16
    repeating_trial: int = 64
    repeating_values: int = 1 << 18
    names: int = 4096
    quantiles: int = 128
    repeated_values: int = 16
    sampled_rows: int = 4096
    few_rows: int = 1 << 14
    early_cut_growth: float = 1.5
    late_cut_growth: float = 2.0
    quantile_rows: int = 8192
    newton_width: int = 64
    regression_steps: int = 60
    regression_tolerance: float = 1e-4
    recent_batches: int = 16
    recent_calls: int = 4096
    ranked_calls: int = 20_000
    anchor_spacing: int = 8
    law_cells: int = 32
    stored_law_cells: int = 256
    curve_lines: int = 60
    judged_anchors: int = 5
    eager_ranks: int = 48
    bins: int = 200
    solver_steps: int = 60
    calls_to_find: int = 10**15


LIMITS = GameLimits()

TINY = 1e-12
"""Positive number that keeps divisors and probabilities away from 0."""
NEGLIGIBLE = 1e-9
"""Probability, or log wealth in nats, that counts as a rounding error."""
LARGEST_FINITE = 1e30
"""Numbers are clipped to it, so that squares of their differences are finite."""
