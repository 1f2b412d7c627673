"""smartnoise-synth 1.0.5: the covariance matrix of its models, whose data were clipped and then used unclipped."""

import importlib.util

import numpy as np
import pandas as pd

from auditdp import Audit, PureDP, audit, unseeded
from libraries.old.versions import old

PLACE = old("smartnoise-synth", "1.0.5") / "snsynth" / "models" / "dp_covariance.py"
spec = importlib.util.spec_from_file_location("dp_covariance", PLACE)
module = importlib.util.module_from_spec(spec)
spec.loader.exec_module(module)  # the module alone: the package needs an old torch


@audit(
    row="smartnoise-synth 1.0.5",
    reading="DPcovariance",
    source="smartnoise-sdk issue 622, mended by pull request 624",
    expect="violation",
)
def covariance(epsilon=1.0, rows=5):
    """The variance of five numbers that are said to lie in [0, 1]; one is replaced by a number outside.

    False: the numbers are clipped, and the variance is computed of those that are not.
    """

    def release(values):
        table = pd.DataFrame({0: list(values), 1: [0.0, 1.0, 0.0, 1.0, 0.0]})
        bounds = pd.DataFrame({0: [0.0, 1.0], 1: [0.0, 1.0]})
        return np.array(
            module.DPcovariance(rows, [0, 1], bounds, epsilon).release(table)
        )

    pairs = [((0.0, 0.0, 0.0, 0.0, 1000.0), (0.0, 0.0, 0.0, 0.0, 0.0))]
    return Audit(unseeded(release), PureDP(epsilon), pairs, calls=500)
