"""Records of audits: results, details of evidence, verdicts, budgets and baselines."""
