"""Choice of the pairs that a game plays: by calls of the mechanism, and by traces."""
