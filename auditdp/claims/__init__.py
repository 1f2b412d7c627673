"""Claims: notions of differential privacy, curves, dominating pairs, and promises about estimates."""
