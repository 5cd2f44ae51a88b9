"""The noise: distribution, independence, determinism. Seeds are fixed, so that a pass is a pass for ever.

A statistical check has the chance stated beside it of failing a perfect generator; they add up to about 2%.
"""

from collections.abc import Callable
from functools import cache
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from jax import Array
from scipy import special, stats

from gesmr import GA, Fixed, _elementary, noise
from gesmr.problems import functions

EXTREMES = np.array([0, 1, 2**31 - 1, 2**31, 2**32 - 1], np.uint32)
LARGEST_NORMAL = 6.67
NO_KEY = noise.Key(jnp.uint32(0), jnp.uint32(0))


def assert_like_standard_normals(scores: Any, p: float) -> None:
    """Each of `scores` is within what a standard normal exceeds, on either side, with probability `p`."""
    scores = np.asarray(scores)
    assert np.isfinite(scores).all()
    assert np.abs(scores).max() < stats.norm.isf(p / 2), scores


def words_of(keys: noise.Key, genes: int) -> np.ndarray:
    return np.asarray(jax.jit(noise.bits, static_argnums=1)(keys, genes))


def child_keys(run: noise.Key, slots: int, generations: int) -> noise.Key:
    """Keys `u32[slots, generations]` of the first children of the first generations."""
    return noise.fold_in(run, jnp.arange(slots)[:, None], jnp.arange(generations))


def seed_keys(seeds: int) -> noise.Key:
    """The keys of seeds 0, 1, 2, …, all at once (`test_key_of_an_integer` holds this to `noise.key`)."""
    return noise.fold_in(NO_KEY, jnp.arange(seeds))


def random_words(seed: int, *shape: int) -> np.ndarray:
    return np.random.default_rng(seed).integers(0, 2**32, shape, np.uint32)


# ------------------------------------------------------------------------------------------------ the distribution


@pytest.fixture(scope="module")
def sorted_normals() -> np.ndarray:
    """The noise of 512 children with 1024 genes over 64 generations, 3.4e7 numbers."""
    keys = child_keys(noise.key(2024), 512, 64)
    draw = jax.jit(lambda keys: noise.normal(noise.bits(keys, 1024)))
    return np.sort(np.asarray(draw(keys)).ravel())


def test_moments_of_normals(sorted_normals: np.ndarray):
    """Mean, variance, skewness, kurtosis: p = 1e-4 each."""
    n = len(sorted_normals)
    sums = np.zeros(4)
    for chunk in np.array_split(sorted_normals, 64):
        z = chunk.astype(np.float64)
        sums += [z.sum(), (z**2 - 1).sum(), (z**3).sum(), (z**4 - 3).sum()]
    assert_like_standard_normals(sums / np.sqrt(n * np.array([1, 2, 15, 96])), 1e-4)


@pytest.mark.parametrize("sigmas", [1, 2, 3, 4, 5])
def test_tails_of_normals(sorted_normals: np.ndarray, sigmas: int):
    """How many lie beyond 1 … 5 on each side: p = 1e-4 each of 10."""
    n = len(sorted_normals)
    below = np.searchsorted(sorted_normals, np.float32(-sigmas))
    above = n - np.searchsorted(sorted_normals, np.float32(sigmas), side="right")
    for count in (below, above):
        assert stats.binomtest(int(count), n, float(stats.norm.sf(sigmas))).pvalue > 1e-4


def test_normals_fall_evenly_into_a_thousand_bins(sorted_normals: np.ndarray):
    """Chi-square, p = 1e-4."""
    edges = stats.norm.ppf(np.arange(1, 1000) / 1000).astype(np.float32)
    counts = np.diff(np.searchsorted(sorted_normals, edges), prepend=0, append=len(sorted_normals))
    assert 1e-4 < stats.chisquare(counts).pvalue < 1 - 1e-4


def test_kolmogorov_smirnov(sorted_normals: np.ndarray):
    """The largest distance of the two distribution functions, p = 1e-4."""
    n = len(sorted_normals)
    distance = 0.0
    for start in range(0, n, 2**20):
        expected = special.ndtr(sorted_normals[start : start + 2**20].astype(np.float64))
        rank = start + np.arange(len(expected))
        distance = max(distance, (expected - rank / n).max(), ((rank + 1) / n - expected).max())
    assert stats.kstwobign.sf(distance * np.sqrt(n)) > 1e-4


