"""The parts of the game: wealth, forecasters, and which pair to play next."""
