"""Choice of the pairs that a game plays: by a search, by traces, and by earlier calls."""
