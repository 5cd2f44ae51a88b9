"""The convolutional network on an NVIDIA GPU: three kernels, written in Pallas for Triton.

XLA would write what a convolution makes of all images for all networks to memory before it pools it. Here a program
computes the pooled outputs of one window, all ten channels, for a block of images of one network: what it reads it uses
many times, and only pooled values are written.
"""

from functools import cache, partial, reduce
from typing import Any

import jax
import jax.numpy as jnp
from jax import Array, lax
from jax.experimental import pallas as pl

from .. import kernels

CHANNELS = 10
BLOCK, WARPS = 128, 2  # images of a program, and its threads / 32

_POOL = ((0, 0), (0, 1), (1, 0), (1, 1))  # the places of a pooling window
_TAPS = tuple((i, j) for i in range(3) for j in range(3))

Layers = list[tuple[Array, Array]]


@cache
def usable() -> bool:
    """Whether these kernels can be compiled here."""
    return kernels.compiles(_compile)


def _compile() -> None:
    shapes = [(10, 1, 3, 3), (10, 10, 3, 3), (10, 10, 3, 3), (10, 10), (10, 10)]
    layers = [tuple(jax.ShapeDtypeStruct((1, *s), jnp.float32) for s in (shape, shape[:1])) for shape in shapes]
    jax.jit(outputs).lower(layers, jax.ShapeDtypeStruct((22, 22, 1), jnp.float32)).compile()


def outputs(layers: Layers, images: Array, interpret: bool = False) -> Array:
    """`f[N, 10, n]` of N networks for images `f[22, 22, n]`."""
    (first, *_), (second, *_), (third, *_), *dense = layers
    networks, n = len(first), images.shape[-1]
    padded = -(-n // BLOCK) * BLOCK
    images = jnp.pad(images, ((0, 0), (0, 0), (0, padded - n)))
    biases = [bias for _, bias in layers]
    call = partial(_call, networks=networks, images=padded, interpret=interpret)
    x = call(_first_kernel, 10, images, [first.reshape(networks, 10, 9), biases[0]], shared=True)
    x = call(_second_kernel, 4, x, [second.reshape(networks, 10, 10, 9), biases[1]])
    heads = [third.reshape(networks, 10, 10, 9), biases[2], dense[0][0], biases[3], dense[1][0], biases[4]]
    return call(_last_kernel, 1, x, heads)[:, :, 0, 0, :n]


def _call(
    kernel: Any, side: int, x: Array, weights: list[Array], networks: int, images: int, interpret: bool, shared=False
) -> Array:
    """`f[N, 10, side, side, n]` from `x`, all of which but the images is at hand for every window."""
    rest = x.shape[:-1] if shared else x.shape[1:-1]
    zeros = (0,) * len(rest)
    if shared:
        spec = pl.BlockSpec((*rest, BLOCK), lambda window, net, block: (*zeros, block))
    else:
        spec = pl.BlockSpec((None, *rest, BLOCK), lambda window, net, block: (net, *zeros, block))

    def of_a_network(array: Array) -> pl.BlockSpec:
        return pl.BlockSpec((None, *array.shape[1:]), lambda window, net, block: (net, *(0,) * (array.ndim - 1)))

    found = pl.pallas_call(
        kernel,
        # The first changes fastest: programs that run together read overlapping patches of the same images.
        grid=(side * side, networks, images // BLOCK),
        in_specs=[spec, *map(of_a_network, weights)],
        out_specs=pl.BlockSpec((None, CHANNELS, None, BLOCK), lambda window, net, block: (net, 0, window, block)),
        out_shape=jax.ShapeDtypeStruct((networks, CHANNELS, side * side, images), jnp.float32),
        interpret=interpret,
        **({} if interpret else _compiler_options()),
    )(x, *weights)
    return found.reshape(networks, CHANNELS, side, side, images)


def _compiler_options() -> dict[str, Any]:
    from jax.experimental.pallas import triton  # noqa: PLC0415 - absent where there is no GPU

    return {"compiler_params": triton.CompilerParams(num_warps=WARPS, num_stages=1)}


def _first_kernel(x, weights, biases, found) -> None:
    """One input channel, `f[22, 22, block]`: a pooling window and a channel at a time."""
    window = pl.program_id(0)
    patch = _patch(x, window // 10, window % 10)
    for channel in range(CHANNELS):
        taps = [weights[channel, t] for t in range(9)]
        places = [sum(taps[t] * patch[a + i][b + j] for t, (i, j) in enumerate(_TAPS)) for a, b in _POOL]
        found[channel, :] = _pooled(places, biases[channel])


def _second_kernel(x, weights, biases, found) -> None:
    window = pl.program_id(0)
    pooled = _convolution(x, weights, biases, window // 4, window % 4)
    for channel in range(CHANNELS):
        found[channel, :] = pooled[channel]


def _last_kernel(x, weights, biases, hidden, hidden_biases, last, last_biases, found) -> None:
    features = _convolution(x, weights, biases, 0, 0)
    features = [jnp.maximum(value, 0) for value in _dense(features, hidden, hidden_biases)]
    for channel, value in enumerate(_dense(features, last, last_biases)):
        found[channel, :] = value


def _convolution(x, weights, biases, row, column) -> list[Array]:
    """Convolution, pooling and ReLU of `f[10, h, w, block]` at a window: `f[block]` of each channel.

    Every value of the window's 4×4 patch is read once, and used by ten channels at four places.
    """

    def add(source: Array, sums: tuple[Array, ...]) -> tuple[Array, ...]:
        patch = _patch(x, row, column, source)
        added = []
        for channel in range(CHANNELS):
            taps = [weights[channel, source, t] for t in range(9)]
            for place, (a, b) in enumerate(_POOL):
                total = sums[4 * channel + place]
                for t, (i, j) in enumerate(_TAPS):
                    total += taps[t] * patch[a + i][b + j]
                added.append(total)
        return tuple(added)

    zeros = tuple(jnp.zeros(x.shape[-1], jnp.float32) for _ in range(4 * CHANNELS))
    sums = lax.fori_loop(0, CHANNELS, add, zeros)
    return [_pooled(sums[4 * channel : 4 * channel + 4], biases[channel]) for channel in range(CHANNELS)]


def _patch(x, row, column, *channel) -> list[list[Array]]:
    """The 4×4 values `f[block]` that a pooling window needs."""
    return [[x[(*channel, 2 * row + i, 2 * column + j, slice(None))] for j in range(4)] for i in range(4)]


def _pooled(places, bias) -> Array:
    return jnp.maximum(reduce(jnp.maximum, places) + bias, 0)


def _dense(x: list[Array], weights, biases) -> list[Array]:
    return [sum(weights[o, i] * x[i] for i in range(len(x))) + biases[o] for o in range(CHANNELS)]