def test_uniforms_have_the_moments_of_the_uniform_distribution():
    """Mean, variance, and a chi-square over 4096 bins, of 4e6: p = 1e-4 each."""
    u = np.asarray(jax.jit(noise.uniform)(words_along("seeds"))).ravel()
    centred = u.astype(np.float64) - 0.5
    scores = [centred.sum() / np.sqrt(u.size / 12), (centred**2 - 1 / 12).sum() / np.sqrt(u.size / 180)]
    assert_like_standard_normals(scores, 1e-4)
    counts = np.bincount((u * 4096).astype(np.int64), minlength=4096)
    assert counts.shape == (4096,)
    assert 1e-4 < stats.chisquare(counts).pvalue < 1 - 1e-4


@pytest.mark.slow
def test_normal_of_every_word():
    """All 2^32 words. They form a lattice, so that together they are closer to the distribution than as many draws.

    Not statistical: four moments to 1e-5, and how many lie beyond 1 … 6 on each side to 1 in 1000 or 3 words.
    """
    part, parts = 2**18, 2**6

    def summary(start: Array) -> tuple[Array, ...]:
        z = noise.normal(start + jnp.arange(part, dtype=jnp.uint32)).reshape(-1, 2**10)
        powers = jnp.stack([z, z * z, z**3, z**4])
        beyond = jnp.stack([side * z > sigmas for side in (-1, 1) for sigmas in range(1, 7)])
        return jnp.isfinite(z).all(), jnp.abs(z).max(), powers.sum(-1), beyond.sum((1, 2))

    summaries = jax.jit(lambda starts: jax.lax.map(summary, starts))
    moments, tails, largest = np.zeros(4), np.zeros(12), 0.0
    for starts in np.arange(0, 2**32, part).astype(np.uint32).reshape(-1, parts):
        finite, peaks, powers, beyond = summaries(starts)
        assert finite.all()
        largest = max(largest, float(peaks.max()))
        moments += np.asarray(powers, np.float64).sum((0, 2)) / 2**32
        tails += np.asarray(beyond, np.float64).sum(0)
    assert 6.3 < largest <= LARGEST_NORMAL
    np.testing.assert_allclose(moments, [0, 1, 0, 3], rtol=0, atol=1e-5)
    expected = 2**32 * stats.norm.sf(np.arange(1, 7))
    below, above = tails.reshape(2, 6)
    np.testing.assert_allclose([below, above], [expected, expected], rtol=1e-3, atol=3)


# --------------------------------------------------------------------------------------------------- independence

LAGS = (1, 2, 3, 4, 5, 7, 8, 10, 16, 31, 32, 64, 100, 127)
AXES = ("genes", "children", "generations", "seeds", "split keys", "consecutive jax keys")


@cache
def words_along(axis: str) -> np.ndarray:
    """Words `u32[128, 2^15]`: along the first axis only the one coordinate changes."""
    length, slots, generations, genes = 128, 64, 16, 32
    if axis == "genes":
        return words_of(child_keys(noise.key(11), 128, 256), length).reshape(-1, length).T
    if axis == "children":
        return words_of(child_keys(noise.key(12), length, 1024), genes).reshape(length, -1)
    if axis == "generations":
        keys = jax.tree.map(jnp.transpose, child_keys(noise.key(13), 1024, length))
        return words_of(keys, genes).reshape(length, -1)
    if axis == "seeds":
        runs = seed_keys(length)
    elif axis == "split keys":
        runs = jax.vmap(noise.key)(jax.random.split(jax.random.key(0), length))
    else:
        runs = jax.vmap(lambda seed: noise.key(jax.random.key(seed)))(jnp.arange(length))
    places = jax.vmap(lambda run: child_keys(run, slots, generations))(runs)
    return words_of(places, genes).reshape(length, -1)


@pytest.mark.parametrize("axis", AXES)
def test_no_correlation_of_neighbours(axis: str):
    """Products of values, squares and signs at 14 lags along 6 axes, 252 checks on up to 4e6 pairs: p = 1e-5 each."""
    z = np.asarray(jax.jit(noise.normal)(words_along(axis)))
    scores = []
    for variable in (z, (z * z - 1) / np.float32(np.sqrt(2)), np.sign(z)):
        for lag in LAGS:
            pairs = variable[lag:].size
            scores.append(np.vdot(variable[lag:], variable[:-lag]) / np.sqrt(pairs))
    assert_like_standard_normals(scores, 1e-5)


