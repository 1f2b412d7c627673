"""The benchmark of the auditor, beside the bound of an oracle that knows the best event."""
