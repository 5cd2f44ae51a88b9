"""Named spaces: solutions of plain values, genes, files, and errors that name the variable."""

import dataclasses
import json
import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from gesmr.spaces import Choice, Float, Int, Space

SPACE = Space(
    lr=Float(1e-5, 1, log=True), layers=Int(1, 8), act=Choice("relu", "tanh", None), w=Float(-1, 1, shape=(3,))
)
SOLUTION = {"lr": 0.01, "layers": 3, "act": "tanh", "w": np.array([0.5, -1.0, 1.0])}
INVENTED = [Choice("a", "b", shape=(2, 2)), Choice(True, 1, 1.0, "1", None), Choice(16, 32, 2.5), Choice(7)]


def same(a, b):
    """Whether solutions are equal, in the types of their values too."""
    pairs = [(a[name], b[name]) for name in a]
    return list(a) == list(b) and all(
        type(x) is type(y) and np.array_equal(x, y) and getattr(x, "dtype", None) == getattr(y, "dtype", None)
        for x, y in pairs
    )


@st.composite
def variables(draw):
    shape = draw(st.sampled_from([(), (1,), (2, 3)]))
    kind = draw(st.sampled_from(["float", "log float", "int", "log int", "choice"]))
    if kind == "choice":
        return draw(st.sampled_from(INVENTED))
    sizes = st.floats(1e-300, 1e300) if kind == "log float" else st.floats(-1e300, 1e300)
    if kind.endswith("int"):
        sizes = st.integers(1, 2**46) if kind == "log int" else st.integers(-(2**53), 2**53)
    low, high = sorted((draw(sizes), draw(sizes)))
    return (Int if kind.endswith("int") else Float)(low, high, log=kind.startswith("log"), shape=shape)


@st.composite
def spaces(draw):
    names = draw(st.lists(st.text(min_size=1), min_size=1, max_size=3, unique=True))
    return Space({name: draw(variables()) for name in names})


def inside(variable, value):
    if isinstance(variable, Choice):
        options = {(type(option), option) for option in variable.options}
        given = value.ravel().tolist() if variable.shape else [value]
        return all((type(option), option) in options for option in given)
    return bool(np.all((np.asarray(value) >= variable.low) & (np.asarray(value) <= variable.high)))


@settings(max_examples=300, deadline=None, derandomize=True)
@given(spaces(), st.integers(0, 2**32 - 1), st.booleans())
def test_solutions_are_inside_and_are_found_again(space, seed, at_the_edges):
    """Also genes outside their bounds, those at them, and those that single precision has moved."""
    generator = np.random.default_rng(seed)
    share = generator.integers(0, 2, space.dim) if at_the_edges else generator.uniform(-0.1, 1.1, space.dim)
    with np.errstate(over="ignore"):
        row = np.nan_to_num(space.low * (1 - share) + space.high * share)
        rows = row, row.astype(np.float32)
    for given_row in rows:
        solution = space.decode(given_row)
        assert all(inside(v, solution[name]) for name, v in zip(space.names, space.variables, strict=True))
        genes = space.encode(solution)
        assert genes.dtype == np.float64
        assert ((genes >= space.low) & (genes <= space.high)).all()
        assert same(space.decode(genes), solution)


@settings(max_examples=50, deadline=None, derandomize=True)
@given(spaces())
def test_descriptions_make_the_same_space(space):
    again = Space.from_dict(json.loads(json.dumps(space.as_dict())))
    assert again == space
    assert hash(again) == hash(space)
    assert again.as_dict() == space.as_dict()
    assert str(again) == str(space)