@pytest.mark.parametrize("axis", AXES)
@pytest.mark.parametrize("shift", [0, 13, 26])
def test_pairs_of_neighbours_are_even(axis: str, shift: int):
    """Six bits (lowest, middle, highest) of a word and of its neighbour, 4096 cells: p = 1e-5 each of 18."""
    six = (words_along(axis) >> shift) & 63
    counts = np.bincount((six[1:] * 64 + six[:-1]).ravel(), minlength=4096)
    assert counts.shape == (4096,)
    assert 1e-5 < stats.chisquare(counts).pvalue < 1 - 1e-5


@pytest.mark.parametrize("axis", AXES)
def test_bits_are_fair_and_uncorrelated(axis: str):
    """32 bits, 496 pairs within a word and 1024 pairs with the neighbouring word: p = 1e-6 each."""
    words = words_along(axis)[:, : 2**13]
    signs = [np.float32(1) - 2 * ((words >> bit) & 1).astype(np.float32) for bit in range(32)]
    signs = np.stack(signs).reshape(32, len(words), -1)
    ones = signs.sum((1, 2), dtype=np.float64) / np.sqrt(words.size)
    assert_like_standard_normals(ones, 1e-6)
    flat = signs.reshape(32, -1)
    within = flat @ flat.T
    assert_like_standard_normals(within[np.triu_indices(32, 1)] / np.sqrt(words.size), 1e-6)
    across = signs[:, 1:].reshape(32, -1) @ signs[:, :-1].reshape(32, -1).T
    assert_like_standard_normals(across / np.sqrt(words[1:].size), 1e-6)


def test_keys_with_close_first_halves_are_unrelated():
    """Without the second half these would be shifted copies: 4096 pairs of keys, 1024 genes.

    Words in common, one expected: p = 1e-7 for ten. Correlations, at the shift that lines the pair up: p = 1e-4.
    """
    pairs, genes, shift = 2**12, 2**10, 3
    high, low, other_low = (jnp.asarray(words) for words in random_words(14, 3, pairs))
    one = words_of(noise.Key(high, low), genes)
    other = words_of(noise.Key(high - np.uint32(shift), other_low), genes + shift)
    assert sum(np.intersect1d(*rows).size for rows in zip(one, other, strict=True)) < 10
    normal = jax.jit(noise.normal)
    scores = np.einsum("ij,ij->i", normal(one), normal(other[:, shift:])) / np.sqrt(genes)
    assert 1e-4 / 2 < stats.chi2.cdf((scores**2).sum(), pairs) < 1 - 1e-4 / 2


def test_first_population_and_first_children_do_not_share_noise():
    """The same key serves both. No word in common (chance of one: 0.2%), no correlation (p = 1e-4)."""
    n, d, key = 64, 50, noise.key(7)
    first = functions.get("sphere", d).init(key, n)
    ga = GA(Fixed(1.0), num_children=n - 1)
    children = ga.ask(ga.init(key, jnp.zeros((n, d)), jnp.zeros(n))).candidates
    here = noise.bits(noise.fold_in(key, jnp.arange(n), 0), d)
    before = noise.bits(noise.fold_in(key, jnp.arange(n), noise.BEFORE_THE_FIRST_GENERATION), d)
    np.testing.assert_allclose(children, noise.normal(here)[1:], atol=2e-6)
    np.testing.assert_allclose(first, noise.normal(before), atol=2e-6)
    assert not np.intersect1d(here, before).size
    products = np.asarray(first)[1:] * np.asarray(children)
    assert_like_standard_normals(products.sum() / np.sqrt(products.size), 1e-4)


# ------------------------------------------------------------------------------------------------------- avalanche

AVALANCHE_SAMPLES = 2**16
AVALANCHE_TOLERANCE = 0.0115  # 5.9 standard deviations, p = 4e-9: for all of the 26 000 pairs of bits, 1e-4


def chance_of_flipping(function: Callable[..., tuple[Array, ...]], arguments: list[np.ndarray], which: int) -> Array:
    """How often output bit k of each output changes with input bit b of one argument: `f32[32, outputs, 32]`."""

    @jax.jit
    def flips(flipped: Array) -> Array:
        changed = [jnp.asarray(a) for a in arguments]
        before = function(*changed)
        changed[which] = changed[which] ^ flipped
        differences = jnp.stack([a ^ b for a, b in zip(before, function(*changed), strict=True)])
        each_bit = (differences[..., None, :] >> jnp.arange(32, dtype=jnp.uint32)[:, None]) & 1
        return each_bit.mean(-1, dtype=jnp.float32)

    return jnp.stack([flips(np.uint32(1 << b)) for b in range(32)])


