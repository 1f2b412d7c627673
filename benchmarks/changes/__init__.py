"""How much of what makes privacy worse the check of CI catches: changes of twenty small packages."""
