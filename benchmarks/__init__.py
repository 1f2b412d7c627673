"""How good is the auditor? The field's benchmark, with the bound of an oracle that knows the best event."""