def small_places(seed: int) -> list[np.ndarray]:
    """What runs use: any key, and places with slots, generations or genes below 256."""
    rng = np.random.default_rng(seed)
    small = [rng.integers(0, 256, AVALANCHE_SAMPLES, np.uint32) for _ in range(2)]
    return [*random_words(seed, 2, AVALANCHE_SAMPLES), *small]


@pytest.mark.parametrize("which", range(4), ids=["key.high", "key.low", "first", "second"])
@pytest.mark.parametrize("places", ["small", "any"])
def test_avalanche_of_fold_in(which: int, places: str):
    arguments = small_places(21) if places == "small" else list(random_words(21, 4, AVALANCHE_SAMPLES))
    chance = chance_of_flipping(lambda a, b, c, d: noise.fold_in(noise.Key(a, b), c, d), arguments, which)
    assert jnp.abs(chance - 0.5).max() < AVALANCHE_TOLERANCE


@pytest.mark.parametrize("which", range(2), ids=["gene", "key.high"])
@pytest.mark.parametrize("places", ["small", "any"])
def test_avalanche_of_the_hash(which: int, places: str):
    """Not of `key.low`, which enters later: its upper bits do not reach every bit. `fold_in` makes up for it."""
    high, low, small, _ = small_places(22)
    counter = small if places == "small" else random_words(23, AVALANCHE_SAMPLES)
    chance = chance_of_flipping(lambda *words: (noise._hash(*words),), [counter, high, low], which)
    assert jnp.abs(chance - 0.5).max() < AVALANCHE_TOLERANCE


@pytest.mark.parametrize("which", range(5), ids=["seed's low half", "seed's high half", "slot", "generation", "gene"])
def test_avalanche_from_place_to_word(which: int):
    def word(seed_low: Array, seed_high: Array, slot: Array, generation: Array, gene: Array) -> tuple[Array]:
        child = noise.fold_in(noise.fold_in(NO_KEY, seed_low, seed_high), slot, generation)
        return (noise._hash(gene, child.high, child.low),)

    rng = np.random.default_rng(24)
    chance = chance_of_flipping(word, [rng.integers(0, 256, AVALANCHE_SAMPLES, np.uint32) for _ in range(5)], which)
    assert jnp.abs(chance - 0.5).max() < AVALANCHE_TOLERANCE


# ---------------------------------------------------------------------------------------------------------- ranges


@pytest.mark.parametrize("low_bits", [0, 511])
def test_uniform_is_inside_the_open_interval(low_bits: int):
    """Every mantissa: 2^23 values, the middles of as many cells."""
    cells = np.arange(2**23, dtype=np.uint32)
    u = np.asarray(jax.jit(noise.uniform)((cells << 9) | np.uint32(low_bits)))
    assert u.dtype == np.float32
    np.testing.assert_array_equal(u.astype(np.float64), (cells + 0.5) / 2**23)
    symmetric = 2 * u - np.float32(1)
    assert u.min() > 0
    assert u.max() < 1
    assert symmetric.min() > -1
    assert symmetric.max() < 1
    assert (symmetric == -symmetric[::-1]).all()


@pytest.mark.parametrize("low_bits", [0, 1, 128, 255])
def test_normal_is_finite(low_bits: int):
    """Every float32 the radius can be, and more: all 2^24 values of the upper bits."""
    words = jnp.arange(2**24, dtype=jnp.uint32) << 8 | np.uint32(low_bits)
    z = jax.jit(noise.normal)(words)
    assert z.dtype == jnp.float32
    assert jnp.isfinite(z).all()
    assert jnp.abs(z).max() <= LARGEST_NORMAL


@pytest.mark.parametrize("compile", [False, True])
def test_extreme_words(compile: bool):
    normal, uniform = (jax.jit(noise.normal), jax.jit(noise.uniform)) if compile else (noise.normal, noise.uniform)
    around = np.arange(-(2**12), 2**12).astype(np.uint32)
    for words in (EXTREMES, EXTREMES[:, None] + around):
        z, u = np.asarray(normal(jnp.asarray(words))), np.asarray(uniform(jnp.asarray(words)))
        assert np.isfinite(z).all()
        assert np.abs(z).max() <= LARGEST_NORMAL
        assert ((u > 0) & (u < 1)).all()


