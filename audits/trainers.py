"""What audits of trainers share."""

from auditdp import Skip
from auditdp.betting.forecasters import LikelihoodRatio, Scored

ABADI = "Abadi et al. 2016, arXiv:1607.00133v2, Algorithm 1"


def ensembles():
    """Return the room that trains many models at once, or skip where torch is missing."""
    try:
        from gnn import ensembles
        from gnn.ensembles import example, graphs
    except ModuleNotFoundError as error:
        if error.name not in ("torch", "torch_geometric"):
            raise
        raise Skip("needs torch; install it with: pip install 'auditdp[torch]'") from None
    return ensembles, example, graphs


def forecasters():
    """Return who knows the law that is claimed, and who learns how a twin's likelihood ratio differs from it."""
    return [LikelihoodRatio(), Scored()]
