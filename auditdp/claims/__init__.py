"""What is claimed: notions of differential privacy, curves, the pairs that dominate them, and promises about estimates."""
