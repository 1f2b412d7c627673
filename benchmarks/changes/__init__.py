"""How much of what makes privacy worse the check of CI catches: forty changes of eight small packages."""
