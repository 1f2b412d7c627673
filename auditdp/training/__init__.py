"""Does a training keep the claim that its accountant prints? For trainers of anything, in any framework.

>>> import numpy as np
>>> from auditdp import GaussianDP, audit_training
>>> def train(data, rng):  # its noise is half of what 1-GDP needs
...     return np.clip(data, -1, 1).sum() + rng.normal(scale=0.5)
>>> neighbours = (np.array([1.0, 0.3, -0.2]), np.array([0.3, -0.2]))
>>> audit_training(train, GaussianDP(1.0), neighbours).verdict.value
'VIOLATED'
"""

from auditdp.record.results import AuditResult
from auditdp.training.auditing import audit_training
from auditdp.training.steps import LevelByStep, level_by_step
from auditdp.training.trainers import Attack, Training

__all__ = ["Attack", "AuditResult", "LevelByStep", "Training", "audit_training", "level_by_step"]
