"""Neural networks as plain functions of flat parameter vectors, a whole population at once.

A vector holds, layer by layer, the weights and then the biases, in PyTorch's order.
"""

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from functools import reduce
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array, lax

from .. import _checks, noise
from .._pytree import pytree, static

UNIFORM, HE, NORMAL = "uniform", "he", "normal"
INITIALISATIONS = {
    UNIFORM: "weights and biases uniform within ±1/√fan-in, PyTorch's habit",
    HE: "weights N(0, 2/fan-in), biases 0",
    NORMAL: "weights and biases N(0, std²)",
}
STD = 0.1  # of the initialisation "normal"
UNIT, STANDARDISED = "unit", "standardised"
PIXELS = {UNIT: "pixels from 0 to 1", STANDARDISED: "pixels from 0 to 1, less 0.1307, over 0.3081"}
# Mean and deviation of MNIST's pixels. The paper's authors take them for both sets, as their program tells:
# github.com/akarshkumar0101/evolved-neuroevolution
_MEAN, _DEVIATION = np.float32(0.1307), np.float32(0.3081)


class Layer(NamedTuple):
    """An affine layer: the shape of its weights, outputs first; a bias for each output."""

    weights: tuple[int, ...]

    @property
    def num_genes(self) -> int:
        return math.prod(self.weights) + self.weights[0]


class Network(ABC):
    """What follows from a network's layers."""

    @property
    @abstractmethod
    def layers(self) -> tuple[Layer, ...]: ...

    @property
    def num_genes(self) -> int:
        return sum(layer.num_genes for layer in self.layers)

    def unpack(self, parameters: Any) -> list[tuple[Any, Any]]:
        """Weights `f[..., *weights]` and biases `f[..., outputs]` of each layer, of vectors `f[..., d]`."""
        _checks.solutions("parameters", parameters, self.num_genes)
        before, unpacked = 0, []
        for layer in self.layers:
            middle, end = before + layer.num_genes - layer.weights[0], before + layer.num_genes
            weights = parameters[..., before:middle].reshape(*parameters.shape[:-1], *layer.weights)
            unpacked.append((weights, parameters[..., middle:end]))
            before = end
        return unpacked

    def init(self, key: Any, n: int, how: str = UNIFORM, std: float = STD) -> Array:
        """`n` first parameter vectors, `f[n, d]`; `how` is one of `INITIALISATIONS`."""
        n = _checks.integer("n", n, 1, most=_checks.MOST)
        _checks.choice("init", how, tuple(INITIALISATIONS))
        rows = noise.fold_in(noise.key(key), jnp.arange(n), noise.BEFORE_THE_FIRST_GENERATION)
        words = noise.bits(rows, self.num_genes)
        if how == NORMAL:
            return noise.normal(words) * jnp.float32(std)
        bias = 1.0 if how == UNIFORM else 0.0
        sizes = [(layer.num_genes - layer.weights[0], layer.weights[0]) for layer in self.layers]
        limits = [np.array([1.0, bias]) / math.sqrt(math.prod(layer.weights[1:])) for layer in self.layers]
        scale = np.repeat(np.ravel(limits), np.ravel(sizes)).astype(np.float32)
        if how == HE:
            return noise.normal(words) * (math.sqrt(2) * scale)
        return (2 * noise.uniform(words) - 1) * scale


