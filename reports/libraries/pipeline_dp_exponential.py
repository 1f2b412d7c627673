"""ExponentialMechanism of PipelineDP raises for one of two neighbouring score vectors. Needs pipeline-dp alone."""

import warnings

from pipeline_dp.dp_computations import ExponentialMechanism

warnings.simplefilter("ignore")


class Scored(ExponentialMechanism.ScoringFunction):
    """Two candidates of equal score."""

    global_sensitivity = 1.0
    is_monotonic = False

    def __init__(self, score):
        self.value = score

    def score(self, k):
        """Return the score, whatever the candidate."""
        return self.value


for score in (-1490.0, -1491.0):
    raised = 0
    for _ in range(200):
        try:
            ExponentialMechanism(Scored(score)).apply(1.0, [0, 1])
        except ValueError:
            raised += 1
    print(f"scores of {score:.0f}: {raised} of 200 calls at ε = 1 raise ValueError")
