"""Checkpoints: going on is exact, damage is found, and nothing that does not fit is taken."""

import dataclasses
import json
import os
import random
import shutil
import subprocess
import sys
import textwrap
import tracemalloc
import warnings
import zipfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import jax.numpy as jnp
import numpy as np
import pytest

import gesmr
from gesmr.optimize import archive
from gesmr.optimize.options import check
from gesmr.optimize.stored_setup import written
from helpers.optimizing import (
    SMALL,
    TREE,
    D,
    ask_and_tell,
    by_jax,
    by_numpy,
    many_by_numpy,
    minimize,
    noise_of_its_own,
    optimizer,
)
from helpers.processes import finish, kill_at_random, seconds_since

PREVIOUS = ".previous"


def assert_same(a, b):
    """Two results agree in everything but time."""
    assert (a.nit, a.nfev, a.fun, a.stop, a.restarts) == (b.nit, b.nfev, b.fun, b.stop, b.restarts)
    for name in ("x", "population", "population_fitness", "mutation_rates"):
        np.testing.assert_array_equal(a[name], b[name])
    for one, other in zip(a.history[:3], b.history[:3], strict=True):
        np.testing.assert_array_equal(one, other)


# ask and tell


@pytest.mark.parametrize("generations", [None, 0, 4])
@pytest.mark.parametrize("asked", [False, True])
def test_an_optimiser_goes_on_exactly(tmp_path, generations, asked):
    """Saved before the first population is told, after it, later; with candidates out or not."""
    path = tmp_path / "run.npz"
    one = optimizer(maxiter=20)
    if generations is not None:
        ask_and_tell(one, generations)
    if asked:
        one.ask()
    one.save(path)
    other = gesmr.Optimizer.load(path)
    np.testing.assert_array_equal(one.ask(), other.ask())
    for opt in (one, other):
        ask_and_tell(opt, 5)
    assert_same(one.result, other.result)


VARIANTS = {
    "bounded": {"bounds": [(-1, 2), (0, None), (0, 0)]},
    "bounded, clipped": {"bounds": gesmr.Bounds(-1, 2, "clip"), "init_std": [0.1, 0.2, 0.3], "dtype": "float32"},
    "maximised": {"direction": "maximize", "init": np.ones((2, D))},
    "SAMR": {"controller": "SAMR"},
    "UCB": {"controller": gesmr.UCB(3)},
    "15MR, clipped": {"controller": gesmr.Clip(gesmr.OneFifth(0.5), 1e-3, 1.0)},
    "restarts": {"restarts": 3, "restart_popsize": "keep", "patience": 2},
}


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[] if name in ("bounded", "restarts") else pytest.mark.slow) for name in VARIANTS]
)
def test_whatever_the_options(tmp_path, name):
    one = optimizer(**VARIANTS[name])
    ask_and_tell(one, 7, lambda xs: np.round(many_by_numpy(xs)))
    one.save(tmp_path / "run")
    other = gesmr.Optimizer.load(tmp_path / "run")
    for opt in (one, other):
        ask_and_tell(opt, 5, lambda xs: np.round(many_by_numpy(xs)))
    assert_same(one.result, other.result)


def test_pytrees_and_controllers_of_ones_own_are_asked_for(tmp_path):
    @gesmr.pytree
    class Mine(gesmr.GESMR):
        pass

    opt = gesmr.Optimizer(TREE, popsize=5, rng=0, controller=Mine(2))
    opt.save(tmp_path / "run")
    with pytest.raises(gesmr.CheckpointError, match="x0 was a pytree"):
        gesmr.Optimizer.load(tmp_path / "run")
    with pytest.raises(gesmr.CheckpointError, match="Mine"):
        gesmr.Optimizer.load(tmp_path / "run", x0=TREE)
    with pytest.raises(gesmr.CheckpointError, match="controller was"):
        gesmr.Optimizer.load(tmp_path / "run", x0=TREE, controller=gesmr.GESMR(2))
    with pytest.raises(gesmr.CheckpointError, match="variables was 8, now 2"):
        gesmr.Optimizer.load(tmp_path / "run", x0={"w": np.zeros(2, np.float32)}, controller=Mine(2))
    other = gesmr.Optimizer.load(tmp_path / "run", x0=TREE, controller=Mine(2))
    for a, b in zip(opt.ask(), other.ask(), strict=True):
        np.testing.assert_array_equal(a["w"], b["w"])


