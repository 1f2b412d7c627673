"""Whole pipelines as they are deployed: private data in, the trained model and all else that is released out.

Every call is a training by the pipeline's own function. A step is so long that nothing is left of the first weights,
and a clipping norm so small that Adam's first step is in proportion to the noised sum: what a step gives away is released.
"""

import math

import numpy as np
from scipy.stats import norm

from auditdp import ApproxDP, Audit, GaussianDP, Pair, PureDP, audit
from auditdp.betting.forecasters.forecaster import LikelihoodRatio, Scored
from audits.audit_trainers_graphs import DPAR, SAGE, hub
from audits.trainers import ensembles

DIRECT = {"clipping_norm": 1e-12, "learning_rate": 1e9}
"""Adam's first step is learning_rate·g/(|g| + 1e-8): linear in a gradient that is far below 1e-8."""
LPGNN = "Sajadmanesh & Gatica-Perez 2021, arXiv:2006.05535"
OPACUS = "Yousefpour et al. 2021 (Opacus), arXiv:2109.12298; Dong, Roth & Su 2022, arXiv:1905.02383v3, Theorem 2.7"


def trained():
    """Return the room of whole pipelines, or skip where torch is missing."""
    ensembles()
    from gnn.ensembles import trained

    return trained


def two_classes(width):
    """Return the direction in which a linear model of two classes learns features of ones; biases are left out."""
    return np.concatenate([np.repeat([1.0, -1.0], width), np.zeros(2)])


def dpar_trained(epsilon, delta, nodes, k):
    """Return DPAR with a linear model, in one step, with K entries a row."""
    import torch
    from torch_geometric.data import Data

    from gnn.pipelines.dpar import DPARParameters, fit_dpar
    from gnn.pipelines.dpar.budget import budget_of

    parameters = DPARParameters(
        epsilon=epsilon, delta=delta, epochs=1, layers=1, alpha=0.99, k=k, **DIRECT
    )
    classes, no_arcs = (
        torch.zeros(nodes, dtype=torch.long),
        torch.empty(2, 0, dtype=torch.long),
    )
    rows, sigma = (
        parameters.sizes(nodes).rows,
        budget_of(parameters, nodes).noise_multiplier,
    )
    unit = (
        parameters.learning_rate * 1e8 * parameters.clipping_norm / rows
    )  # what C in a sum adds to a weight

    def weights(x, generator):
        data = Data(
            x=torch.from_numpy(np.array(x)),
            y=classes,
            edge_index=no_arcs,
            num_nodes=nodes,
        )
        return trained().weights_row(
            fit_dpar(data, parameters, classes=2, generator=generator)[0].mlp
        )

    def law(scores, x):
        """A node that is drawn is in every row with weight 1/K; each gradient has two classes and is along (x/K, 1)."""
        mixed = float(x[0, 0]) / k
        mean = math.sqrt(2) * rows * mixed / math.hypot(mixed, 1)
        deviation = math.sqrt(2) * sigma
        absent, drawn = (
            norm.logpdf(scores / unit, at, deviation) for at in (0.0, mean)
        )
        return np.logaddexp(
            math.log1p(-rows / nodes) + absent, math.log(rows / nodes) + drawn
        )

    return trained().TrainedByLaw(
        weights, two_classes(1), f"DPAR (ε = {epsilon:g}, δ = {delta:g})", law
    )


def reversed_feature(nodes):
    """Return the pair in which the feature of node 0 turns around, and no other node has one."""
    x = np.zeros((nodes, 1), np.float32)
    x[0] = 10.0
    turned = x.copy()
    turned[0] = -10.0
    return Pair(x, turned, f"feature of one of {nodes} nodes")


@audit(
    source=f"{DPAR}, Algorithm 2 and Theorem 2: (q(ε_sgd + ε_pr), δ_sgd + δ_pr), the ε and δ of Table 1",
    expect="violation",
    row="DPAR training (Alg. 2)",
    reading="as deployed: private nodes in, model out",
)
def dpar_model(epsilon=1.0, delta=2e-3, nodes=45, k=4):
    """The model that DPAR returns after one step is (ε, δ)-DP for a node whose feature is another, by its own budget.

    False: it is drawn with probability 4/45, and is then in all four rows, whose gradients turn around.
    """
    return Audit(
        mechanism=dpar_trained(epsilon, delta, nodes, k),
        claim=ApproxDP(epsilon, delta),
        pairs=reversed_feature(nodes),
        forecasters=[LikelihoodRatio()],
        calls=2_000,
        exhaustive=False,
    )


