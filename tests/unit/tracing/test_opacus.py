"""The contract with Opacus: the noise of its optimiser is a release at the line that takes the step."""

import numpy as np
import pytest

from auditdp.claims.statements import GaussianDP
from auditdp.tracing import Trace, compare

torch = pytest.importorskip("torch")
optimizers = pytest.importorskip("opacus.optimizers")
pytestmark = pytest.mark.usefixtures("made_on_device")


@pytest.mark.parametrize("secure", [False, True])
def test_a_step_of_dp_sgd(secure):
    def step(gradients, rng):
        weights = torch.nn.Parameter(torch.zeros(2))
        weights.grad_sample = torch.tensor(gradients)
        optimizer = optimizers.DPOptimizer(
            torch.optim.SGD([weights], lr=1.0),
            noise_multiplier=2.0,
            max_grad_norm=1.0,
            expected_batch_size=1,
            secure_mode=secure,
        )
        optimizer.step()
        return weights.detach().cpu().numpy()

    line = step.__code__.co_firstlineno + 10
    pair = compare(
        Trace(step),
        [[3.0, 4.0], [0.0, 0.5]],
        [[3.0, 4.0], [0.0, -0.5]],
        np.random.default_rng(0),
        claim=GaussianDP(9.0),
    )
    assert pair.extent == "full"
    assert pair.level == pytest.approx(0.5, rel=1e-5)
    assert {release.site.line for release in pair.first.releases} == {line}