def test_normal_is_box_muller_of_the_word():
    """Against float64: 2e-6, but where the radius is close to 1 float32 can tell no more than 2^12 values apart."""
    words = random_words(31, 2**20)
    radius = ((words >> 1) + 0.5) / 2**31
    half_turns = (words * np.uint32(0x9E3779B9)).view(np.int32) / 2**32
    expected = np.sqrt(-2 * np.log(radius)) * np.sin(np.pi * half_turns)
    error = np.abs(np.asarray(jax.jit(noise.normal)(words)) - expected)
    assert error[radius < 0.9].max() < 2e-6
    assert error.max() < 3e-4
    assert error.mean() < 1e-7


# ----------------------------------------------------------------------------------------------------- distinctness


@pytest.mark.parametrize("seed", [0, 1, 2**31 - 1])
def test_words_of_one_key_are_distinct(seed: int):
    words = words_of(noise.key(seed), 2**20)
    assert len(np.unique(words)) == len(words)


def packed(keys: noise.Key) -> np.ndarray:
    return (np.asarray(keys.high).astype(np.uint64) << np.uint64(32) | np.asarray(keys.low)).ravel()


def test_places_of_one_key_have_distinct_keys():
    """Slots and generations from either end of their range, then any places at all."""
    either_end = np.arange(-512, 512).astype(np.uint32)
    keys = packed(jax.jit(noise.fold_in)(noise.key(3), either_end[:, None], either_end))
    assert len(np.unique(keys)) == keys.size
    places = noise.Key(*map(jnp.asarray, random_words(41, 2, 2**20)))
    keys = packed(jax.jit(noise.fold_in)(noise.key(4), *places))
    assert len(np.unique(keys)) == len(np.unique(packed(places)))


def test_seeds_and_places_have_distinct_keys():
    """Seeds × slots × generations. That two of 1e6 random keys are equal: 3e-8."""
    keys = packed(jax.jit(jax.vmap(lambda run: child_keys(run, 128, 128)))(seed_keys(64)))
    assert len(np.unique(keys)) == keys.size
    assert len(np.unique(packed(seed_keys(2**20)))) == 2**20


def test_words_of_different_keys_collide_as_often_as_random_ones():
    """Equal words among 4e6, expected 2048: p = 1e-4."""
    words = np.sort(words_along("children").ravel())
    equal = int((words[1:] == words[:-1]).sum())
    expected = words.size**2 / 2**33
    assert 1e-4 / 2 < stats.poisson.cdf(equal, expected) < 1 - 1e-4 / 2


# --------------------------------------------------------------------------------------------------------- integers

UPPERS = (1, 2, 3, 7, 50, 101, 1000, 65535, 65536, 65537, 10**6 + 3, 2**30, 2**31 - 1, 2**31)


@pytest.mark.parametrize("upper", UPPERS)
@pytest.mark.parametrize("traced", [False, True])
def test_integer_is_the_upper_half_of_the_product(upper: int, traced: bool):
    words = np.concatenate([EXTREMES, np.uint32(2) ** np.arange(32, dtype=np.uint32), random_words(51, 2**18)])
    function = jax.jit(noise.integer) if traced else noise.integer
    result = np.asarray(function(jnp.asarray(words), np.uint32(upper)))
    assert result.dtype == np.int32
    exact = [(word * upper) >> 32 for word in words[:1000].tolist()]
    np.testing.assert_array_equal(result[:1000], exact)
    np.testing.assert_array_equal(result, (words.astype(np.uint64) * np.uint64(upper)) >> np.uint64(32))
    assert result.min() == 0
    assert result.max() < upper


@given(word=st.integers(0, 2**32 - 1), upper=st.integers(1, 2**31))
@settings(max_examples=200, derandomize=True, deadline=None)
def test_integer_of_any_word(word: int, upper: int):
    assert int(noise.integer(jnp.uint32(word), np.uint32(upper))) == (word * upper) >> 32


