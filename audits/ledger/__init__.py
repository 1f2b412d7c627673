"""The ledger of published claims: statements of papers beside what a run found."""
