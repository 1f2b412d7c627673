"""Tiny mechanisms and deliberately broken twins, so that an installation can be tried and can test itself."""

from auditdp.testing.mechanisms import GaussianMechanism, LaplaceMechanism, LeakyResponse, Response, SharedNoise

__all__ = ["GaussianMechanism", "LaplaceMechanism", "LeakyResponse", "Response", "SharedNoise"]
