"""A JAX simulation whose gradient keeps few states: ``custom_vjp`` around an adjoint run.

    python adjoint_jax.py
"""

import jax
import jax.numpy as jnp
import numpy as np

import esker.adjoint as ea

STEPS = 200


@jax.jit
def step(u):
    return u + 0.1 * (jnp.roll(u, 1) - 2 * u + jnp.roll(u, -1)) - 0.01 * u**3


@jax.jit
def pull_back(u, a):
    return jax.vjp(step, u)[1](a)[0]


class Model:
    """The state and its adjoint as NumPy arrays, the steps in JAX."""

    def __init__(self, u, a_end=None):
        self.u, self.a_end, self.a = np.array(u), a_end, np.zeros_like(u)

    def state(self):
        return {"u": self.u}

    def adjoint(self):
        return {"a": self.a}

    def forward(self, n0, n1):
        u = jnp.asarray(self.u)
        for _ in range(n0, n1):
            u = step(u)
        self.u[:] = u
        if n1 == STEPS and self.a_end is not None:
            self.a[:] = self.a_end

    def reverse(self, n1, n0):
        self.a[:] = pull_back(jnp.asarray(self.u), jnp.asarray(self.a))


@jax.custom_vjp
def simulate(u):
    model = Model(u)
    model.forward(0, STEPS)
    return jnp.asarray(model.u)


def simulate_forward(u):
    return simulate(u), u


def simulate_back(u, a_end):
    model = Model(u, np.asarray(a_end))
    ea.run(model, STEPS, ea.Store(ram=10 * model.u.nbytes + 4000))
    return (jnp.asarray(model.a),)


simulate.defvjp(simulate_forward, simulate_back)

if __name__ == "__main__":
    u = jnp.sin(jnp.arange(500.0) / 20)

    def plain(u):
        for _ in range(STEPS):
            u = step(u)
        return u

    ours = jax.grad(lambda u: jnp.sum(simulate(u) ** 2))(u)
    theirs = jax.grad(lambda u: jnp.sum(plain(u) ** 2))(u)
    print("largest difference from JAX's own gradient:", float(jnp.max(jnp.abs(ours - theirs))))
