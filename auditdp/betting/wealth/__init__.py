"""From odds to wealth: regions, levels, the bets against each kind of claim, and their mixture."""
