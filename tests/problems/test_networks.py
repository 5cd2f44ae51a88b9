"""Networks on flat parameter vectors, beside networks computed by scipy and numpy in double precision."""

import inspect
import math
from contextlib import nullcontext

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.sharding import AbstractDevice, AbstractMesh, use_abstract_mesh
from scipy.signal import correlate

from gesmr.problems import _conv_kernel, networks
from gesmr.problems.networks import INITIALISATIONS, ConvNet, Policy, seen

NET = ConvNet()


def conv_net(vector, image):
    """The paper's network for one image `u8[28, 28]`: sizes 28 → 13 → 5 → 1, then two dense layers."""
    vector, x, sides = np.asarray(vector, np.float64), image[None] / 255.0, []
    for shape in ((10, 1, 3, 3), (10, 10, 3, 3), (10, 10, 3, 3)):
        weights, vector = np.split(vector, [np.prod(shape)])
        bias, vector = np.split(vector, [10])
        x = np.stack([correlate(x, kernel, "valid")[0] for kernel in weights.reshape(shape)]) + bias[:, None, None]
        half = x.shape[1] // 2
        x = x[:, : 2 * half, : 2 * half].reshape(10, half, 2, half, 2).max(axis=(2, 4))
        x = np.maximum(x, 0)
        sides.append(x.shape[1:])
    assert sides == [(13, 13), (5, 5), (1, 1)]
    x = np.maximum(vector[:100].reshape(10, 10) @ x.ravel() + vector[100:110], 0)
    return vector[110:210].reshape(10, 10) @ x + vector[210:]


@pytest.fixture(scope="module")
def images():
    """Noise in all pixels: what the network must not see would show."""
    return np.random.default_rng(0).integers(0, 256, (230, 28, 28)).astype(np.uint8)


@pytest.fixture(scope="module")
def parameters():
    """Large enough that no layer is dead."""
    return 2 * NET.init(1, 3)


@pytest.fixture(scope="module")
def outputs(parameters, images):
    return np.asarray(jax.jit(NET)(parameters, seen(images)))


def test_the_papers_network_has_2140_parameters(parameters):
    assert NET.num_genes == 2140
    assert [layer.num_genes for layer in NET.layers] == [100, 910, 910, 110, 110]
    assert parameters.shape == (3, 2140)


def test_outputs_are_those_of_scipy(parameters, images, outputs):
    """At both ends of a chunk, and in what is left over."""
    assert outputs.shape == (3, 10, 230)
    for network, image in ((0, 0), (1, 99), (2, 100), (0, 199), (1, 200), (2, 229)):
        expected = conv_net(parameters[network], images[image])
        np.testing.assert_allclose(outputs[network, :, image], expected, rtol=1e-5, atol=2e-6)
    assert np.ptp(outputs, axis=-1).min() > 1e-3  # or any image would do


def test_side_by_side_as_one_by_one(parameters, images, outputs, monkeypatch):
    """The way for other devices, in other chunks."""
    monkeypatch.setattr(networks, "_way_to_compute", lambda: (jax.vmap(networks._outputs, in_axes=(0, None)), 115))
    found = jax.jit(NET.__call__)(parameters, seen(images))
    np.testing.assert_allclose(found, outputs, rtol=1e-5, atol=1e-6)


def test_populations_that_are_vmapped(parameters, images, outputs):
    several = jnp.stack([seen(images[:20]), seen(images[20:40])])
    found = jax.jit(jax.vmap(NET, in_axes=(None, 0)))(parameters, several)
    np.testing.assert_allclose(found[1], outputs[..., 20:40], rtol=1e-5, atol=1e-6)


# Unoptimised: the kernels are unrolled, and take long to compile on a CPU.
UNOPTIMISED = {"xla_backend_optimization_level": 0, "xla_llvm_disable_expensive_passes": True}


def test_the_first_kernel(parameters, images, monkeypatch):
    """Interpreted. The others take too long to compile for a quick test."""
    monkeypatch.setattr(_conv_kernel, "BLOCK", 8)
    weights, biases = NET.unpack(parameters)[0]

    def first(x):
        kernel, taps = _conv_kernel._first_kernel, weights.reshape(3, 10, 9)
        found = _conv_kernel._call(kernel, 10, x, [taps, biases], networks=3, images=16, interpret=True, shared=True)
        return found, jax.vmap(networks._first_convolution, in_axes=(None, 0, 0))(x, weights, biases)

    found, expected = jax.jit(first, compiler_options=UNOPTIMISED)(seen(images[:16]))
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-6)


@pytest.mark.slow
@pytest.mark.parametrize("lanes", [None, 2])
def test_the_kernels_compute_the_same(parameters, images, outputs, monkeypatch, lanes):
    """All three, alone and vmapped. On a GPU they are what computes."""
    monkeypatch.setattr(_conv_kernel, "BLOCK", 8)
    several = jnp.stack([seen(images[:11]), seen(images[20:31])])
    if lanes is None:
        found = jax.jit(interpreted, compiler_options=UNOPTIMISED)(parameters[:2], several[1])
    else:
        found = jax.jit(jax.vmap(interpreted, (None, 0)), compiler_options=UNOPTIMISED)(parameters[:2], several)[1]
    np.testing.assert_allclose(found, outputs[:2, :, 20:31], rtol=1e-5, atol=1e-5)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:The Pallas Triton backend is deprecated:DeprecationWarning")  # JAX 0.12
