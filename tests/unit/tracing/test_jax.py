"""The contract with jax.

Samplers are noise, and a key that is used twice is one draw.
"""

import numpy as np
import pytest

from auditdp import GaussianDP, PureDP
from tests.unit.tracing.toys import certain_kinds, pair_of, record

jax = pytest.importorskip(
    "jax", reason="jax is in the environment of the benchmark (`--group bench`)"
)
FIRST = [1.0, 2.0]
SECOND = [1.0, 3.0]


def key(rng):
    return jax.random.key(int(rng.integers(2**31)))


def gaussian(v, rng):
    return jax.numpy.asarray(v) + 2.0 * jax.random.normal(key(rng), (2,))


@jax.jit
def compiled_step(v, key):
    return v + 2.0 * jax.random.normal(key, v.shape)


def compiled(v, rng):
    return compiled_step(jax.numpy.asarray(v), key(rng))


def by_a_function(v, rng):
    return jax.numpy.add(jax.numpy.asarray(v), 2.0 * jax.random.normal(key(rng), (2,)))


@pytest.mark.parametrize("function", [gaussian, compiled, by_a_function])
def test_an_array_with_noise_is_a_release(function):
    pair = pair_of(function, FIRST, SECOND, GaussianDP(9.0))
    plain = function(FIRST, np.random.default_rng(0))
    assert pair.extent == "full"
    assert pair.differ is None
    assert pair.level == pytest.approx(0.5)
    np.testing.assert_allclose(pair.first.output, plain, rtol=1e-6)
    assert isinstance(pair.first.output, jax.Array)


def test_the_noise_of_jax_privacy_is_a_release():
    addition = pytest.importorskip("jax_privacy.noise_addition")

    def privatized(v, rng):
        privatizer = addition.gaussian_privatizer(stddev=2.0, prng_key=key(rng))
        gradients = {"w": jax.numpy.asarray(v)}
        return privatizer.update(gradients, privatizer.init(gradients))[0]["w"]

    pair = pair_of(privatized, FIRST, SECOND, GaussianDP(9.0))
    assert pair.extent == "full"
    assert pair.level == pytest.approx(0.5)


def test_a_key_that_is_used_twice_is_reuse():
    def twice(v, rng):
        k, v = key(rng), jax.numpy.asarray(v)
        return jax.random.laplace(k, (2,)) + v, jax.random.laplace(k, (2,)) - v

    assert "reuse" in certain_kinds(pair_of(twice, FIRST, SECOND, PureDP(9.0)))


def test_a_coin_has_its_probability():
    def coin(p, rng):
        return bool(jax.random.bernoulli(key(rng), p))

    pair = pair_of(coin, 0.25, 0.75, PureDP(2.0))
    assert pair.outcomes.epsilon == pytest.approx(np.log(3))


def test_noise_that_a_function_takes_is_opaque():
    def clipped(v, rng):
        noise = jax.numpy.clip(jax.random.normal(key(rng), (2,)), -1, 1)
        return jax.numpy.asarray(v) + noise

    pair = pair_of(clipped, FIRST, SECOND, PureDP(2.0))
    assert pair.extent != "full"
    assert not pair.proposes


def test_after_a_run_jax_is_as_before():
    def state():
        return jax.random.normal, jax.numpy.add, jax.config.jax_disable_jit

    before = state()
    record(gaussian, FIRST)
    assert state() == before
