"""Runs on several machines: shards and a cluster."""
