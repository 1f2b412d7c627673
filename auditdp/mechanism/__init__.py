"""The protocol of a mechanism, its optional methods, its calls, and its laws."""
