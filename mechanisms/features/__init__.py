"""Mechanisms that encode the features of a record, in the local model."""

from mechanisms.features.extractor import LinearExtractor
from mechanisms.features.feature_rr import FeatureRR
from mechanisms.features.feature_rr_record import (
    ExtractedFeatureRR,
    RecordFeatureRR,
    safe_budget,
    worst_loss,
)
from mechanisms.features.min_max import Everybody, MinMaxScaled, OneReport, PublicBounds
from mechanisms.features.multi_bit import MultiBit, OneBit, Rectified
from mechanisms.features.range_estimates import RangeEstimates

__all__ = [
    "Everybody",
    "ExtractedFeatureRR",
    "FeatureRR",
    "LinearExtractor",
    "MinMaxScaled",
    "MultiBit",
    "OneBit",
    "OneReport",
    "PublicBounds",
    "RangeEstimates",
    "RecordFeatureRR",
    "Rectified",
    "safe_budget",
    "worst_loss",
]
