"""Game evidence: opening, playing, confirming, and the words for what was found."""
