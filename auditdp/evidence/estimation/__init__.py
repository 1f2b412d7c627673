"""Estimation evidence: bets on means and variances."""
