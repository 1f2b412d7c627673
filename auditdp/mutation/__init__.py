"""Broken twins derived from any mechanism, and how many of them an audit refutes."""

from auditdp.mutation.mutants import Mutant, mutants

__all__ = ["Mutant", "mutants"]
