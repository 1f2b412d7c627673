"""Caps on time and memory of the game, and tolerances of its arithmetic.

A change of a cap changes the bets that are made, and so the numbers of a game, but never
its validity.
"""

from dataclasses import dataclass


@dataclass(frozen=True)
class GameLimits:
    """Caps on the work of forecasters and of bets.

    Attributes:
        memory_bytes: Size of the stored outputs of one pair, in bytes, from which on no
            more are stored.
        memory_numbers: Largest number of stored outputs of one pair if each is one
            number; the last batch may exceed it.
        memory_vectors: The same limit for outputs of several numbers. It is smaller,
            because learned views read all stored outputs.
        coordinates: Largest number of coordinates of an output with a view of their
            own. Learned views choose among the coordinates of longer outputs.
        repeating_columns: Largest number of coordinates whose repeated values are
            counted.
        repeating_trial: Number of outputs from which on a coordinate is no longer
            counted if fewer than 3/4 of its values are distinct.
        repeating_values: Largest number of values of a coordinate whose coins are
            stored; the last batch may exceed it. After this number of outputs, a
            coordinate that is still counted is counted until the end of the game.
        names: Largest number of names with a cell of their own. With at most this
            number of distinct outputs, views may be computed once for each of them.
        quantiles: Largest number of equally probable parts that the values of a view
            are cut into; both outer parts are cut further.
        repeated_values: Largest number of repeated values that get cells of their own
            among values that are mostly distinct.
        sampled_rows: Rows in the sample that estimates the share of distinct rows.
        few_rows: Largest number of rows of a batch that is viewed in one piece. Also
            the largest number of stored rows of which each half is counted by the view
            that is learned from the other half.
        early_cut_growth: Growth factor of the calls after which views are cut into
            cells again, up to ``few_rows`` calls.
        late_cut_growth: The same factor after ``few_rows`` calls.
        quantile_rows: Largest number of rows from which a learned view estimates a
            quantile.
        newton_width: Largest number of columns of a regression that is fitted by
            Newton's method, which is faster there.
        regression_steps: Largest number of iterations of a regression.
        regression_tolerance: Newton's method ends if no entry of the gradient, divided
            by the number of rows and by the weight C of the data, exceeds it.
        recent_batches: The law of a single forecaster is estimated from the last batch
            and from this number of batches before it.
        recent_calls: Largest number of calls from each of these batches.
        ranked_calls: Calls of a pair after which its players first rank their views.
        anchor_spacing: Number of levels from one anchor to the next; leaders are chosen
            at anchors only.
        law_cells: Largest number of cells of a law for which a bet is optimised.
        stored_law_cells: Largest number of cells of a stored law.
        curve_lines: Largest number of statements of a curve in the optimisation of a
            bet. The price of the bet is computed from all statements.
        judged_anchors: Number of anchors at which all forecasters are judged, in
            addition to the claim's anchor.
        eager_ranks: Number of forecasters, the best in rank, whose expected laws are
            compared with the claim.
        bins: Number of bins of positive log-odds in bets against a curve.
        solver_steps: Largest number of steps of the optimisation of a bet; about
            fourteen are usual.
        calls_to_find: Largest number of calls that is considered in the search for the
            calls that find a fault.
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
"""Largest size of a number in learned views, classifiers and normal laws: its square is
finite.

Larger numbers are clipped to it.
"""
