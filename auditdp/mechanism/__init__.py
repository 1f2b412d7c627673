"""The audited code: protocol of a mechanism, optional methods, calls and laws."""
