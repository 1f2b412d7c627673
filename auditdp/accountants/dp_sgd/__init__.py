"""DP-SGD: one accountant for each way in which batches are drawn, and the distributions of losses that they share."""
