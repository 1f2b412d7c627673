"""Gathering the evidence for one audit and its controls."""

from auditdp.judgement.gathering import gather
from auditdp.judgement.judging import claim_of_privacy, judge_recorded, run_audit
from auditdp.judgement.settings import Settings

__all__ = ["Settings", "claim_of_privacy", "gather", "judge_recorded", "run_audit"]
