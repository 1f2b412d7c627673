"""Thousands of trainings at once, and trainers as mechanisms that are audited by them."""

from gnn.ensembles.draws import keys_of
from gnn.ensembles.fit import Trainings, fit_ensemble
from gnn.ensembles.released import FinalModel, NoisedSums, SumsAlone
from gnn.ensembles.stack import CrossEntropy
from gnn.ensembles.trainer import Trainer
from gnn.ensembles.twins import (
    batch_twins,
    in_order,
    over_own_size,
    standardised,
    twins,
)
from gnn.ensembles.worlds import World, gradient_canary

__all__ = [
    "CrossEntropy",
    "FinalModel",
    "NoisedSums",
    "SumsAlone",
    "Trainer",
    "Trainings",
    "World",
    "batch_twins",
    "fit_ensemble",
    "gradient_canary",
    "in_order",
    "keys_of",
    "over_own_size",
    "standardised",
    "twins",
]
