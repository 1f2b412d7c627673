"""Mechanisms on the label of a record, alone or beside its features, in the local model."""

from mechanisms.labels.features_and_label import FeaturesAndLabel
from mechanisms.labels.label_rr import LabelRR

__all__ = ["FeaturesAndLabel", "LabelRR"]