def test_genes_by_hand():
    assert SPACE.names == ("lr", "layers", "act", "w")
    assert SPACE.dim == 6
    np.testing.assert_allclose(SPACE.low, [math.log(1e-5), 0.5, -0.5, -1, -1, -1])
    np.testing.assert_allclose(SPACE.high, [0, 8.5, 2.5, 1, 1, 1], atol=1e-15)
    np.testing.assert_array_equal(SPACE.unordered, [0, 0, 1, 0, 0, 0])
    np.testing.assert_array_equal(SPACE.integral, [0, 1, 0, 0, 0, 0])
    genes = SPACE.encode(SOLUTION)
    np.testing.assert_allclose(genes, [math.log(0.01), 3, 1, 0.5, -1, 1], rtol=1e-15)
    solution = SPACE.decode([math.log(0.01), 3.4, 0.6, 0.5, -1, 1])
    assert list(solution) == ["lr", "layers", "act", "w"]
    assert (type(solution["lr"]), solution["layers"], solution["act"]) == (float, 3, "tanh")
    assert solution["lr"] == pytest.approx(0.01, rel=1e-14)
    assert solution["w"].tolist() == [0.5, -1, 1]
    assert SPACE.decode(SPACE.low - 1) == {"lr": 1e-5, "layers": 1, "act": "relu", "w": pytest.approx([-1, -1, -1])}
    log = Space(n=Int(1, 1000, log=True))
    assert [log.decode([gene])["n"] for gene in (log.low[0], 0.0, math.log(31.4), log.high[0])] == [1, 1, 31, 1000]


def test_halves_stay_inside():
    space = Space(n=Int(2, 4), c=Choice("a", "b", "c"))
    assert space.decode(space.low) == {"n": 2, "c": "a"}
    assert space.decode(space.high) == {"n": 4, "c": "c"}


def test_options_keep_their_type():
    space = Space(c=Choice(True, 1, 1.0, "1", None))
    for number, option in enumerate((True, 1, 1.0, "1", None)):
        assert space.encode({"c": option}) == number
        assert type(space.decode([number])["c"]) is type(option)
    assert Choice(True) != Choice(1) != Choice(1.0)
    assert len({Choice(True), Choice(1), Choice(1.0), Choice(True)}) == 3
    assert Space(c=Choice(1)) != Space(c=Choice(True))
    restored = Space.from_dict(json.loads(json.dumps(space.as_dict())))
    [choice] = restored.variables
    assert isinstance(choice, Choice)
    assert [type(option) for option in choice.options] == [bool, int, float, str, type(None)]


def test_spaces_are_values():
    assert Space(a=Int(0, 1), b=Int(0, 2)) == Space({"a": Int(0, 1), "b": Int(0, 2)})
    assert Space(a=Int(0, 1), b=Int(0, 2)) != Space(b=Int(0, 2), a=Int(0, 1))  # genes have another order
    assert Float(0, 1) == Float(0.0, 1.0)
    with pytest.raises(dataclasses.FrozenInstanceError):
        SPACE.names = ()  # type: ignore[misc]
    with pytest.raises(ValueError, match="read-only"):
        SPACE.low[0] = 3


def test_uniform_genes_make_uniform_integers_and_options():
    """χ² tests, each of which refuses a correct decoding once in a thousand seeds; the seed is fixed."""
    space = Space(n=Int(-3, 3), c=Choice("a", "b", "c", "d"), log=Float(1e-4, 1e4, log=True))
    rows = np.random.default_rng(0).uniform(space.low, space.high, (20_000, 3))
    values = space.stacked(rows)
    for drawn, kinds in ((values["n"], 7), (values["c"], 4), (np.floor(np.log10(values["log"])), 8)):
        counts = np.unique(drawn, return_counts=True)[1]
        assert len(counts) == kinds
        assert stats.chisquare(counts).pvalue > 1e-3


