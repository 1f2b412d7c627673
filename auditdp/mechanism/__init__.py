"""What is audited: the protocol of a mechanism, what it offers, its calls and its laws."""
