"""The ledger of published claims: statements of papers with the findings of a run."""
