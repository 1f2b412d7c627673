"""The documentation site: what it is assembled from, its pictures, and how its code blocks are run."""