@audit(
    source=f"{SAGE}, Theorem 1, with arcs that are sampled",
    expect="violation",
    row="SAGE-DP",
    reading="as deployed, on arcs that are sampled: private graph in, model out",
)
def sage_model(epsilon=1.0, delta=1e-2, count=40):
    """The layer that SAGE-DP returns after one step on all nodes is (ε, δ)-DP for a node that is there or not.

    False: the node takes the place of arcs that other nodes had sent.
    """
    room = trained()
    import torch
    from torch_geometric.data import Data

    from gnn.ensembles.pipelines import arcs_of
    from gnn.pipelines.sage_dp import SAGEParameters, fit_sage

    pair, nodes = hub(count, 0), 1 + 2 * count
    parameters = SAGEParameters(
        epsilon=epsilon, delta=delta, out_degree=1, batch=nodes, steps=1, **DIRECT
    )
    x = torch.zeros(nodes, 1)
    x[1 : 1 + count] = 1e3
    classes = torch.zeros(nodes, dtype=torch.long)

    def weights(graph, generator):
        data = Data(x=x, y=classes, edge_index=arcs_of(graph), num_nodes=nodes)
        layer = fit_sage(data, parameters, classes=2, generator=generator)[0].layers[0]
        return layer.lin_l.weight.detach().flatten()  # of the neighbours' mean

    return Audit(
        mechanism=room.Trained(
            weights, np.array([1.0, -1.0]), f"SAGE-DP (ε = {epsilon:g}, one arc a node)"
        ),
        claim=ApproxDP(epsilon, delta),
        pairs=pair,
        forecasters=[Scored()],
        calls=1_000,
        exhaustive=False,
        evidence=("game",),
    )


@audit(
    source=f"{LPGNN}: encoder, randomised response and learning from what was sent",
    row="LPGNN",
    reading="as deployed: raw features and labels in; reports, noisy labels and model out",
)
def lpgnn_deployed(epsilon_features=1.0, epsilon_label=1.0, others=40):
    """Reports, noisy labels and the model trained on them are (ε_x + ε_y)-DP for a user's feature and label.

    With public bounds of the features; scaled by the population's range, every other report changes as well.
    """
    room = trained()
    import torch
    from torch_geometric.data import Data

    from gnn.datasets.splits import Split
    from gnn.pipelines.lpgnn import Parameters, lpgnn

    users = others + 1
    ring = torch.stack([torch.arange(users), (torch.arange(users) + 1) % users])
    arcs = torch.cat([ring, ring.flip(0)], dim=1)
    split = Split(
        torch.arange(users - 1),
        torch.tensor([users - 1]),
        torch.empty(0, dtype=torch.long),
    )

    def deployed(scaling):
        parameters = Parameters(
            epsilon_features=epsilon_features,
            epsilon_labels=epsilon_label,
            scaling=scaling,
            model="GCN",
            hidden=2,
            epochs=2,
        )

        def release(data, generator):
            x, y = (torch.from_numpy(np.array(each)) for each in data)
            given = Data(x=x, y=y, edge_index=arcs, num_nodes=users, num_classes=2)
            model, record = lpgnn(given, parameters, split=split, generator=generator)
            sent = record.released
            reports = sent.x.to_dense() if sent.x.layout == torch.sparse_csr else sent.x
            return torch.cat(
                [
                    reports.flatten(),
                    1.0 - 2.0 * sent.y.to(torch.float32),
                    room.weights_row(model),
                ]
            )

        probe = release(pair.data, torch.Generator().manual_seed(0))
        along = np.zeros(len(probe))
        along[:users] = along[users] = (
            1.0  # what everybody sends of the feature, and the user's own label
        )
        return room.Trained(release, along, f"LPGNN, features scaled by {scaling}")

    x = np.full((users, 1), 0.01, np.float32)
    x[1], rest = 0.0, np.arange(users) % 2
    high, other = x.copy(), rest.copy()
    high[0], other[0] = 1.0, 1
    pair = Pair((x, other), (high, rest), f"feature and label of one of {users} users")
    return Audit(
        mechanism=deployed("clip"),
        claim=PureDP(epsilon_features + epsilon_label),
        pairs=pair,
        controls=[deployed("population")],
        forecasters=[Scored()],
        calls=600,
        exhaustive=False,
        evidence=("game",),
    )


@audit(
    source=OPACUS,
    row="DPAR training (Alg. 2)",
    reading="Opacus' DP-SGD on the decoupled model, a node in one row",
)
def opacus_decoupled(noise=1.0, rows=3):
    """A step of Opacus on rows that mix features, with noise 2λC, is 1/λ-Gaussian DP for a node that is in one row.

    The same step where the node is in every row changes by 2C in each.
    """
    room = trained()
    import torch

    from gnn.models import DecoupledPageRank
    from gnn.training import PrivateSettings

    settings = PrivateSettings(
        steps=1,
        noise_multiplier=2 * noise,
        clipping_norm=1.0,
        batch=rows,
        rate=1.0,
        learning_rate=float(rows),
        optimiser="sgd",
    )
    weights, classes = torch.full((rows, 2), 0.5), torch.zeros(rows, dtype=torch.long)

    def released(shared):
        ids = torch.stack(
            [torch.zeros(rows, dtype=torch.long), torch.arange(1, rows + 1)], dim=1
        )
        if not shared:
            ids[1:, 0] = ids[1:, 1]

        def fit(x, generator):
            model = DecoupledPageRank(1, 2, hidden=1, layers=1, generator=generator)
            with torch.no_grad():
                for weight in model.parameters():
                    weight.zero_()
            features = torch.from_numpy(np.array(x))[ids]
            room.fit_by_opacus(
                model, (features, weights), classes, settings, generator=generator
            )
            return room.weights_row(model)

        return room.Trained(
            fit,
            two_classes(1),
            f"Opacus, a node in {'every row' if shared else 'one row'}",
        )

    return Audit(
        mechanism=released(shared=False),
        claim=GaussianDP(1 / noise),
        pairs=reversed_feature(rows + 1),
        controls=[released(shared=True)],
        forecasters=[Scored()],
        calls=300,
        exhaustive=False,
        evidence=("game",),
    )