NUMERIC = Space(
    a=Float(-2, 3), b=Float(1e-6, 0.1, log=True, shape=(2,)), n=Int(1, 300, log=True), m=Int(-5, 5), c=Choice(16, 32),
    d=Choice(0.1, 7, shape=(2,)), fixed=Float(0.1, 0.1),
)  # fmt: skip


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_stacked_with_numpy_and_jax_agree(dtype):
    rows = np.random.default_rng(1).uniform(NUMERIC.low - 0.1, NUMERIC.high + 0.1, (500, NUMERIC.dim)).astype(dtype)
    with jax.enable_x64(dtype == "float64"):
        traced = jax.jit(lambda rows: NUMERIC.stacked(rows, jnp))(rows)
        nested = NUMERIC.stacked(jnp.asarray(rows.reshape(5, 100, -1)), jnp)
    ours = NUMERIC.stacked(rows)
    assert list(ours) == list(NUMERIC.names)
    tolerance = 1e-6 if dtype == "float32" else 1e-14
    for name in NUMERIC.names:
        np.testing.assert_allclose(traced[name], ours[name], rtol=tolerance)
        assert nested[name].shape[:2] == (5, 100)
        np.testing.assert_allclose(nested[name].reshape(ours[name].shape), ours[name], rtol=tolerance)
    assert {name: str(values.dtype) for name, values in traced.items()} == {
        "a": dtype, "b": dtype, "n": dtype.replace("float", "int"), "m": dtype.replace("float", "int"), "c": "int32",
        "d": dtype, "fixed": dtype,
    }  # fmt: skip
    for values in (traced, ours):
        assert values["b"].shape == (500, 2)
        assert (np.asarray(values["b"], np.float64) <= 0.1).all()
        assert (np.asarray(values["b"], np.float64) >= 1e-6).all()
        assert set(np.unique(values["n"])) <= set(range(1, 301))


def test_stacked_is_decoded_row_by_row():
    rows = np.random.default_rng(2).uniform(SPACE.low, SPACE.high, (50, SPACE.dim))
    stacked, together = SPACE.stacked(rows), SPACE.decode_all(rows)
    assert len(together) == len(rows)
    for i, row in enumerate(rows):
        solution = SPACE.decode(row)
        assert same(together[i], solution)
        assert all(np.array_equal(stacked[name][i], solution[name]) for name in SPACE.names)
    words = Space(mask=Choice(False, True, shape=(4,)), word=Choice("a", "bcd", shape=(2,)), mixed=Choice(1, "x"))
    drawn = words.stacked(np.random.default_rng(2).uniform(words.low, words.high, (50, words.dim)))
    assert [drawn[name].dtype.kind for name in words.names] == ["b", "U", "O"]


def test_what_compiled_functions_cannot_get():
    assert NUMERIC.is_numeric
    assert not SPACE.is_numeric
    assert not Space(c=Choice(False, True)).is_numeric
    with pytest.raises(TypeError, match=r"'relu', 'tanh', None.*not numbers"):
        SPACE.stacked(jnp.zeros(SPACE.dim), jnp)
    with pytest.raises(ValueError, match="needs 64-bit"):
        Space(n=Int(0, 2**31)).stacked(jnp.zeros(1), jnp)
    assert Space(n=Int(0, 2**31 - 1)).stacked(jnp.array([3e9]), jnp)["n"] == 2**31 - 1


def test_arrays_and_scalars_of_numpy_and_jax_are_encoded():
    space = Space(
        a=Float(0, 1), n=Int(0, 9), c=Choice("x", 3, True), v=Int(0, 9, shape=(2,)), w=Choice("x", "y", shape=(2,))
    )
    plain = space.encode({"a": 0.5, "n": 3, "c": 3, "v": [1, 2], "w": ["y", "x"]})
    arrays = {
        "a": np.float32(0.5),
        "n": np.int8(3),
        "c": np.int64(3),
        "v": jnp.array([1, 2]),
        "w": np.array(["y", "x"]),
    }
    np.testing.assert_array_equal(space.encode(arrays), plain)
    np.testing.assert_array_equal(space.encode(arrays | {"a": jnp.float32(0.5), "c": jnp.int32(3)}), plain)
    assert space.encode(arrays | {"c": np.True_})[2] == 2
    assert space.encode(arrays | {"c": np.str_("x")})[2] == 0


