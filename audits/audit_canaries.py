"""One training with many canaries: nodes of a graph that nobody else's loss reads, each trained on or not by a coin.

Steinke, Nasr & Jagielski (2023), arXiv:2305.08846v1. Where receptive fields are disjoint, accounting for records is right
for nodes as well, so the accountant's curve has to hold; twins without clipping or enough noise are found in few trainings.
"""

import math

from auditdp import Audit, Canaries, GaussianDP, audit
from audits.trainers import ABADI, ensembles

CONTROLS = (
    "no clipping",
    "no noise",
    "noise of the mean divided by the batch once more",
)
"""Twins that two thousand coins refute at a small share of α; half the noise takes some ten thousand."""
STEINKE = "Steinke, Nasr & Jagielski 2023, arXiv:2305.08846v1"


@audit(source=f"{STEINKE}; {ABADI}")
def gcn_disjoint_receptive_fields(mu=1.0, steps=2, canaries=40, trainings=50):
    """DP-SGD on nodes whose receptive fields are disjoint, with noise √steps/μ, is μ-Gaussian DP for each of them."""
    room, _, _ = ensembles()
    from gnn.ensembles.disjoint import ScoredStars, Stars, trainer_of
    from gnn.training import PrivateSettings

    settings = PrivateSettings(
        steps=steps,
        noise_multiplier=math.sqrt(steps) / mu,
        clipping_norm=1.0,
        batch=float(canaries),
        rate=1.0,
        learning_rate=1e-6,
        optimiser="sgd",
    )
    stars = Stars(canaries)
    trainer = trainer_of(stars, settings)
    broken = room.twins(trainer)
    return Audit(
        mechanism=ScoredStars(trainer, stars),
        claim=GaussianDP(mu),
        pairs=Canaries(canaries),
        controls=[ScoredStars(broken[name], stars, name) for name in CONTROLS],
        evidence=("one_run",),
        calls=trainings,
    )