def test_limits_can_be_replaced(tmp_path):
    opt = optimizer(maxiter=3)
    ask_and_tell(opt, 3)
    assert opt.stop() == {"maxiter": 3}
    opt.save(tmp_path / "run")
    assert gesmr.Optimizer.load(tmp_path / "run").stop() == {"maxiter": 3}
    assert gesmr.Optimizer.load(tmp_path / "run", maxiter=9).stop() == {}
    with pytest.raises(TypeError, match="popsize"):
        gesmr.Optimizer.load(tmp_path / "run", popsize=9)


def test_no_pickle_and_numpy_reads_it(tmp_path):
    opt = optimizer()
    ask_and_tell(opt, 2)
    opt.save(tmp_path / "run.npz")
    with np.load(tmp_path / "run.npz", allow_pickle=False) as file:
        np.testing.assert_array_equal(file["population"], opt.result.population)
        assert all(file[name].dtype != object for name in file.files)
        assert json.loads(file["meta"].tobytes())["format"] == archive.FORMAT
    warm = optimizer(init=np.load(tmp_path / "run.npz")["population"])
    np.testing.assert_array_equal(warm.ask(), opt.result.population)


# minimize


def stop_at(generation):
    def callback(intermediate_result):
        if intermediate_result.nit >= generation:
            raise StopIteration

    return callback


@pytest.mark.parametrize("fun", [by_jax, by_numpy])
def test_a_run_in_pieces_is_the_run_in_one(tmp_path, fun):
    path = tmp_path / "run"
    whole = minimize(fun)
    for generation in (0, 4, 5, 11):
        minimize(fun, checkpoint=path, resume=True, callback=stop_at(generation), chunk=3)
    assert_same(minimize(fun, checkpoint=path, resume=True), whole)
    longer = minimize(fun, checkpoint=path, resume=True, maxiter=45)  # the budget can be extended
    assert_same(longer, minimize(fun, maxiter=45))
    assert_same(minimize(fun, checkpoint=path, resume=True, maxiter=45, rng=None), longer)


@pytest.mark.parametrize("fun", [by_jax, by_numpy])
@pytest.mark.parametrize("popsize", ["keep", pytest.param("double", marks=pytest.mark.slow)])
def test_in_pieces_with_restarts(tmp_path, fun, popsize):
    def floored(x):
        return jnp.ceil(2 * fun(x)) if fun is by_jax else np.ceil(2 * fun(x))

    options = {"patience": 4, "restarts": 2, "restart_popsize": popsize, "maxiter": 60}
    whole = minimize(floored, **options)
    assert whole.restarts == 2
    for generation in range(0, whole.nit, 5):
        minimize(floored, checkpoint=tmp_path / "run", resume=True, callback=stop_at(generation), chunk=2, **options)
    assert_same(minimize(floored, checkpoint=tmp_path / "run", resume=True, **options), whole)


@pytest.mark.parametrize("reevaluate", ["elite", pytest.param("parents", marks=pytest.mark.slow)])
def test_in_pieces_with_noise(tmp_path, reevaluate):
    options = {"keyed": True, "reevaluate": reevaluate, "repeats": 2}
    whole = minimize(noise_of_its_own, **options)
    for generation in (3, 9):
        kept = {"checkpoint": tmp_path / "run", "resume": True, "chunk": 3}
        minimize(noise_of_its_own, callback=stop_at(generation), **kept, **options)
    assert_same(minimize(noise_of_its_own, checkpoint=tmp_path / "run", resume=True, **options), whole)


