"""What the audits of a repository are known to show, in a file that is reviewed, and what of it a run changes."""
