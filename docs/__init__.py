"""The documentation site: assembly, pictures, and the execution of its code blocks."""