def test_a_compiled_run_can_be_taken_over_by_hand(tmp_path):
    minimize(by_jax, checkpoint=tmp_path / "run", maxiter=3)
    opt = gesmr.Optimizer.load(tmp_path / "run")
    asked = np.array(opt.ask())
    opt.save(tmp_path / "again")
    np.testing.assert_array_equal(gesmr.Optimizer.load(tmp_path / "again").ask(), asked)
    opt.tell(asked, many_by_numpy(asked))
    assert (opt.result.nit, opt.result.nfev) == (4, 13 + 4 * 12)


def test_how_often(tmp_path, monkeypatch):
    written = []
    write = archive.write
    monkeypatch.setattr(archive, "write", lambda path, meta, arrays: written.append(meta) or write(path, meta, arrays))
    for fun in (by_jax, by_numpy):
        written.clear()
        minimize(fun, checkpoint=gesmr.Checkpoint(tmp_path / fun.__name__, every=7))
        assert [meta["progress"]["nit"] for meta in written] == [7, 14, 21, 28, 30]
        written.clear()
        minimize(fun, checkpoint=gesmr.Checkpoint(tmp_path / f"{fun.__name__} s", seconds=1e-9), chunk=10)
        assert len(written) > 3


def test_an_exception_leaves_a_checkpoint(tmp_path):
    path = tmp_path / "run"
    calls = []

    def fails_later(x):
        calls.append(x)
        if len(calls) == 13 + 5 * 12 + 3:
            raise RuntimeError("the simulator has crashed")
        return by_numpy(x)

    with pytest.raises(RuntimeError, match="crashed"):
        minimize(fails_later, checkpoint=path)
    assert archive.read(path)[0]["progress"]["nit"] == 5
    assert_same(minimize(by_numpy, checkpoint=path, resume=True), minimize(by_numpy))


def test_existing_files_are_not_overwritten_unasked(tmp_path):
    path = tmp_path / "run"
    minimize(checkpoint=path)
    with pytest.raises(FileExistsError, match="resume=True"):
        minimize(checkpoint=path)
    with pytest.raises(FileNotFoundError, match="directory"):
        minimize(checkpoint=tmp_path / "absent" / "run")
    with pytest.raises(TypeError, match="checkpoint must be a file name"):
        minimize(checkpoint=3)
    with pytest.raises(ValueError, match="every"):
        gesmr.Checkpoint(path, every=0)


DIFFERENT = {
    "popsize": {"popsize": 14},
    "controller": {"controller": "SAMR"},
    "seed": {"rng": 1},
    "bounds": {"bounds": (-5, 5)},
    "direction": {"direction": "maximize"},
    "dtype": {"dtype": "float32"},
    "repeats": {"repeats": 2},
    "restarts": {"restarts": 1, "patience": 5},
    "init_std": {"init_std": 2.0},
}


@pytest.mark.parametrize("name", DIFFERENT)
def test_another_run_is_refused(tmp_path, name):
    minimize(checkpoint=tmp_path / "run", maxiter=1)
    before = (tmp_path / "run").read_bytes()
    with pytest.raises(gesmr.CheckpointError, match=f"another run: .*{name}"):
        minimize(checkpoint=tmp_path / "run", resume=True, **DIFFERENT[name])
    assert (tmp_path / "run").read_bytes() == before


def test_another_way_of_evaluating_is_refused(tmp_path):
    minimize(by_jax, checkpoint=tmp_path / "run", maxiter=0)
    with pytest.raises(gesmr.CheckpointError, match="compiled, now it is called"):
        minimize(by_jax, checkpoint=tmp_path / "run", resume=True, jit=False, dtype="float32")


def test_going_on_calls_nothing_twice_but_the_best(tmp_path):
    calls = []

    def fun(x):
        calls.append(x.tobytes())
        return by_numpy(x)

    minimize(fun, checkpoint=tmp_path / "run", maxiter=2)
    result = minimize(fun, checkpoint=tmp_path / "run", maxiter=4, resume=True)
    assert len(set(calls)) == result.nfev
    assert len(calls) == result.nfev + 1  # the best so far, to see that it is the same function


