"""Neural networks as plain functions of flat parameter vectors, a whole population at once.

A vector holds, layer by layer, the weights and then the biases, in PyTorch's order.
"""

import math
from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np
from jax import Array

from .. import _checks, noise
from .._pytree import pytree, static

UNIFORM, HE, NORMAL = "uniform", "he", "normal"
INITIALISATIONS = {
    UNIFORM: "weights and biases uniform within ±1/√fan-in, PyTorch's habit",
    HE: "weights N(0, 2/fan-in), biases 0",
    NORMAL: "weights and biases N(0, std²)",
}
STD = 0.1  # of the initialisation "normal"


class Layer(NamedTuple):
    """An affine layer: the shape of its weights, outputs first; a bias for each output."""

    weights: tuple[int, ...]

    @property
    def fan_in(self) -> int:
        return math.prod(self.weights[1:])

    @property
    def num_genes(self) -> int:
        return math.prod(self.weights) + self.weights[0]


def unpack(layers: tuple[Layer, ...], parameters: Array) -> list[tuple[Array, Array]]:
    """Weights `f[..., *weights]` and biases `f[..., outputs]` of each layer, of vectors `f[..., d]`."""
    num_genes = sum(layer.num_genes for layer in layers)
    if parameters.shape[-1:] != (num_genes,):
        raise ValueError(f"parameters must have {num_genes} genes, got shape {parameters.shape}")
    before, unpacked = 0, []
    for layer in layers:
        middle, end = before + layer.num_genes - layer.weights[0], before + layer.num_genes
        weights = parameters[..., before:middle].reshape(*parameters.shape[:-1], *layer.weights)
        unpacked.append((weights, parameters[..., middle:end]))
        before = end
    return unpacked


def initial(layers: tuple[Layer, ...], key: Any, n: int, how: str = UNIFORM, std: float = STD) -> Array:
    """`n` parameter vectors `f[n, d]`, drawn as one of `INITIALISATIONS` says."""
    n = _checks.integer("n", n, 1)
    _checks.choice("init", how, tuple(INITIALISATIONS))
    rows = noise.fold_in(noise.key(key), jnp.arange(n), noise.BEFORE_THE_FIRST_GENERATION)
    words = noise.bits(rows, sum(layer.num_genes for layer in layers))
    if how == NORMAL:
        return noise.normal(words) * jnp.float32(std)
    bias = 1.0 if how == UNIFORM else 0.0
    scale = np.concatenate(
        [
            np.repeat([1.0, bias], [math.prod(layer.weights), layer.weights[0]]) / math.sqrt(layer.fan_in)
            for layer in layers
        ]
    ).astype(np.float32)
    if how == HE:
        return noise.normal(words) * (math.sqrt(2) * scale)
    return (2 * noise.uniform(words) - 1) * scale


@pytree
class Policy:
    """Observation → Dense → ReLU → Dense: the paper's network for control. Its outputs are not normalised."""

    inputs: int = static()
    outputs: int = static()
    hidden: int = static(default=128)

    def __post_init__(self):
        for name in ("inputs", "outputs", "hidden"):
            _checks.integer(name, getattr(self, name), 1)

    @property
    def layers(self) -> tuple[Layer, ...]:
        return Layer((self.hidden, self.inputs)), Layer((self.outputs, self.hidden))

    @property
    def num_genes(self) -> int:
        return sum(layer.num_genes for layer in self.layers)

    def init(self, key: Any, n: int, how: str = UNIFORM, std: float = STD) -> Array:
        """`n` first parameter vectors, `f[n, d]`; `how` is one of `INITIALISATIONS`."""
        return initial(self.layers, key, n, how, std)

    def __call__(self, parameters: Array, observation: Array) -> Array:
        """Outputs `f[..., E, outputs]` for observations `f[..., E, inputs]` of policies `f[..., d]`.

        E is what a policy sees at once, any number of axes or none.
        """
        policies = parameters.shape[:-1]
        if observation.shape[: len(policies)] != policies or observation.shape[-1:] != (self.inputs,):
            raise ValueError(
                f"observation must have shape {(*policies, '...', self.inputs)} for {policies} policies, "
                f"got {observation.shape}"
            )
        x = observation.reshape(*policies, -1, self.inputs)
        (first, first_bias), (second, second_bias) = unpack(self.layers, parameters)
        x = jnp.maximum(jnp.einsum("...ei,...hi->...eh", x, first, precision="highest") + first_bias[..., None, :], 0)
        x = jnp.einsum("...eh,...oh->...eo", x, second, precision="highest") + second_bias[..., None, :]
        return x.reshape(*observation.shape[:-1], self.outputs)
