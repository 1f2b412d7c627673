"""Runs over time: what is known of the audits of a repository."""