def test_another_size_is_refused(tmp_path):
    minimize(checkpoint=tmp_path / "run", maxiter=1)
    with pytest.raises(gesmr.CheckpointError, match="variables was 3, now 4"):
        gesmr.minimize(by_numpy, np.zeros(4), **SMALL, checkpoint=tmp_path / "run", resume=True)
    with pytest.raises(gesmr.CheckpointError, match="x0"):
        gesmr.minimize(by_numpy, np.ones(3), **SMALL, checkpoint=tmp_path / "run", resume=True)


def rewritten(path, change):
    """The checkpoint with its JSON changed and its checksum right again, as another version would write it."""
    meta, arrays = archive.read(path)
    change(meta)
    for old in (path, path.with_name(path.name + PREVIOUS)):
        old.unlink(missing_ok=True)
    format_ = meta.pop("format")
    archive.write(path, {**meta, "format": format_}, arrays)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda meta: meta["machine"].update(jax="0.4.1"), "jax 0.4.1"),
        (lambda meta: meta["machine"].update(gesmr="99.0"), "gesmr 99.0"),
        (lambda meta: meta["machine"].update(platform="tpu"), "platform tpu"),
        (lambda meta: meta.update(format=archive.FORMAT + 1), f"format {archive.FORMAT + 1}"),
    ],
)
def test_another_version_is_refused(tmp_path, change, words):
    minimize(checkpoint=tmp_path / "run", maxiter=1)
    rewritten(tmp_path / "run", change)
    with pytest.raises(gesmr.CheckpointError, match=words):
        minimize(checkpoint=tmp_path / "run", resume=True)
    with pytest.raises(gesmr.CheckpointError, match=words):
        gesmr.Optimizer.load(tmp_path / "run")


# damage


def small_checkpoint(path):
    opt = optimizer()
    ask_and_tell(opt, 1)
    opt.save(path)
    return path.read_bytes()


@pytest.mark.parametrize("stride", [61, pytest.param(1, marks=pytest.mark.slow)])
def test_every_flipped_byte_and_every_truncation_is_found(tmp_path, stride):
    path = tmp_path / "run"
    whole = small_checkpoint(path)
    generator = random.Random(0)
    for at in range(0, len(whole), stride):
        flipped = bytearray(whole)
        flipped[at] ^= 1 << generator.randrange(8)
        for damaged in (bytes(flipped), whole[:at]):
            path.write_bytes(damaged)
            with pytest.raises(gesmr.CheckpointError, match="the one before: there is none"):
                archive.read(path)
    path.write_bytes(whole + b"\0")
    with pytest.raises(gesmr.CheckpointError):
        archive.read(path)
    path.write_bytes(whole)
    assert gesmr.Optimizer.load(path).result.nit == 1


def test_the_previous_one_is_kept_and_used(tmp_path):
    path = tmp_path / "run"
    opt = optimizer()
    for generations in (2, 1):
        ask_and_tell(opt, generations)
        opt.save(path)
    assert sorted(os.listdir(tmp_path)) == ["run", "run" + PREVIOUS]
    for damage in (lambda: path.write_bytes(path.read_bytes()[:-9]), path.unlink):
        damage()
        with pytest.warns(UserWarning, match="going on from .*previous"):
            older = gesmr.Optimizer.load(path)
        assert older.result.nit == 2
        ask_and_tell(older, 1)
        assert_same(older.result, opt.result)
    path.write_bytes(b"nothing")
    (tmp_path / ("run" + PREVIOUS)).write_bytes(b"nothing either")
    with pytest.raises(gesmr.CheckpointError, match=r"not a whole checkpoint.*the one before: it is not a whole"):
        gesmr.Optimizer.load(path)
    with pytest.raises(FileNotFoundError, match="there is no checkpoint"):
        gesmr.Optimizer.load(tmp_path / "absent")


