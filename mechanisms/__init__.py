"""Reference implementations of mechanisms, each stating what its source claims."""