@pytest.mark.parametrize(
    ("make", "kind", "message"),
    [
        (lambda: Float(1, 0), ValueError, "low must be at most high, got low=1.0 and high=0.0"),
        (lambda: Float(0, np.inf), ValueError, "high must be a finite number, got inf"),
        (lambda: Float("0", 1), TypeError, "low must be a finite number, got '0'"),
        (lambda: Float(0, 1, log=True), ValueError, "low must be above 0 if log=True, got 0.0"),
        (lambda: Float(0, 1, log=1), TypeError, "log must be True or False"),
        (lambda: Float(0, 1, shape=3), TypeError, "shape must be a tuple of positive integers, got 3"),
        (lambda: Float(0, 1, shape=(2, 0)), ValueError, "shape must be an integer of at least 1, got 0"),
        (lambda: Int(0, 1.5), TypeError, "high must be an integer"),
        (lambda: Int(True, 2), TypeError, "low must be an integer"),
        (lambda: Int(0, 2**53 + 1), ValueError, "high must be at most 9007199254740992"),
        (lambda: Int(0, 5, log=True), ValueError, "low must be an integer of at least 1, got 0"),
        (lambda: Int(1, 2**50, log=True), ValueError, "high must be at most 70368744177664"),
        (Choice, ValueError, "options must be one or more"),
        (lambda: Choice("a", "b", "a"), ValueError, "options must be one or more, each given once"),
        (lambda: Choice(["a", "b"]), TypeError, r"one by one, got \['a', 'b'\] \(list\)"),
        (lambda: Choice(1.0, math.nan), TypeError, "finite numbers.*got nan"),
        (lambda: Choice(1j), TypeError, "options must be strings"),
        (Space, ValueError, "at least one variable"),
        (lambda: Space({}), ValueError, "at least one variable"),
        (lambda: Space({"a": Int(0, 1)}, b=Int(0, 1)), TypeError, "one mapping or variables by name"),
        (lambda: Space([("a", Int(0, 1))]), TypeError, "one mapping or variables by name"),
        (lambda: Space({3: Int(0, 1)}), TypeError, "names of variables must be non-empty strings, got 3"),
        (lambda: Space({"": Int(0, 1)}), TypeError, "names of variables must be non-empty strings"),
        (lambda: Space(a=(0, 1)), TypeError, r"a must be a Float, an Int or a Choice, got \(0, 1\)"),
        (lambda: SPACE.encode([1, 2]), TypeError, "a solution must be a mapping of lr, layers, act, w"),
        (lambda: SPACE.encode(SOLUTION | {"typo": 1}), ValueError, "only lr, layers, act, w, got 'typo' too"),
        (lambda: SPACE.encode({"lr": 0.1}), ValueError, "must have lr, layers, act, w, got no 'layers'"),
        (lambda: SPACE.encode(SOLUTION | {"lr": 2.0}), ValueError, "lr must be a number from 1e-05 to 1.0, got 2.0"),
        (lambda: SPACE.encode(SOLUTION | {"lr": np.nan}), ValueError, "lr must be a number .* got nan"),
        (lambda: SPACE.encode(SOLUTION | {"lr": "0.1"}), TypeError, "lr must be a number"),
        (lambda: SPACE.encode(SOLUTION | {"lr": True}), TypeError, "lr must be a number"),
        (lambda: SPACE.encode(SOLUTION | {"layers": 2.0}), TypeError, "layers must be an integer from 1 to 8, got 2.0"),
        (lambda: SPACE.encode(SOLUTION | {"layers": 9}), ValueError, "layers must be an integer from 1 to 8, got 9"),
        (lambda: SPACE.encode(SOLUTION | {"act": "gelu"}), ValueError, "act must be one of 'relu', 'tanh', None, got"),
        (lambda: SPACE.encode(SOLUTION | {"act": ["relu"]}), ValueError, "act must be one of"),
        (lambda: SPACE.encode(SOLUTION | {"w": [0, 0]}), ValueError, r"w must be a number .* of shape \(3,\)"),
        (lambda: INVENTED_SPACE.encode({"c": ["a", "b"]}), ValueError, r"c must have shape \(2, 2\)"),
        (lambda: SPACE.decode(np.zeros(5)), ValueError, r"row must have 6 genes, got shape \(5,\)"),
        (lambda: SPACE.stacked(np.zeros((3, 5))), ValueError, r"6 genes on their last axis, got shape \(3, 5\)"),
    ],
)  # fmt: skip
def test_errors_name_what_is_wrong(make, kind, message):
    with pytest.raises(kind, match=message):
        make()


