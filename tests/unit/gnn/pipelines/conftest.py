"""A small graph of two communities, which every pipeline can learn."""

import pytest


@pytest.fixture(scope="session")
def graph():
    import torch

    from tests.unit.gnn.draws import two_communities

    torch.set_num_threads(1)
    return two_communities(60, inside=0.1, across=0.01, features=6, signal=4.0)