def test_the_kernels_can_be_lowered_for_cuda():
    """To Triton, with no GPU at hand; with lanes and trials of an oracle, which become part of the grid."""

    def kernels(parameters, images):
        return _conv_kernel.outputs(NET.unpack(parameters), images)

    trials = jax.vmap(jax.vmap(kernels, (0, None)))
    shapes = jax.ShapeDtypeStruct((5, 10, 100, 2140), jnp.float32), jax.ShapeDtypeStruct((5, 22, 22, 500), jnp.float32)
    with a_gpu_to_lower_for():
        text = jax.jit(trials).trace(*shapes).lower(lowering_platforms=("cuda",)).as_text()
    assert text.count("custom_call") == 3


def a_gpu_to_lower_for():
    """JAX 0.12 wants to be told which GPU that is; earlier versions neither ask nor understand."""
    if "platform" not in inspect.signature(AbstractDevice).parameters:
        return nullcontext()
    device = AbstractDevice(device_kind="NVIDIA H200", num_cores=None, platform="cuda")
    return use_abstract_mesh(AbstractMesh((), (), abstract_device=device))


def interpreted(parameters, images):
    return _conv_kernel.outputs(NET.unpack(parameters), images, interpret=True)


def test_a_cpu_has_no_use_for_kernels():
    assert not _conv_kernel.usable()


def test_images_are_scaled_and_cut(images):
    x = seen(images[:2])
    assert x.shape == (22, 22, 2)
    np.testing.assert_allclose(x[3, 5, 1], images[1, 3, 5] / 255)


def test_standardised_pixels(images):
    """As the authors have them; the darkest and the brightest by hand."""
    black_and_white = np.zeros((2, 28, 28), np.uint8)
    black_and_white[1] = 255
    np.testing.assert_allclose(seen(black_and_white, "standardised")[0, 0], [-0.42421296, 2.8214867], rtol=1e-6)
    expected = (images[1, 3, 5] / 255 - 0.1307) / 0.3081
    np.testing.assert_allclose(seen(images[:2], "standardised")[3, 5, 1], expected, rtol=1e-5)
    with pytest.raises(ValueError, match="pixels must be one of 'unit', 'standardised', got 'raw'"):
        seen(images[:1], "raw")


def test_shapes_that_do_not_fit(parameters, images):
    with pytest.raises(ValueError, match=r"images must be u8\[n, 28, 28\], got float64 of shape \(230, 28, 28\)"):
        seen(images / 255)
    with pytest.raises(ValueError, match=r"images must be u8\[n, 28, 28\], got uint8 of shape \(28, 28\)"):
        seen(images[0])
    with pytest.raises(ValueError, match=r"images must have shape \(22, 22, n\), got \(28, 28, 1\)"):
        NET(parameters, jnp.zeros((28, 28, 1)))
    with pytest.raises(ValueError, match=r"parameters must have 2140 genes, got shape \(3, 2139\)"):
        NET(parameters[:, 1:], seen(images[:1]))


# The policy network


def test_the_policy_network():
    policy = Policy(4, 2)
    assert policy.num_genes == 4 * 128 + 128 + 128 * 2 + 2
    parameters = policy.init(0, 3)
    observation = jax.random.normal(jax.random.key(0), (3, 5, 4))
    found = jax.jit(policy)(parameters, observation)
    assert found.shape == (3, 5, 2)
    for i in range(3):
        v = np.asarray(parameters[i], np.float64)
        hidden = np.maximum(np.asarray(observation[i]) @ v[:512].reshape(128, 4).T + v[512:640], 0)
        np.testing.assert_allclose(found[i], hidden @ v[640:896].reshape(2, 128).T + v[896:], rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(jax.jit(policy)(parameters[0], observation[0, 0]), found[0, 0], rtol=1e-5, atol=1e-6)
    with pytest.raises(ValueError, match=r"observation must have shape \(3, '\.\.\.', 4\)"):
        policy(parameters, observation[:2])
    with pytest.raises(ValueError, match="hidden must be an integer of at least 1, got 0"):
        Policy(4, 2, 0)


# Initialisations


@pytest.mark.parametrize("how", INITIALISATIONS)
def test_initialisations(how):
    """Standard deviations of 200 draws, layer by layer; a sample's is within 5% (over 5 standard errors) of its own."""
    vectors = np.asarray(jax.jit(lambda: NET.init(7, 200, how))())
    for layer, (weights, biases) in zip(NET.layers, NET.unpack(vectors), strict=True):
        fan_in = math.prod(layer.weights[1:])
        expected = {"uniform": (3 * fan_in) ** -0.5, "he": (2 / fan_in) ** 0.5, "normal": 0.1}[how]
        assert np.std(weights) == pytest.approx(expected, rel=0.05)
        assert np.std(biases) == (0 if how == "he" else pytest.approx(expected, rel=0.05))
        if how == "uniform":
            assert 0.99 < np.abs(weights).max() * fan_in**0.5 <= 1
    assert abs(float(vectors.mean())) < 1e-3


def test_initialisations_that_there_are_not():
    with pytest.raises(ValueError, match="init must be one of 'uniform', 'he', 'normal', got 'xavier'"):
        NET.init(0, 3, "xavier")
    with pytest.raises(ValueError, match="n must be an integer of at least 1, got 0"):
        NET.init(0, 0)
