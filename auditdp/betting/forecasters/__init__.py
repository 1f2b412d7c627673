"""Forecasters: views, partitions, estimators and the experts that combine them."""
