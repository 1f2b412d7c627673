"""``auditdp run --compare``: the code of another revision beside that of the working tree, on the same inputs."""
