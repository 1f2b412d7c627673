"""Thousands of trainings at once, and trainers as mechanisms that are audited by them."""

from gnn.ensembles.draws import keys_of
from gnn.ensembles.fit import Trainings, fit_ensemble
from gnn.ensembles.released import FinalModel, NoisedSums
from gnn.ensembles.trainer import Trainer
from gnn.ensembles.twins import twins
from gnn.ensembles.worlds import World, gradient_canary

__all__ = [
    "FinalModel",
    "NoisedSums",
    "Trainer",
    "Trainings",
    "World",
    "fit_ensemble",
    "gradient_canary",
    "keys_of",
    "twins",
]
