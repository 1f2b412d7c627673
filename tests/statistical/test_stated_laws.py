"""Every sampler draws from the law that its mechanism states: one table for all.

Each assertion has alpha = 1e-6; `tests.statistical.goodness` states the null
hypothesis.
"""

import numpy as np
import pytest
from flint import arb

from auditdp.mechanism.laws import FiniteLaw, precision
from mechanisms.classic import SVT1, Gaussian, LaplaceSum
from mechanisms.edges import (
    DPRR,
    Customised,
    EdgeRand,
    LapGraph,
    LocalLaplaceGraph,
    LocalLaplaceRow,
    PerUser,
    RandomisedResponse,
)
from mechanisms.graphs import Graph
from mechanisms.hierarchy import DendrogramStep, PrivHRG
from mechanisms.numeric import PMSub
from mechanisms.pagerank import DPApprEM, GivenRows
from tests.statistical import stated_laws as table
from tests.statistical.goodness import ALPHA, follows, goodness_p
from tests.statistical.stated_laws import NEVER

parametrize = pytest.mark.parametrize

pytestmark = pytest.mark.statistical
RUNS = 200_000
FEWEST_RUNS = 40_000
TORCH = ["cpu", pytest.param("cuda", marks=pytest.mark.gpu)]
ROWS = [
    *table.CLASSIC,
    *table.EDGES,
    *table.FEATURES,
    *table.NUMBERS,
    *table.DENDROGRAMS,
    *table.RELEASES,
    *table.PAGERANK,
    *table.NEWER,
]


def rng_of(*key):
    return np.random.default_rng([20240, *key])


@parametrize("row", ROWS, ids=lambda row: row.name)
def test_sampler_and_log_prob_agree_with_the_stated_law(row, repeats):
    """And a finite law sums to one."""
    law = row.stated
    outputs = row.mechanism(row.data, repeats(RUNS, least=FEWEST_RUNS), rng=rng_of(1))
    follows(row.of(outputs), law, row.name)
    outputs = outputs[:4096]
    if row.law is None and isinstance(law, FiniteLaw):
        outputs = law.outcomes[:4096]
        with precision():
            total = sum(law.balls, arb(0))
            assert total.contains(1)
            assert float(total.rad()) < 1e-50
    states_it = hasattr(law, "log_prob") and row.of is np.asarray
    if states_it and hasattr(row.mechanism, "log_prob"):
        found = row.mechanism.log_prob(outputs, row.data)
        np.testing.assert_allclose(found, law.log_prob(outputs), atol=1e-10)


@parametrize("device", TORCH)
@parametrize(
    "row",
    [*table.TENSORS, *table.MIDDLING, *table.RECORDS],
    ids=lambda row: row.name,
)
def test_tensors_follow_the_stated_law(row, device):
    rng = table.torch_generator(device, 7)
    torch = pytest.importorskip("torch")
    shape = (FEWEST_RUNS, *np.shape(row.data))
    values = np.broadcast_to(np.asarray(row.data, np.float64), shape)
    tensor = torch.as_tensor(values.copy(), device=device)
    outputs = row.mechanism.perturb(tensor, rng=rng)
    assert outputs.device.type == device
    follows(outputs.cpu().numpy(), row.stated, f"{row.name} on {device}")


def sparse_outputs(mechanism, graph, size, rng):
    """Outputs of the sampler of large graphs, as cells."""
    cells = ~np.eye(graph.nodes, dtype=bool)
    found = []
    for _ in range(size):
        noisy = mechanism.whole_graph(graph, rng=rng)
        if isinstance(noisy, Graph):
            cells = np.triu(cells)
        found.append(noisy.to_matrix()[cells])
    return np.array(found)


IN_FULL = [*(row.mechanism for row in table.RELEASES[2:5]), LapGraph(40.0, 4)]


@parametrize(
    ("mechanism", "data"),
    [
        (PerUser(RandomisedResponse(0.8), 3), table.WEDGE),
        (PerUser(DPRR(0.5, 1.0), 3), table.WEDGE),
        (PerUser(DPRR(2.0, 3.0, clip_degree=False), 3), table.WEDGE),
        (PerUser(LocalLaplaceRow(3.0, share=0.5), 3), table.WEDGE),
        (Customised(DPRR(0.5, 1.0), 4, private=(1, 2)), table.PAW),
        (EdgeRand(0.7, 4), table.PAW),
        (LapGraph(4.0, 4, share=0.5), table.PAW),
        (LocalLaplaceGraph(3.0, 4, share=0.5), table.PAW),
        *(pytest.param(each, table.PAW, marks=pytest.mark.dear) for each in IN_FULL),
    ],
    ids=lambda value: getattr(value, "name", ""),
)
def test_sparse_forms_follow_the_stated_law(mechanism, data, repeats):
    graph = Graph.from_matrix(data)
    runs = repeats(20_000, least=1_000)
    outputs = sparse_outputs(mechanism, graph, runs, rng_of(2))
    follows(outputs, mechanism.distribution(data), f"sparse {mechanism.name}")


@parametrize(
    ("drawn", "stated"),
    [
        (SVT1(1.0, 2, 0.5), table.CLASSIC[1]),
        (LaplaceSum(0.55, 3.0), table.LAPLACE),
        (Gaussian(1.1, 1e-3), table.GAUSSIAN),
        (RandomisedResponse(0.9), table.EDGES[0]),
        (DPRR(0.3, 1.0), table.EDGES[1]),
        (DPRR(0.4, 0.9), table.EDGES[1]),
        (DPRR(0.3, 0.9, False), table.EDGES[1]),
        *((type(row.mechanism)(1.1), row) for row in table.MIDDLING),
        (PMSub(1.0), table.MIDDLING[1]),
        (DendrogramStep(3.6, 5), table.DENDROGRAMS[0]),
        (DendrogramStep(3.0, 5, steps=2, start="uniform"), table.DENDROGRAMS[2]),
        (PrivHRG(2.0, 1.3, 4, **NEVER), table.RELEASES[1]),
        (DPApprEM(1.1, 2, GivenRows(5)), table.PAGERANK[0]),
        (DPApprEM(1.0, 2, GivenRows(5), clip=2 * table.CLIP), table.PAGERANK[0]),
    ],
)
def test_another_law_is_refused(drawn, stated):
    """Power: a tenth to a third more budget, and the other reading of a formula."""
    law = stated.stated
    outputs = drawn(stated.data, 2 * FEWEST_RUNS, rng=rng_of(3))
    assert goodness_p(stated.of(outputs), law) < ALPHA
