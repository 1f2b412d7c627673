"""From an output to odds: views, partitions, estimators and the experts that they make."""
