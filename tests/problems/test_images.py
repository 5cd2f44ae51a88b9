"""The problem of classifying images, on the sample in tests/data."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.special import log_softmax

import gesmr
from gesmr.problems import datasets, images
from gesmr.problems.networks import ConvNet


def test_loss_and_accuracy_are_those_of_scipy(sample):
    problem = images.get("mnist", images=60, key=3)
    assert (problem.num_genes, problem.name, problem.images.shape) == (2140, "mnist", (22, 22, 60))
    population = 3 * problem.init(5, 4)
    together = jax.jit(lambda problem, x: (problem(x), problem.scores(x), ConvNet()(x, problem.images)))
    loss, scores, outputs = together(problem, population)
    outputs = np.asarray(outputs, np.float64)
    labels = np.asarray(problem.labels)
    expected = -log_softmax(outputs, axis=1)[:, labels, np.arange(60)].mean(axis=1)
    np.testing.assert_allclose(loss, expected, rtol=1e-5)
    np.testing.assert_allclose(scores.loss, expected, rtol=1e-5)
    np.testing.assert_allclose(scores.accuracy, (outputs.argmax(axis=1) == labels).mean(axis=1), atol=1e-6)
    assert len(set(np.asarray(loss).tolist())) == 4


def test_a_subset_is_drawn_by_key():
    few, more, other = images.subset(1, 20, 500), images.subset(1, 50, 500), images.subset(2, 50, 500)
    np.testing.assert_array_equal(few, more[:20])
    assert len(set(more.tolist())) == 50
    assert len(set(more.tolist()) & set(other.tolist())) < 25
    assert sorted(images.subset(1, 500, 500).tolist()) == list(range(500))
    with pytest.raises(ValueError, match="images must be an integer from 1 to 500, got 501"):
        images.subset(1, 501, 500)


def test_all_images_of_a_part(sample):
    problem = images.get("fashion-mnist", "test")
    np.testing.assert_array_equal(problem.labels, datasets.load("fashion-mnist", "test").labels)
    standardised = images.get("fashion-mnist", "test", pixels="standardised")
    np.testing.assert_allclose(standardised.images, (problem.images - 0.1307) / 0.3081, rtol=1e-5, atol=1e-6)


@pytest.mark.slow
def test_evolution_lowers_the_loss(sample):
    problem = images.get("mnist", images=40)
    ga = gesmr.GA(gesmr.GESMR(groups=4), 16)
    first = problem.init(0, 17)
    state = ga.init(0, first, jax.jit(lambda problem, x: problem(x))(problem, first))
    _, history = gesmr.evolve(ga, problem, state, 60)
    assert history.elite[-1] < 2.25 < history.elite[0]


def test_shapes_and_labels_that_do_not_fit():
    with pytest.raises(
        ValueError, match=r"images and labels must be f\[22, 22, n\] and i\[n\], got shapes \(22, 22, 3\)"
    ):
        images.Images(jnp.zeros((22, 22, 3)), jnp.zeros(4, int))
    with pytest.raises(ValueError, match="labels must be 0 … 9, got 10"):
        images.problem_of(datasets.Labelled(np.zeros((1, 28, 28), np.uint8), np.array([10], np.uint8)))
    with pytest.raises(ValueError, match="initialisation must be one of 'uniform', 'he', 'normal', got 'zeros'"):
        images.Images(jnp.zeros((22, 22, 3)), jnp.zeros(3, int), initialisation="zeros")