@pytest.mark.parametrize("upper", [2, 3, 7, 50, 101, 1000, 65537])
def test_integer_is_uniform(upper: int):
    """Chi-square on 4e6 draws: p = 1e-4 each of 7."""
    drawn = jax.jit(noise.integer)(words_along("genes"), upper)
    counts = np.bincount(np.asarray(drawn).ravel(), minlength=upper)
    assert counts.shape == (upper,)
    assert 1e-4 < stats.chisquare(counts).pvalue < 1 - 1e-4


# ----------------------------------------------------------------------------------------------------------- purity


def mix_in_numpy(x: np.ndarray) -> np.ndarray:
    x = (x ^ (x >> 16)) * np.uint32(0x7FEB352D)
    x = (x ^ (x >> 15)) * np.uint32(0x846CA68B)
    return x ^ (x >> 16)


def fold_in_with_numpy(key: tuple[np.ndarray, ...], first: Any, second: Any = 0) -> tuple[np.ndarray, np.ndarray]:
    first, second = np.atleast_1d(np.asarray(first, np.uint32)), np.atleast_1d(np.asarray(second, np.uint32))
    high, low = key[0] + first * np.uint32(0x9E3779B9), key[1] + second * np.uint32(0xBB67AE85)
    low = low ^ mix_in_numpy(high)
    high = high ^ mix_in_numpy(low + np.uint32(0x85EBCA6B))
    low = low ^ mix_in_numpy(high + np.uint32(0xC2B2AE35))
    high = high ^ mix_in_numpy(low + np.uint32(0x27D4EB2F))
    return high, low


def bits_with_numpy(key: tuple[np.ndarray, ...], n: int, start: int = 0) -> np.ndarray:
    x = np.arange(start, start + n).astype(np.uint32) + key[0][..., None]
    x = (x ^ (x >> 17)) * np.uint32(0xED5AD4BB)
    x = (x ^ (x >> 11) ^ key[1][..., None]) * np.uint32(0xAC4C1B51)
    x = (x ^ (x >> 15)) * np.uint32(0x31848BAB)
    return x ^ (x >> 14)


def key_with_numpy(seed: int) -> tuple[np.ndarray, np.ndarray]:
    zero = np.zeros(1, np.uint32)
    return fold_in_with_numpy((zero, zero), seed & 0xFFFFFFFF, seed >> 32)


def test_words_are_those_of_a_second_implementation():
    slots, generations, genes = np.arange(17, dtype=np.uint32), np.arange(90, 113, dtype=np.uint32), 29
    for seed in (0, 1, 42, 2**31 - 1, 2**40 + 3):
        keys = fold_in_with_numpy(key_with_numpy(seed), slots[:, None], generations)
        expected = bits_with_numpy(keys, genes)
        np.testing.assert_array_equal(
            noise.bits(noise.fold_in(noise.key(seed), slots[:, None], generations), genes), expected
        )


@given(
    key=st.tuples(st.integers(0, 2**32 - 1), st.integers(0, 2**32 - 1)),
    place=st.tuples(st.integers(0, 2**32 - 1), st.integers(0, 2**32 - 1)),
    start=st.integers(0, 2**32 - 9),
)
@settings(max_examples=50, derandomize=True, deadline=None)
def test_any_word_is_that_of_a_second_implementation(key: tuple[int, int], place: tuple[int, int], start: int):
    reference = fold_in_with_numpy((np.array([key[0]], np.uint32), np.array([key[1]], np.uint32)), *place)
    folded = noise.fold_in(noise.Key(jnp.uint32(key[0]), jnp.uint32(key[1])), *np.array(place, np.uint32))
    np.testing.assert_array_equal(jnp.stack(folded), np.concatenate(reference))
    np.testing.assert_array_equal(noise.bits(folded, 8, start), bits_with_numpy(reference, 8, start)[0])


def test_words_do_not_depend_on_how_they_are_asked_for():
    run, slots, generation, genes = noise.key(61), jnp.arange(13), 5, 257

    def words(run: noise.Key, slot: Array) -> Array:
        return noise.bits(noise.fold_in(run, slot, generation), genes)

    expected = np.asarray(words(run, slots))
    one_by_one = [words(run, slot) for slot in slots]
    ways = {
        "jit": jax.jit(words)(run, slots),
        "one at a time": jnp.stack(one_by_one),
        "vmap": jax.vmap(words, in_axes=(None, 0))(run, slots),
        "jit of vmap": jax.jit(jax.vmap(words, in_axes=(None, 0)))(run, slots),
        "map": jax.lax.map(lambda slot: words(run, slot), slots),
        "reversed": words(run, slots[::-1])[::-1],
        "part of the children": jnp.concatenate([words(run, slots[:5]), words(run, slots[5:])]),
    }
    for way, result in ways.items():
        np.testing.assert_array_equal(result, expected, err_msg=way)
    keys = noise.fold_in(run, slots, generation)
    for start, stop in ((0, 1), (0, 100), (3, 4), (100, 257), (256, 257)):
        np.testing.assert_array_equal(noise.bits(keys, stop - start, start), expected[:, start:stop])


