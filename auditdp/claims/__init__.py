"""Claims of privacy, their curves and dominating pairs, and of estimates."""
