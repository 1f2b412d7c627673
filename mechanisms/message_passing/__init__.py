"""Message passing with noise: iterations that contract, an embedding of CARIBOU's code, rows that are aggregated once."""

from mechanisms.message_passing.caribou import CaribouEmbedding, FeaturesAgree, NoisyHop
from mechanisms.message_passing.contractive import (
    AllIterations,
    ContractiveIterations,
    counted_hops,
)
from mechanisms.message_passing.decoupled import NeighbourEmbedding

__all__ = [
    "AllIterations",
    "CaribouEmbedding",
    "ContractiveIterations",
    "FeaturesAgree",
    "NeighbourEmbedding",
    "NoisyHop",
    "counted_hops",
]