def test_a_checkpoint_that_cannot_be_written(tmp_path):
    opt = optimizer()
    with pytest.raises(OSError, match=r"the checkpoint .* cannot be written"):
        opt.save(tmp_path / "absent" / "run")
    assert os.listdir(tmp_path) == []


def test_zip_without_our_mark_is_refused(tmp_path):
    with zipfile.ZipFile(tmp_path / "run", "w") as archive:
        archive.writestr("meta.npy", b"")
    with pytest.raises(gesmr.CheckpointError, match="not a whole checkpoint"):
        gesmr.Optimizer.load(tmp_path / "run")


def test_every_part_of_a_setup_is_compared():
    """A field added to Setup must be described in checkpoints, or two different runs would pass for one."""
    setup = check(np.zeros(D), {"bounds": (-1, 1), "init": (np.zeros((1, D)), [0.0]), "init_std": 0.5})
    plain, arrays = written(setup)
    described = {**plain, **arrays}
    for field in dataclasses.fields(setup):
        assert field.name in described or field.name == "layout"


@pytest.mark.parametrize("fun", [by_numpy, by_jax])
def test_checkpoints_that_do_not_say_whether_fun_was_compiled(tmp_path, fun):
    """Older ones: their path says it."""
    path = tmp_path / "run"
    minimize(fun, checkpoint=path, maxiter=5)
    forged(path, lambda meta, arrays: meta.pop("compiled"))
    assert_same(minimize(fun, checkpoint=path, resume=True, maxiter=9), minimize(fun, maxiter=9))


# killing


SCRIPT = """
    import json, sys, time
    from pathlib import Path
    import jax.numpy as jnp, numpy as np
    import gesmr

    def by_numpy(x):
        time.sleep(1e-4)
        return float(np.sum((x - 1) ** 2))

    def by_jax(x):
        return jnp.sum((x - 1) ** 2) + 0 * jnp.sum(jnp.sort(jnp.sin(jnp.arange(10_000) * x[0])))

    kind, generations, path = sys.argv[1:]
    kept = gesmr.Checkpoint(path, every=3)
    options = {"maxiter": int(generations), "chunk": 5, "checkpoint": kept, "resume": True}
    result = gesmr.minimize(globals()[kind], np.zeros(3), popsize=13, rng=3, **options)
    arrays = {name: result[name] for name in ("x", "population", "mutation_rates")}
    arrays |= {"fun": np.float64(result.fun), **result.history._asdict()}
    outcome = {name: np.asarray(array).tobytes().hex() for name, array in arrays.items() if array is not None}
    outcome |= {name: result[name] for name in ("nit", "nfev", "path", "stop", "message")}
    Path(f"{path}.json").write_text(json.dumps(outcome))
"""


@pytest.mark.parametrize(
    ("kind", "kills", "generations"),
    [("by_numpy", 1, 200), *(pytest.param(kind, 10, 500, marks=pytest.mark.slow) for kind in ("by_numpy", "by_jax"))],
)
def test_killed_at_random_moments_and_resumed_is_as_uninterrupted(tmp_path, kind, kills, generations):
    script, whole, killed = tmp_path / "script.py", tmp_path / "whole", tmp_path / "killed"
    script.write_text(textwrap.dedent(SCRIPT))

    def saves(path):
        before = path.exists() and path.stat().st_mtime_ns
        return lambda: path.exists() and path.stat().st_mtime_ns != before

    def command(path):
        return [sys.executable, script, kind, str(generations), path]

    seconds = seconds_since(saves(whole), command(whole))
    at_work = kill_at_random(command(killed), lambda: saves(killed), seconds / (kills + 1), kills)
    assert at_work >= 0.6
    finish(command(killed))
    outcome, resumed = (json.loads(Path(f"{path}.json").read_text()) for path in (whole, killed))
    assert resumed == outcome
    assert (outcome["nit"], outcome["nfev"]) == (generations, 13 + 12 * generations)
    assert outcome["path"] == {"by_numpy": "python", "by_jax": "jax"}[kind]
    assert {"x", "fun", "population", "mutation_rates", "elite", "log_rate", "evaluations"} <= outcome.keys()
    assert {path.name for path in tmp_path.glob("killed*")} == {"killed", "killed.previous", "killed.json"}


