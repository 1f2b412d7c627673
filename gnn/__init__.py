"""Mechanisms that train graph neural networks; the only room, beside the audits that import it, which needs torch."""
