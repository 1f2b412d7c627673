"""The contract with Opacus: the noise of a step is a release at the line of the step."""

import pytest

from auditdp.claims.statements import GaussianDP
from tests.unit.tracing.toys import pair_of

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

    first, second = [[3.0, 4.0], [0.0, 0.5]], [[3.0, 4.0], [0.0, -0.5]]
    pair = pair_of(step, first, second, GaussianDP(9.0))
    assert pair.extent == "full"
    assert pair.level == pytest.approx(0.5, rel=1e-5)
    (release,) = pair.first.releases
    assert release.site.line == step.__code__.co_firstlineno + 10
