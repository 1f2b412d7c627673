"""The game: the choice of a pair, forecasts from outputs, and the wealth of bets."""