INVENTED_SPACE = Space(c=INVENTED[0])


def test_files(tmp_path):
    toml, json_file = tmp_path / "space.toml", tmp_path / "space.json"
    toml.write_text(
        '[lr]\ntype = "float"\nlow = 1e-5\nhigh = 1\nlog = true\n[layers]\ntype = "int"\nlow = 1\nhigh = 8\n'
        '[act]\ntype = "choice"\noptions = ["relu", "tanh"]\n[w]\ntype = "float"\nlow = -1\nhigh = 1\nshape = [3]\n'
    )
    expected = Space(
        lr=Float(1e-5, 1, log=True), layers=Int(1, 8), act=Choice("relu", "tanh"), w=Float(-1, 1, shape=(3,))
    )
    assert Space.read(toml) == expected
    json_file.write_text(json.dumps(SPACE.as_dict()))
    assert Space.read(str(json_file)) == SPACE


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("s.yaml", "", "must end in .toml or .json"),
        ("s.toml", "[lr\n", "s.toml does not describe a space"),
        ("s.json", "{", "s.json does not describe a space"),
        ("s.json", "[" * 100_000, "s.json does not describe a space"),
        ("s.json", "[]", r"a space must be a table of variables, got \[\]"),
        ("s.json", '{"a": {"type": "int", "low": 0, "high": 1}, "a": 3}', "the same name twice among 'a'"),
        ("s.toml", "", "at least one variable"),
        ("s.toml", "lr = 3", "variable 'lr' must be a table with its type and arguments, got 3"),
        ("s.toml", "[lr]\nlow = 3", "variable 'lr' must have a type, 'float', 'int', 'choice', got None"),
        ("s.toml", '[lr]\ntype = "Float"', "variable 'lr' must have a type.*got 'Float'"),
        ("s.toml", '[lr]\ntype = "float"\nlow = 3', "variable 'lr' must have low, high, got no 'high'"),
        ("s.toml", '[lr]\ntype = "float"\nlow = 3\nhi = 4', "variable 'lr' must have only low, .* got 'hi' too"),
        ("s.toml", '[lr]\ntype = "float"\nlow = 3\nhigh = 1', "variable 'lr': low must be at most high"),
        ("s.toml", '[lr]\ntype = "float"\nlow = 3\nhigh = "__import__(1)"', "variable 'lr': high must be"),
        ("s.toml", '[c]\ntype = "choice"\noptions = "ab"', "variable 'c': options must be a list, got 'ab'"),
        ("s.toml", '[c]\ntype = "choice"\noptions = [2020-01-01]', "variable 'c': options must be strings"),
    ],
)  # fmt: skip
def test_errors_of_files_name_what_is_wrong(tmp_path, name, text, message):
    (tmp_path / name).write_text(text)
    with pytest.raises(ValueError, match=message):
        Space.read(tmp_path / name)


def test_a_file_that_is_missing_or_no_text(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"none\.toml"):
        Space.read(tmp_path / "none.toml")
    (tmp_path / "s.toml").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(ValueError, match="does not describe a space"):
        Space.read(tmp_path / "s.toml")
