"""Pipelines: private graph learning from the data to the model."""