@pytest.mark.parametrize("fun", [by_jax, by_numpy])
def test_limits_of_any_kind_of_number(tmp_path, fun):
    """Numbers of NumPy and JAX, which JSON does not know."""
    limits = {"maxiter": np.int64(7), "maxfun": jnp.int32(500), "target": jnp.float32(-1), "maxtime": np.float32(99)}
    result = minimize(fun, checkpoint=tmp_path / "run", patience=np.int16(50), **limits)
    assert result.nit == 7
    assert minimize(fun, checkpoint=tmp_path / "run", resume=True, maxiter=9).nit == 9


def test_a_checkpoint_that_cannot_be_written_does_not_cost_the_result(tmp_path):
    home = tmp_path / "home"
    home.mkdir()

    def remove_the_directory(r):
        shutil.rmtree(home, ignore_errors=True)

    with pytest.warns(RuntimeWarning, match="a checkpoint was not written, and the run goes on: .*cannot be written"):
        result = minimize(checkpoint=gesmr.Checkpoint(home / "run", every=20), callback=remove_the_directory)
    assert result.nit == 30


def test_resuming_leaves_the_files_of_others_alone(tmp_path):
    minimize(checkpoint=tmp_path / "run", maxiter=3)
    ours = ["run.4711-140000.partial"]
    others = ["run.new", "run.partial", "run.4711.partial", "run.4711-140000.partial.csv", "other.4711-140000.partial"]
    for name in (*ours, *others):
        (tmp_path / name).write_text("something")
    minimize(checkpoint=tmp_path / "run", resume=True, maxiter=5)
    assert sorted(os.listdir(tmp_path)) == sorted(["run", "run" + PREVIOUS, *others])


# another function


@pytest.mark.parametrize("fun", [by_jax, by_numpy])
def test_another_function_is_refused(tmp_path, fun):
    minimize(fun, checkpoint=tmp_path / "run", maxiter=5)
    before = (tmp_path / "run").read_bytes()
    with pytest.raises(gesmr.CheckpointError, match=r"another run: fun has .* at the best solution"):
        minimize(lambda x: 2 * fun(x), checkpoint=tmp_path / "run", resume=True)
    assert (tmp_path / "run").read_bytes() == before
    assert minimize(lambda x: fun(x) + 0, checkpoint=tmp_path / "run", resume=True).nit == 30


def test_a_function_that_is_not_sure_of_its_value_is_not_refused(tmp_path):
    generator = np.random.default_rng(0)

    def noisy(x):
        return by_numpy(x) + generator.normal()

    minimize(noisy, checkpoint=tmp_path / "run", maxiter=5)
    assert minimize(noisy, checkpoint=tmp_path / "run", resume=True).nit == 30


def test_a_finished_run_is_not_evaluated(tmp_path):
    minimize(checkpoint=tmp_path / "run", maxiter=5)

    def never(x):
        raise AssertionError

    assert minimize(never, checkpoint=tmp_path / "run", resume=True, maxiter=5).nit == 5


# two at a time


def test_one_run_at_a_time(tmp_path):
    """Another run with the same checkpoint is refused while the first goes on, and welcome afterwards."""
    refused = []

    def again(result):
        if not refused:
            with pytest.raises(gesmr.CheckpointError, match="in use") as error:
                minimize(checkpoint=tmp_path / "run", resume=True)
            refused.append(error)

    minimize(checkpoint=tmp_path / "run", callback=again, maxiter=3)
    assert refused
    assert minimize(checkpoint=tmp_path / "run", resume=True).nit == 30
    assert {path.name for path in tmp_path.iterdir()} == {"run", "run" + PREVIOUS}