def test_numbers_do_not_depend_on_how_they_are_asked_for():
    """Uniforms and integers are exact. The compiler may fuse a normal's operations: equal to a few roundings."""
    words = jnp.asarray(random_words(62, 8, 1024))
    for exact in (noise.uniform, lambda word: noise.integer(word, 101)):
        for way in (jax.jit(exact), jax.vmap(exact), jax.jit(lambda word, f=exact: jax.lax.map(f, word))):
            np.testing.assert_array_equal(way(words), exact(words))
    z = noise.normal(words)
    np.testing.assert_allclose(jax.jit(noise.normal)(words), z, atol=2e-6)
    np.testing.assert_allclose(jax.vmap(noise.normal)(words), z, atol=2e-6)
    fused = jax.jit(lambda keys: noise.normal(noise.bits(keys, 1024)))
    keys = child_keys(noise.key(63), 8, 8)
    np.testing.assert_allclose(fused(keys), noise.normal(noise.bits(keys, 1024)), atol=2e-6)


def test_double_precision_changes_nothing():
    def draws() -> list[Array]:
        words = noise.bits(noise.fold_in(noise.key(64), jnp.arange(8), 3), 100)
        return [words, noise.uniform(words), noise.integer(words, 101), noise.normal(words)]

    single = draws()
    with jax.enable_x64(True):
        double = draws()
    for one, other in zip(single, double, strict=True):
        assert one.dtype == other.dtype
        np.testing.assert_array_equal(np.asarray(one), np.asarray(other))


# ------------------------------------------------------------------------------------------------------------- keys


def assert_same_key(one: Any, other: Any) -> None:
    np.testing.assert_array_equal(jnp.stack(one), jnp.stack(other))


@pytest.mark.parametrize("seed", [0, 1, 12345, 2**31 - 1, 2**31, 2**32 - 1, 2**32, 2**63, 2**64 - 1])
def test_key_of_an_integer(seed: int):
    made = noise.key(seed)
    assert made.high.shape == made.low.shape == ()
    assert made.high.dtype == made.low.dtype == jnp.uint32
    assert_same_key(made, np.concatenate(key_with_numpy(seed)))
    assert_same_key(noise.key(np.uint64(seed)), made)
    if seed < 2**31:
        assert_same_key(noise.key(np.int32(seed)), made)
        assert_same_key(jax.tree.map(lambda words: words[-1], noise.fold_in(NO_KEY, jnp.array([7, seed]))), made)


@pytest.mark.parametrize("impl", ["threefry2x32", "rbg", "unsafe_rbg"])
def test_key_of_a_jax_key(impl: str):
    keys = jax.random.split(jax.random.key(9, impl=impl), 1000)
    made = jax.vmap(noise.key)(keys)
    assert len(np.unique(packed(made))) == 1000
    assert_same_key(noise.key(keys[17]), jax.tree.map(lambda words: words[17], made))
    assert_same_key(jax.jit(noise.key)(keys[17]), noise.key(keys[17]))


def test_key_of_a_legacy_jax_key():
    legacy = jax.random.PRNGKey(9)
    assert_same_key(noise.key(legacy), noise.key(jax.random.key(9)))
    assert_same_key(noise.key(np.asarray(legacy)), noise.key(legacy))


def test_key_of_a_key_is_itself():
    run = noise.key(1)
    assert noise.key(run) is run


def test_keys_of_integers_and_of_jax_keys_differ():
    """But for seed 0, whose words are zero in both."""
    seeds = np.arange(1, 1000)
    ours = packed(noise.fold_in(NO_KEY, seeds))
    theirs = packed(jax.vmap(lambda seed: noise.key(jax.random.key(seed)))(seeds))
    assert not np.intersect1d(ours, theirs).size


