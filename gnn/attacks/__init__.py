"""Attacks on trained graph models: whose edges, whose membership and which features their outputs give away."""

from gnn.attacks.embedding_similarity import cosine_similarities, embedding_similarity
from gnn.attacks.feature_inversion import Inversion, feature_inversion
from gnn.attacks.link_teller import influence, link_teller
from gnn.attacks.membership import known_member_attack, membership, membership_scores
from gnn.attacks.outcome import AttackOutcome, outcome
from gnn.attacks.pairs import all_pairs, are_edges, sampled_pairs

__all__ = [
    "AttackOutcome",
    "Inversion",
    "all_pairs",
    "are_edges",
    "cosine_similarities",
    "embedding_similarity",
    "feature_inversion",
    "influence",
    "known_member_attack",
    "link_teller",
    "membership",
    "membership_scores",
    "outcome",
    "sampled_pairs",
]
