"""Composition of equal and of unequal mechanisms, and the theorems that papers quote."""