@pytest.mark.parametrize("seed", [True, False, np.bool_(True), 1.0, np.float32(2), "0", None, [0, 1], (0, 1), {}])
def test_key_refuses_what_is_no_seed(seed: Any):
    with pytest.raises(TypeError, match=r"key must be an integer, a jax\.random\.key or a gesmr\.noise\.Key, got"):
        noise.key(seed)


@pytest.mark.parametrize("seed", [-1, np.int64(-5), 2**64, 10**30])
def test_key_refuses_integers_out_of_range(seed: Any):
    with pytest.raises(ValueError, match=f"key must be an integer from 0 to {2**64 - 1}, got {seed}"):
        noise.key(seed)


@pytest.mark.parametrize("shape", [(), (1,), (3,), (5,)])
def test_key_refuses_arrays_of_another_size(shape: tuple[int, ...]):
    with pytest.raises(TypeError, match="got shape"):
        noise.key(np.zeros(shape, np.uint32))


@pytest.mark.parametrize("dtype", [np.int32, np.float32, np.uint16, np.bool_])
def test_key_refuses_arrays_of_another_type(dtype: Any):
    with pytest.raises(TypeError, match=f"got shape .* and dtype {np.dtype(dtype)}"):
        noise.key(np.zeros(2, dtype))


def test_key_refuses_several_keys_at_once():
    for batch in (jax.random.split(jax.random.key(0), 2), jax.random.split(jax.random.PRNGKey(0), 2)):
        with pytest.raises(TypeError, match=r"use jax\.vmap for several keys"):
            noise.key(batch)


# ------------------------------------------------------------------------------------------------------ polynomials


def test_log():
    """Relative error 5e-7 on (2^-33, 1], also close to 1, and 2.5e-6 absolute at the lower end; exactly 0 at 1."""
    spread = np.exp2(np.linspace(-33, 0, 2**20, endpoint=False))[1:]
    close_to_one = 1 - np.arange(1, 2**20) / 2**24
    powers = np.exp2(-np.arange(1, 33.0))
    x = np.concatenate([spread, close_to_one, powers]).astype(np.float32)
    expected = np.log(x.astype(np.float64))
    for function in (_elementary.log, jax.jit(_elementary.log)):
        result = np.asarray(function(jnp.asarray(x)))
        np.testing.assert_allclose(result, expected, rtol=5e-7, atol=0)
        assert np.abs(result - expected).max() < 2.5e-6
        assert function(jnp.float32(1)) == 0


def test_sinpi():
    """Relative error 3e-7 on [−½, ½]; odd, and never above 1."""
    x = np.concatenate([np.linspace(-0.5, 0.5, 2**20), np.exp2(-np.arange(1, 100.0))]).astype(np.float32)
    expected = np.sin(np.pi * x.astype(np.float64))
    for function in (_elementary.sinpi, jax.jit(_elementary.sinpi)):
        result = np.asarray(function(jnp.asarray(x)))
        np.testing.assert_allclose(result, expected, rtol=3e-7, atol=0)
        np.testing.assert_array_equal(function(jnp.asarray(-x)), -result)
        assert np.abs(result).max() <= 1


def test_sinpi_in_another_precision():
    """Half precision: the library's sine, to two roundings."""
    x = np.linspace(-0.5, 0.5, 101)
    result = _elementary.sinpi(jnp.asarray(x, jnp.float16))
    assert result.dtype == jnp.float16
    np.testing.assert_allclose(np.asarray(result, np.float64), np.sin(np.pi * x), atol=2e-3)


def test_python_integers_beyond_int32_are_words():
    key = noise.key(3)
    assert noise.fold_in(key, 2**32 - 1, 2**31) == noise.fold_in(key, np.uint32(2**32 - 1), np.uint32(2**31))
    assert int(noise.integer(jnp.uint32(2**32 - 1), 2**31)) == 2**31 - 1


@pytest.mark.parametrize("place", [float("nan"), 1.5, None, "a", np.zeros(2), jnp.float32(1)])
def test_places_are_integers(place):
    key = noise.key(0)
    for call in (lambda: noise.fold_in(key, place), lambda: noise.fold_in(key, 0, place)):
        with pytest.raises(TypeError, match="must be given by integers"):
            call()
    with pytest.raises(TypeError, match=r"key must be a gesmr\.noise\.Key"):
        noise.fold_in(0, 1)
