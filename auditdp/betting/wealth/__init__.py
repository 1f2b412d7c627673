"""Bets and wealth: from the odds of forecasters to a wealth against every level."""
