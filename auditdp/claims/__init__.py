"""Claims about privacy, with their curves and dominating pairs, and about estimates."""