@pytree
class Policy(Network):
    """Observation → Dense → ReLU → Dense: the paper's network for control. Its outputs are not normalised."""

    inputs: int = static()
    outputs: int = static()
    hidden: int = static(default=128)

    def __post_init__(self):
        for name in ("inputs", "outputs", "hidden"):
            _checks.integer(name, getattr(self, name), 1, most=_checks.MOST)

    @property
    def layers(self) -> tuple[Layer, ...]:
        return Layer((self.hidden, self.inputs)), Layer((self.outputs, self.hidden))

    def __call__(self, parameters: Array, observation: Array) -> Array:
        """Outputs `f[..., E, outputs]` for observations `f[..., E, inputs]` of policies `f[..., d]`.

        E is what a policy sees at once, any number of axes or none.
        """
        _checks.solutions("parameters", parameters, self.num_genes)
        _checks.solutions("observation", observation, self.inputs)
        policies = parameters.shape[:-1]
        if observation.shape[: len(policies)] != policies or observation.shape[-1:] != (self.inputs,):
            raise ValueError(
                f"observation must have shape {(*policies, '...', self.inputs)} for {policies} policies, "
                f"got {observation.shape}"
            )
        x = observation.reshape(*policies, -1, self.inputs)
        return self.forward(self.weights(parameters), x).reshape(*observation.shape[:-1], self.outputs)

    def weights(self, parameters: Array) -> tuple[Array, ...]:
        """What `forward` needs, inputs first: laid out once, where many observations follow one another."""
        (first, first_bias), (second, second_bias) = self.unpack(parameters)
        return first.swapaxes(-1, -2), first_bias[..., None, :], second.swapaxes(-1, -2), second_bias[..., None, :]

    def forward(self, weights: tuple[Array, ...], observation: Array) -> Array:
        """Outputs `f[..., E, outputs]` for observations `f[..., E, inputs]`."""
        first, first_bias, second, second_bias = weights
        hidden = jnp.maximum(jnp.matmul(observation, first, precision="highest") + first_bias, 0)
        return jnp.matmul(hidden, second, precision="highest") + second_bias


CLASSES = 10
SIDE = 28  # of an image
SEEN = 22  # of it that the network sees: pooling leaves out rows and columns at the lower and right edge

_POOL = ((0, 0), (0, 1), (1, 0), (1, 1))  # the places of a pooling window
_AT_A_TIME_ON_A_CPU = 100  # images: what a layer makes of them for one network stays in a cache
_AT_A_TIME = 1000  # elsewhere, with all networks side by side
_AT_A_TIME_BY_KERNELS = 5120


@pytree
class ConvNet(Network):
    """The paper's network for images: three 3×3 convolutions of 10 channels, each followed by 2×2 max-pooling and
    ReLU, then Dense 10, ReLU, Dense 10. No padding: 28 → 13 → 5 → 1. Its outputs are not normalised.

    The last pooling window needs the upper left 22×22 pixels only: the rest is not computed.
    """

    @property
    def layers(self) -> tuple[Layer, ...]:
        shapes = (10, 1, 3, 3), (10, 10, 3, 3), (10, 10, 3, 3), (10, 10), (CLASSES, 10)
        return tuple(map(Layer, shapes))

    def __call__(self, parameters: Array, images: Array) -> Array:
        """Outputs `f[N, 10, n]` of networks `f[N, d]` for images `f[22, 22, n]`, as `seen` gives them.

        On an NVIDIA GPU by kernels of our own. Elsewhere a convolution with its pooling is a product, network by
        network on a CPU; images go through it some at a time, which bounds the memory it needs.
        """
        if images.shape[:-1] != (SEEN, SEEN) or images.ndim != 3:
            raise ValueError(f"images must have shape ({SEEN}, {SEEN}, n), got {images.shape}")
        layers = self.unpack(parameters)
        some, most = _way_to_compute()
        whole, left = divmod(images.shape[-1], most)
        parts = []
        if whole:
            chunks = images[..., : whole * most].reshape(SEEN, SEEN, whole, most).transpose(2, 0, 1, 3)
            found = lax.map(lambda chunk: some(layers, chunk), chunks)
            parts.append(found.transpose(1, 2, 0, 3).reshape(len(parameters), CLASSES, -1))
        if left:
            parts.append(some(layers, images[..., whole * most :]))
        return jnp.concatenate(parts, axis=-1)


def _way_to_compute() -> tuple[Callable[[Any, Array], Array], int]:
    """What computes the outputs of all networks for some images, and for how many at a time."""
    if jax.default_backend() == "cpu":
        return _one_by_one, _AT_A_TIME_ON_A_CPU
    from . import _conv_kernel  # noqa: PLC0415 - it takes long to import, and a CPU has no use for it

    if _conv_kernel.usable():
        return _conv_kernel.outputs, _AT_A_TIME_BY_KERNELS
    return jax.vmap(_outputs, in_axes=(0, None)), _AT_A_TIME


