"""Mutants: copies of any mechanism with one fault in its noise, and how many of them an audit refutes."""

from auditdp.mutation.mutants import Mutant, mutants

__all__ = ["Mutant", "mutants"]
