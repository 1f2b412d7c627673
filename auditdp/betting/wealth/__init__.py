"""Bets and wealth: regions, levels, bets against each kind of claim, a mixture."""
