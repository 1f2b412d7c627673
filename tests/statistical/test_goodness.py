"""The goodness-of-fit test that all tests of samplers share has the level that it states."""

import numpy as np
import pytest
from scipy import stats

from auditdp.mechanism.laws import FiniteLaw
from tests.statistical.goodness import ALPHA, check, chi_square_p, follows, goodness_p

pytestmark = pytest.mark.statistical


def test_a_right_sampler_is_refused_as_often_as_stated(repeats):
    """Twelve cells of which half are rare.

    At level .01 at most .0125 of right samples are refused.

    One assertion, alpha = 1e-6: the null hypothesis is that the level is at most .0125,
    since chi-square is an approximation. Without pooling, .016 are refused here.
    """
    probabilities = 0.5 ** np.r_[1:12, 11]
    runs = repeats(30_000, least=6_000)
    samples = np.random.default_rng(31415).multinomial(2_000, probabilities, runs)
    refused = sum(chi_square_p(counts, probabilities) <= 0.01 for counts in samples)
    check(stats.binom.sf(refused - 1, runs, 0.0125), f"{refused} of {runs:,} refused")


def test_an_impossible_output_is_refused_at_once():
    assert chi_square_p([99_999, 1], [1.0, 0.0]) == 0
    law = FiniteLaw(np.array([[0.0, np.nan], [1.0, -0.0]]), [0.5, 0.5])
    outputs = np.repeat(law.outcomes, 100, axis=0)
    follows(outputs, law, "both outcomes")
    with pytest.raises(AssertionError, match=f"alpha={ALPHA:g}"):
        follows(outputs[:100], law, "only one of them")
    assert goodness_p(outputs + 1, law) == 0