def test_two_processes_and_one_checkpoint(tmp_path):
    """One of them runs; the other ends with a sentence, and nothing is lost."""
    script = tmp_path / "script.py"
    script.write_text(
        textwrap.dedent("""
        import sys, time
        import numpy as np
        import gesmr

        def fun(x):
            return float(np.sum(x**2))

        def wait(result):
            print("running", flush=True)
            time.sleep(float(sys.argv[2]))

        options = {"checkpoint": gesmr.Checkpoint(sys.argv[1], every=1), "resume": True, "maxiter": 3}
        gesmr.minimize(fun, np.ones(3), rng=0, popsize=5, callback=wait, **options)
    """)
    )
    command = [sys.executable, script, tmp_path / "run"]
    with subprocess.Popen([*command, "60"], stdout=subprocess.PIPE, text=True) as first:
        assert first.stdout.readline() == "running\n"
        second = subprocess.run([*command, "0"], capture_output=True, text=True, check=False, timeout=120)
        first.kill()
    assert second.returncode == 1
    assert "is in use" in second.stderr
    third = subprocess.run(
        [*command, "0"], capture_output=True, text=True, check=True, timeout=120
    )  # the dead hold nothing
    assert third.stdout
    assert gesmr.Optimizer.load(tmp_path / "run").result.nit == 3


def test_two_optimisers_save_to_one_file(tmp_path):
    """Whoever is last wins; neither fails, and what is there is whole at any time."""
    optimizers = [optimizer(rng=seed) for seed in (1, 2)]
    path = tmp_path / "run"
    for one in optimizers:
        ask_and_tell(one, 1)
        one.save(path)
    with ThreadPoolExecutor(3) as pool:
        saving = [pool.submit(lambda one=one: [one.save(path) for _ in range(40)]) for one in optimizers]
        while not all(one.done() for one in saving):
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # it may be the previous one, between two names
                assert archive.read(path)[0]["setup"]["seed"] in (1, 2)
        for one in saving:
            one.result()
    assert {entry.name for entry in tmp_path.iterdir()} == {"run", "run" + PREVIOUS}


# forged


def forged(path, change):
    """The checkpoint as somebody who knows its format would change it: the checksum is right again."""
    meta, arrays = archive.read(path)
    meta.pop("format")
    change(meta, arrays)
    for old in (path, path.with_name(path.name + PREVIOUS)):
        old.unlink(missing_ok=True)
    archive.write(path, meta, arrays)


def each_entry_forged(meta, arrays):
    """Changes of one entry each: gone, of another kind, of another size, out of range."""

    def at(place, value):
        def change(meta, arrays):
            *way, last = place
            table = meta
            for name in way:
                table = table[name]
            if value is None:
                table.pop(last, None)
            else:
                table[last] = value

        return change

    def array(name, make):
        def change(meta, arrays):
            found = make(arrays.pop(name))
            if found is not None:
                arrays[name] = found

        return change

    names = [name for name in ("setup", "limits", "progress", "machine", "pending") if name in meta]
    tables = [((), meta), *(((name,), meta[name]) for name in names)]
    for way, table in tables:
        for name in table:
            for value in (None, "?", -5, 2**70, [], {"class": "os.system"}, 1e400):
                yield f"{'.'.join((*way, name))} = {value!r:.20}", at((*way, name), value)
    makes = {
        "gone": lambda a: None,
        "text": lambda a: np.array(["?"]),
        "longer": lambda a: np.concatenate([np.atleast_1d(a), np.atleast_1d(a)]),
        "empty": lambda a: a[..., :0] if a.ndim else np.zeros(0, a.dtype),
        "large": lambda a: np.full_like(a, 2**31 - 1 if a.dtype.kind in "iu" else 1),
        "not finite": lambda a: np.full_like(a, np.nan) if a.dtype.kind == "f" else None,
        "complex": lambda a: a.astype(complex),
        "turned round": lambda a: ~a if a.dtype == bool else a[::-1] if a.ndim else a,
    }
    for name in arrays:
        for what, make in makes.items():
            yield f"{name}: {what}", array(name, make)


