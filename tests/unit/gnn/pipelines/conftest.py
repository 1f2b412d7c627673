"""A small graph of two communities, which every pipeline can learn."""

import pytest


@pytest.fixture(scope="session")
def graph():
    import numpy as np
    import torch

    from gnn.datasets.generated import stochastic_block_model

    torch.set_num_threads(1)
    return stochastic_block_model(
        [60, 60],
        inside=0.1,
        across=0.01,
        features=6,
        signal=4.0,
        rng=np.random.default_rng(0),
    )
