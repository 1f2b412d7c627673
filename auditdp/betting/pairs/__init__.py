"""Which pair is played: what a search, a trace and the calls so far say of each."""
