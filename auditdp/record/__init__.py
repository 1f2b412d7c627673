"""What an audit leaves behind: results, their details, the verdict and the budget."""
