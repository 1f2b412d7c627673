"""One file per kind of evidence: what it does, and what it may and may not say."""