def in_parts():
    """An optimiser with candidates that are told, out, late, from elsewhere and to come."""
    opt = optimizer(bounds=(-3, 3))
    opt.tell(opt.ask(), many_by_numpy(opt.ask()))
    xs, siblings = opt.ask(12), opt.ask(3)
    for some in (xs[:5], siblings[-2:], xs[5:7]):
        opt.tell(some, many_by_numpy(some))
    opt.inject(np.ones((2, D)), [5.0, 6.0])
    opt.inject(np.zeros((2, D)))
    return opt


@pytest.mark.parametrize("kind", ["told", "first", "in parts", pytest.param("ran", marks=pytest.mark.slow)])
def test_what_is_forged_ends_in_an_error_of_checkpoints(tmp_path, kind):
    """Or is taken, where it says something that could be true; nothing else happens."""
    path, whole = tmp_path / "run", tmp_path / "whole"
    fun, generations = (by_jax if kind == "ran" else by_numpy), (0 if kind == "first" else 2)
    if kind in ("first", "in parts"):
        (optimizer(popsize=13) if kind == "first" else in_parts()).save(path)
    else:
        minimize(fun, checkpoint=path, maxiter=generations)
    shutil.copy(path, whole)
    taken, refused = [], 0
    for what, change in each_entry_forged(*archive.read(whole)):
        shutil.copy(whole, path)
        forged(path, change)
        try:
            opt = gesmr.Optimizer.load(path)
            asked = [np.asarray(opt.ask(n)) for n in (2, None)]
            if what.startswith("pending"):
                assert all((np.abs(xs) <= 3).all() for xs in asked)
                for _ in range(2):
                    opt.tell(opt.ask(), many_by_numpy(opt.ask()))
            taken.append(what)
        except gesmr.CheckpointError:
            refused += 1
        except Exception as error:
            raise AssertionError(f"{what}: {type(error).__name__}: {error}") from error
    assert refused > 2 * len(taken), taken


def test_sizes_are_checked_before_anything_is_made(tmp_path):
    """A member that says it holds a terabyte, one that unpacks to a gigabyte, and a population that is not there."""
    path = tmp_path / "run"

    def signed(members, compression):
        with zipfile.ZipFile(path, "w", compression) as file:
            for name, content in members.items():
                file.writestr(f"{name}.npy", content)
            file.comment = archive._MARK + b"0" * archive._DIGEST
        with path.open("r+b") as file:
            size = file.seek(0, os.SEEK_END)
            digest = archive._digest(file, size - archive._DIGEST)
            file.seek(size - archive._DIGEST)
            file.write(digest)

    def npy(shape, content):
        header = str({"descr": "<f8", "fortran_order": False, "shape": shape}).encode()
        return b"\x93NUMPY\x01\x00" + (len(header) + 1).to_bytes(2, "little") + header + b"\n" + content

    for compression, content in (
        (zipfile.ZIP_STORED, npy((2**37,), b"")),
        (zipfile.ZIP_DEFLATED, npy((2**27,), bytes(2**30))),
        (zipfile.ZIP_STORED, npy((-1, -1), bytes(8))),
        (zipfile.ZIP_STORED, b"\x80\x04no array"),
    ):
        signed({"meta": content}, compression)
        tracemalloc.start()
        with pytest.raises(gesmr.CheckpointError, match="cannot be read"):
            gesmr.Optimizer.load(path)
        assert tracemalloc.get_traced_memory()[1] < 2**27
        tracemalloc.stop()

    minimize(checkpoint=tmp_path / "other", maxiter=1)
    forged(tmp_path / "other", lambda meta, arrays: meta["setup"].update(popsize=2**30))
    with pytest.raises(gesmr.CheckpointError, match="must hold its population"):
        gesmr.Optimizer.load(tmp_path / "other")
