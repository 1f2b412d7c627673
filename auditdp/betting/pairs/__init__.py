"""Choice of the pairs that a game plays: by a search with calls, and by traces."""
