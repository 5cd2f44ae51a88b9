"""Classification of images by the paper's network: cross-entropy of whole populations of parameter vectors."""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from .. import _checks, noise
from .._pytree import pytree, static
from . import datasets, networks
from .networks import CLASSES, INITIALISATIONS, ConvNet

_SUBSET = np.uint32(2**32 - 1)  # the place below a run's key that its training images are drawn from


class Scores(NamedTuple):
    """Of N networks."""

    loss: Array  # f[N]  mean cross-entropy, natural logarithm
    accuracy: Array  # f[N]  share of images whose class has the highest output


@pytree
class Images:
    """Mean cross-entropy on some images. The same images for everyone: a child's value compares with its parent's."""

    images: Any  # f[22, 22, n], what `networks.seen` gives
    labels: Any  # i32[n]
    name: str = static(default="images")
    initialisation: str = static(default=networks.UNIFORM)  # one of `INITIALISATIONS`
    std: Any = networks.STD  # of the initialisation "normal"

    def __post_init__(self):
        images = _checks.shape("images", self.images, "f[22, 22, n]")
        labels = _checks.shape("labels", self.labels, "i[n]")
        if len(images) != 3 or labels != images[-1:]:
            raise ValueError(f"images and labels must be f[22, 22, n] and i[n], got shapes {images} and {labels}")
        _checks.choice("initialisation", self.initialisation, tuple(INITIALISATIONS))
        _checks.real("std", self.std, 0.0)

    @property
    def num_genes(self) -> int:
        return ConvNet().num_genes

    def init(self, key: Any, n: int) -> Array:
        """`n` first parameter vectors, `f[n, d]`."""
        return ConvNet().init(key, n, self.initialisation, self.std)

    def __call__(self, population: Array, key: noise.Key | None = None) -> Array:
        """Losses `f[N]` of networks `f[N, d]`. Deterministic: `key` is ignored."""
        return jnp.mean(_cross_entropy(ConvNet()(population, self.images), self.labels), axis=-1)

    def scores(self, population: Array) -> Scores:
        """Loss and accuracy of networks `f[N, d]`."""
        outputs = ConvNet()(population, self.images)
        right = jnp.argmax(outputs, axis=-2) == self.labels
        return Scores(jnp.mean(_cross_entropy(outputs, self.labels), axis=-1), jnp.mean(right, axis=-1))


def get(
    name: str,
    part: str = "train",
    images: int | None = None,
    key: Any = 0,
    initialisation: str = networks.UNIFORM,
    std: Any = networks.STD,
    pixels: str = networks.UNIT,
) -> Images:
    """The problem of a part of a set ("mnist", "fashion-mnist"): all its images, or as many as asked for, drawn by key.

    A smaller draw of a key is the beginning of a larger one. `pixels` is one of `networks.PIXELS`, for training and
    test images alike: "standardised", with `initialisation="normal"`, is how the paper's authors ran it.
    """
    return problem_of(datasets.load(name, part), name, images, key, initialisation, std, pixels)


def problem_of(
    data: datasets.Labelled,
    name: str = "images",
    images: int | None = None,
    key: Any = 0,
    initialisation: str = networks.UNIFORM,
    std: Any = networks.STD,
    pixels: str = networks.UNIT,
) -> Images:
    """The problem of images `u8[n, 28, 28]` with labels 0 … 9, or of as many as asked for, drawn by key."""
    if not isinstance(data, datasets.Labelled):
        raise TypeError(f"data must be a datasets.Labelled, got {type(data).__name__}")
    if data.labels.size and data.labels.max() >= CLASSES:
        raise ValueError(f"labels must be 0 … {CLASSES - 1}, got {data.labels.max()}")
    chosen = slice(None) if images is None else subset(key, images, len(data.labels))
    seen = networks.seen(data.images[chosen], pixels)
    return Images(seen, jnp.asarray(data.labels[chosen].astype(np.int32)), name, initialisation, std)


def subset(key: Any, images: int, available: int) -> np.ndarray:
    """Which `images` of those available are a run's, `i[n]`."""
    images = _checks.integer("images", images, 1, _checks.integer("available", available, 1, most=_checks.MOST))
    words = noise.bits(noise.fold_in(noise.key(key), _SUBSET), available)
    return np.argsort(np.asarray(words), kind="stable")[:images]


def _cross_entropy(outputs: Array, labels: Array) -> Array:
    """`f[N, n]` of outputs `f[N, 10, n]`."""
    chosen = jnp.arange(CLASSES)[:, None] == labels
    return jax.nn.logsumexp(outputs, axis=-2) - jnp.sum(jnp.where(chosen, outputs, 0.0), axis=-2)
