"""A network in JAX."""
import jax
import jax.numpy as jnp

weights = {"one": jnp.zeros((784, 512)), "two": jnp.zeros((512, 10))}


def loss(weights, x, y):
    out = jax.nn.relu(x @ weights["one"]) @ weights["two"]
    return -jnp.mean(jax.nn.log_softmax(out)[jnp.arange(len(y)), y])


step = jax.jit(jax.value_and_grad(loss))
for i in range(10):
    value, slope = step(weights, jnp.ones((128, 784)), jnp.zeros(128, int))
    weights = jax.tree.map(lambda w, g: w - 0.1 * g, weights, slope)
    print(float(value))