def seen(images: Any, pixels: str = UNIT) -> Array:
    """What the network sees of images `u8[n, 28, 28]`: `f[22, 22, n]`, scaled as one of `PIXELS` says."""
    _checks.choice("pixels", pixels, tuple(PIXELS))
    images = _checks.array("images", images, f"u8[n, {SIDE}, {SIDE}]")
    if images.ndim != 3 or images.shape[1:] != (SIDE, SIDE) or images.dtype != np.uint8:
        raise ValueError(f"images must be u8[n, {SIDE}, {SIDE}], got {images.dtype} of shape {images.shape}")
    unit = np.ascontiguousarray(images[:, :SEEN, :SEEN].transpose(1, 2, 0)).astype(np.float32) / 255
    return jnp.asarray(unit if pixels == UNIT else (unit - _MEAN) / _DEVIATION)


@jax.custom_batching.sequential_vmap  # several populations one after the other too
def _one_by_one(layers: list[tuple[Array, Array]], images: Array) -> Array:
    return lax.map(lambda layers: _outputs(layers, images), layers)


def _outputs(layers: list[tuple[Array, Array]], images: Array) -> Array:
    """`f[10, n]` of one network for images `f[22, 22, n]`. Images are the last axis throughout, which vectorises."""
    first, second, third, hidden, last = layers
    x = _convolution(_convolution(_first_convolution(images, *first), *second), *third)
    x = jnp.maximum(_dense(x.reshape(len(x), -1), *hidden), 0)
    return _dense(x, *last)


def _first_convolution(images: Array, weights: Array, biases: Array) -> Array:
    """Convolution, pooling and ReLU of one channel `f[h, w, n]`: a sum so short that fused it beats a product.

    Channel by channel in a loop, or XLA would compute it again for every patch of the next layer that it is part of.
    """
    h, w = (size - 2 for size in images.shape[:2])

    def channel(taps: Array, bias: Array) -> Array:
        def at(down: int, right: int) -> Array:
            """The convolution at one place of every pooling window."""
            terms = [
                taps[0, i, j] * images[down + i : down + i + h : 2, right + j : right + j + w : 2]
                for i in range(3)
                for j in range(3)
            ]
            return sum(terms[1:], terms[0])

        return _pooled([at(*place) for place in _POOL], bias)

    return lax.map(lambda layer: channel(*layer), (weights, biases))


def _convolution(x: Array, weights: Array, biases: Array) -> Array:
    """Convolution, pooling and ReLU of `f[channels, h, w, n]`, as one product.

    A pooling window's four places need a 4×4 patch. One product of the patches with the weights laid out in 4×4 four
    ways gives all four, and copies less than half of what patches of every place would.
    """
    channels, h, w, n = x.shape
    h, w = h // 2 - 1, w // 2 - 1  # of windows
    patches = [x[:, i : i + 2 * h : 2, j : j + 2 * w : 2] for i in range(4) for j in range(4)]
    patches = jnp.stack(patches, axis=1).reshape(16 * channels, h * w * n)
    laid_out = [jnp.pad(weights, ((0, 0), (0, 0), (i, 1 - i), (j, 1 - j))) for i, j in _POOL]
    found = _product(jnp.concatenate(laid_out).reshape(4 * len(weights), -1), patches)
    found = found.reshape(4, len(weights), h, w, n)
    return _pooled(list(found), biases[:, None, None, None])


def _pooled(places: Sequence[Any], biases: Any) -> Array:
    return jnp.maximum(reduce(jnp.maximum, places) + biases, 0)


def _dense(x: Array, weights: Array, biases: Array) -> Array:
    return _product(weights, x) + biases[:, None]


def _product(a: Array, b: Array) -> Array:
    """In full precision: parent and child are compared by small differences."""
    return jnp.matmul(a, b, precision="highest")
