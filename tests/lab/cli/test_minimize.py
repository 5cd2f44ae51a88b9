"""`gesmr minimize`, as a user types it."""

import json
import os
import re
import shlex
import signal
import subprocess
import time
import tomllib
import warnings
from pathlib import Path

import numpy as np
import pytest

from helpers.command_line import gesmr, put_module
from helpers.processes import heeding

MODULE = """
import shutil
import jax.numpy as jnp
import numpy as np

def bowl(x):
    return float(np.sum((x - 1) ** 2))

def size(x):
    return float(np.max(np.abs(x)))

def rows(xs):
    assert xs.ndim == 2
    return np.sum((xs - 1) ** 2, axis=1)

def hill(x):
    return -bowl(x)

def broken(x):
    raise ValueError("my own fault")

def half(x):
    if x[0] > 0.5:
        raise ValueError("too far out")
    return bowl(x)

def compiled(x):
    return jnp.sum(jnp.abs(x / 1e38))

def without_a_home(x):
    shutil.rmtree("kept", ignore_errors=True)
    return bowl(x)

def tuned(config):
    penalty = 0 if config["act"] == "tanh" else 1
    return abs(np.log10(config["lr"]) + 2) + abs(config["layers"] - 3) + penalty + float(np.sum(config["w"] ** 2))

def nothing(x):
    return float("nan")

three = 3
"""
SMALL = ["--dim", "3", "--popsize", "13", "--seed", "4", "--maxiter", "20"]


@pytest.fixture
def here(tmp_path, monkeypatch):
    """A working directory with a module in it."""
    put_module(monkeypatch, tmp_path, "mine_to_minimize", MODULE)
    return tmp_path


def run(name, *arguments):
    return gesmr("minimize", f"mine_to_minimize:{name}", *arguments)


def warned(name, *arguments):
    """With warnings as they are outside of tests."""
    with warnings.catch_warnings():
        warnings.simplefilter("default")
        return run(name, *arguments)


def as_json(name, *arguments):
    code, out, _ = run(name, *SMALL, "--json", *arguments)
    assert code == 0
    return json.loads(out)


def test_text(here):
    code, out, _ = run("bowl", *SMALL)
    assert code == 0
    assert "All 20 generations were run." in out
    assert "evaluated by python; seed 4" in out


def test_json_bounds_and_repeating(here):
    found = as_json("bowl", "--bounds", "-5,5")
    assert found["nfev"] == 13 + 20 * 12
    assert found["stop"] == {"maxiter": 20}
    np.testing.assert_allclose(np.sum((np.array(found["x"]) - 1) ** 2), found["fun"])
    again = as_json("rows", "--bounds", "-5,5", "--vectorized")
    assert again["x"] == found["x"]
    up = as_json("hill", "--bounds", "-5,5", "--direction", "maximize")
    assert up["x"] == found["x"]
    assert up["fun"] == -found["fun"]


SPACE = """
[lr]
type = "float"
low = 1e-5
high = 1
log = true
[layers]
type = "int"
low = 1
high = 8
[act]
type = "choice"
options = ["relu", "tanh"]
[w]
type = "float"
low = -1
high = 1
shape = [2]
"""


def test_named_variables_from_a_file(here):
    (here / "space.toml").write_text(SPACE)
    (here / "space.json").write_text(json.dumps(tomllib.loads(SPACE)))
    options = ["--space", "space.toml", "--popsize", "13", "--seed", "4", "--maxiter", "60"]
    code, out, said = run("tuned", *options, "--json", "--checkpoint", "run", "--log", "run.jsonl")
    assert code == 0, said
    found = json.loads(out)
    assert list(found["x"]) == ["lr", "layers", "act", "w"]
    assert (found["x"]["layers"], found["x"]["act"]) == (3, "tanh")
    assert found["fun"] < 0.5  # it is 8 at worst, and 0 at best
    assert len((here / "run.jsonl").read_text().splitlines()) == 60
    code, out, _ = run("tuned", "--space", "space.json", *options[2:])
    assert code == 0
    assert f"at           lr = {found['x']['lr']:.6g}, layers = 3, act = 'tanh', w = [" in out
    code, out, _ = run("tuned", *options[:-1], "70", "--json", "--checkpoint", "run", "--resume")
    assert code == 0
    code, whole, _ = run("tuned", *options[:-1], "70", "--json")
    assert json.loads(out)["x"] == json.loads(whole)["x"]


@pytest.mark.parametrize(
    ("text", "arguments", "words"),
    [
        (SPACE, ["--dim", "3"], "--space says what the variables are, and cannot be given with --dim"),
        (SPACE, ["--bounds", "0,1"], "cannot be given with --bounds"),
        (SPACE, ["--x0", "1"], "cannot be given with --x0"),
        (SPACE.replace("float", "real"), [], "variable 'lr' must have a type"),
        (SPACE.replace("[lr]", "[lr"), [], "space.toml does not describe a space"),
        (SPACE.replace("low = 1e-5", "low = 2"), [], "variable 'lr': low must be at most high"),
        (None, [], "No such file"),
    ],
)
def test_a_wrong_space_ends_in_one_line(here, text, arguments, words):
    if text is not None:
        (here / "space.toml").write_text(text)
    code, out, said = run("tuned", "--space", "space.toml", "--maxiter", "3", *arguments)
    assert (code, out) == (1 if text is None else 2, "")
    assert words in said
    assert "Traceback" not in said


def test_a_run_that_ends_by_itself(here):
    options = ["--dim", "2", "--bounds", "-5,5", "--popsize", "13", "--seed", "4", "--json"]
    for said, reasons in (("--xtol", {"xtol"}), ("--ftol", {"ftol"}), ("--tol", {"xtol", "ftol"})):
        code, out, _ = run("bowl", *options, said, "1e-3")
        found = json.loads(out)
        assert code == 0
        assert found["stop"].keys() <= reasons
        assert 13 < found["nfev"] < 2000


def test_variables_must_be_said(here):
    code, _, said = run("bowl", "--maxiter", "3")
    assert code == 2
    assert "--dim or --space must be given" in said


def test_checkpoint_resume_and_log(here):
    whole = as_json("bowl")
    code, _, said = run("bowl", *SMALL[:-1], "7", "--checkpoint", "run", "--every", "3", "--log", "run.jsonl")
    assert code == 0, said
    code, _, said = run("bowl", *SMALL, "--checkpoint", "run")
    assert code == 2
    assert "--resume continues it" in said
    seedless = [option for option in SMALL if option not in ("--seed", "4")]
    code, out, _ = run("bowl", *seedless, "--checkpoint", "run", "--resume", "--json", "--log", "run.jsonl")
    assert code == 0
    assert json.loads(out)["x"] == whole["x"]
    lines = [json.loads(line) for line in (here / "run.jsonl").read_text().splitlines()]
    assert [line["nit"] for line in lines] == list(range(1, 21))


def test_where_x0_comes_from(here):
    np.save(here / "start.npy", np.ones(3))
    assert as_json("bowl", "--x0", "start.npy")["fun"] == 0.0
    assert as_json("bowl", "--x0", "1")["fun"] == 0.0
    half_open = as_json("bowl", "--bounds", "2,inf", "--maxiter", "1")
    assert min(half_open["x"]) >= 2


@pytest.mark.parametrize("name", ["size", "compiled"])
@pytest.mark.parametrize("bounds", ["-1e308,1e308", "-1e100,1e100", "-1e308,5"])
def test_bounds_wider_than_a_number_can_say(here, name, bounds):
    """A range that overflows, or does so in the single precision of `compiled`: used, or refused by name."""
    code, out, said = run(name, *SMALL, "--json", f"--bounds={bounds}")
    if code:
        assert (code, out) == (2, "")
        assert said.startswith("error: bounds must have a range")
    else:
        low, high = map(float, bounds.split(","))
        assert low <= min(json.loads(out)["x"])
        assert max(json.loads(out)["x"]) <= high


def test_a_checkpoint_whose_directory_vanishes_does_not_cost_the_result(here):
    (here / "kept").mkdir()
    code, out, said = warned("without_a_home", *SMALL, "--json", "--checkpoint", "kept/run", "--every", "3")
    assert code == 0
    assert json.loads(out)["x"] == as_json("bowl")["x"]
    assert re.search("^warning: a checkpoint was not written, and the run goes on: .*No such file", said, re.M)


def test_exceptions(here):
    code, out, said = run("broken", *SMALL)
    assert (code, out) == (1, "")
    _shows_the_users_lines(said)
    code, out, said = warned("half", *SMALL, "--json", "--on-error", "worst")
    assert code == 0
    assert json.loads(out)["errors"] > 0
    assert re.search("^warning: .*too far out", said, re.M)


def _shows_the_users_lines(said):
    files = re.findall(r'File "(.+?)", line (\d+)', said)
    line = MODULE.splitlines().index('    raise ValueError("my own fault")') + 1
    assert [(Path(path).name, int(number)) for path, number in files] == [("mine_to_minimize.py", line)]
    assert "ValueError: my own fault\n" in said
    assert "GESMR_TRACEBACK=1 shows all" in said


def test_all_frames_on_request(here, monkeypatch):
    monkeypatch.setenv("GESMR_TRACEBACK", "1")
    code, _, said = run("broken", *SMALL)
    assert code == 1
    assert said.count('File "') > 5
    assert "gesmr/optimize/" in said


def test_an_error_within_a_library_that_compiled_code_calls(here):
    (here / "mine_compiled.py").write_text(
        "import jax.numpy as jnp\ndef f(x):\n    return part(x)\ndef part(x):\n    return x @ jnp.ones(7)\n"
    )
    code, _, said = gesmr("minimize", "mine_compiled.py:f", *SMALL)
    assert code == 1
    assert re.findall(r"line (\d+), in (\w+)", said)[-2:] == [("3", "f"), ("5", "part")]
    assert "site-packages" not in said


def test_a_function_of_a_file(here):
    (here / "deep").mkdir()
    (here / "deep" / "mine_in_a_file.py").write_text(MODULE)
    found = {}
    for name in ("mine_to_minimize:bowl", "mine_to_minimize.py:bowl", here / "deep" / "mine_in_a_file.py:bowl"):
        code, out, said = gesmr("minimize", name, *SMALL, "--json")
        assert code == 0, said
        found[name] = json.loads(out)["x"]
    assert len(set(map(str, found.values()))) == 1


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("absent.py:bowl", "there is no file absent.py"),
        ("json.py:loads", "json.py has the name of another module"),
        ("mine_to_minimize.py", "must be written module:function or file.py:function"),
        ("wrong.py:f", "wrong.py cannot be imported: SyntaxError"),
    ],
)
def test_files_that_hold_no_function(here, name, words):
    (here / "json.py").write_text("loads = abs\n")
    (here / "wrong.py").write_text("def f(:\n")
    code, out, said = gesmr("minimize", name, *SMALL)
    assert (code, out) == (2, "")
    assert words in said
    assert len(said.splitlines()) == 1


def test_bounds_of_each_variable(here):
    options = [option for option in SMALL if option not in ("--dim", "3")]
    code, out, said = run("bowl", *options, "--bounds", "-5,-2;0,0.5;3,inf", "--json")
    assert code == 0, said
    x = json.loads(out)["x"]
    np.testing.assert_allclose(x, [-2, 0.5, 3], atol=0.2)
    assert x[0] <= -2
    assert 0 <= x[1] <= 0.5
    assert x[2] >= 3
    same = as_json("bowl", "--bounds", "-5,5;-5,5;-5,5")
    assert same["x"] == as_json("bowl", "--bounds", "-5,5")["x"]


def test_nothing_finite_is_a_failure(here):
    code, out, said = warned("nothing", *SMALL, "--patience", "5", "--json")
    assert code == 1
    assert json.loads(out)["fun"] is None
    (line,) = [line for line in said.splitlines() if "arning" in line]
    assert re.match("warning: .*finite", line)  # no file and no line of the library's


def test_a_target_that_is_missed_is_a_failure(here):
    code, out, _ = run("bowl", *SMALL, "--json", "--target", "-1")
    assert code == 1
    assert json.loads(out)["success"] is False
    assert as_json("bowl", "--target", "3")["stop"] == {"target": 3}


@pytest.mark.parametrize(
    ("name", "arguments", "words"),
    [
        ("bowl", ["--popsize", "1"], "popsize must be an integer from 2 to 2147483647, got 1"),
        ("bowl", ["--popsize", "many"], "got 'many'"),
        ("bowl", ["--dim", "0"], "'0'"),
        ("bowl", ["--dim", "1000000000000000"], "Unable to allocate"),
        ("bowl", ["--seed", "-1"], "'--seed'"),
        ("bowl", ["--init-std", "-1"], "init_std must be a finite number above 0"),
        ("bowl", ["--bounds", "5"], "--bounds must be two numbers"),
        ("bowl", ["--bounds", "5,1"], "low ≤ high"),
        ("bowl", ["--bounds", "0,1;0,1"], "--bounds must have one pair or --dim = 3 of them, got 2"),
        ("bowl", ["--bounds", "0,1;0;0,1"], "--bounds must be two numbers"),
        ("bowl", ["--bounds", "0,1;3,2;0,1"], "low ≤ high"),
        ("bowl", ["--x0", "absent.npy"], "--x0 must be a number or a .npy file"),
        ("bowl", ["--controller", "GESMRR"], "GESMRR"),
        ("bowl", ["--direction", "up"], "direction must be one of 'minimize', 'maximize', got 'up'"),
        ("bowl", ["--resume"], "need --checkpoint"),
        ("bowl", ["--timeout", "3"], "--timeout needs --workers"),
        ("bowl", ["--workers", "bob"], "workers must be"),
        ("bowl", ["--workers", "0"], "workers must be"),
        ("bowl", ["--workers", "2", "--timeout", "-1"], "timeout must be"),
        ("bowl", ["--checkpoint", "absent/run"], "absent/run"),
        ("three", [], "must be a function, got int"),
        ("absent", [], "has no 'absent'"),
    ],
)
def test_bad_options_end_in_one_line(here, name, arguments, words):
    code, out, said = run(name, *SMALL, *arguments)
    assert code == 2
    assert words in said
    assert not out
    assert "Traceback" not in said


def test_a_file_that_cannot_be_written(here):
    code, out, said = run("bowl", *SMALL, "--log", "absent/log")
    assert (code, out) == (1, "")
    assert said == "error: absent/log cannot be used: No such file or directory\n"


@pytest.mark.slow
def test_workers(here):
    found = as_json("bowl", "--workers", "2", "--timeout", "60", "--maxiter", "5")
    assert found["path"] == "python, 2 processes"
    assert found["x"] == as_json("bowl", "--maxiter", "5")["x"]
    code, _, said = run("broken", *SMALL, "--workers", "2")
    assert code == 1
    _shows_the_users_lines(said)


@pytest.mark.slow
@pytest.mark.parametrize("checkpoint", ["my run", None])
def test_interrupting_says_how_to_go_on(here, checkpoint):
    (here / "slow_to_minimize.py").write_text(
        "import pathlib, time\n"
        "def f(x):\n    pathlib.Path('called').touch()\n    time.sleep(1e-3)\n    return float(x @ x)\n"
    )
    kept = [] if checkpoint is None else ["--checkpoint", checkpoint, "--every", "1"]
    options = [*SMALL[:4], "--maxtime", "60", *kept, "--json"]
    command = heeding("-m", "gesmr", "minimize", "slow_to_minimize.py:f", *options)
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    deadline = time.monotonic() + 60
    while not os.path.exists(checkpoint or "called") and time.monotonic() < deadline:
        time.sleep(0.05)
    time.sleep(0.5)
    process.send_signal(signal.SIGINT)
    out, said = process.communicate(timeout=60)
    assert process.returncode == 130
    found = json.loads(out)
    assert found["stop"] == {"interrupted": True}
    if checkpoint is None:
        assert "nothing was kept: --checkpoint FILE keeps a run" in said
        return
    line = said.partition("To continue:\n")[2].strip()
    assert shlex.split(line)[1:] == ["-m", "gesmr", "minimize", "slow_to_minimize.py:f", *options, "--resume"]
    shorter = line.replace("--maxtime 60", "--maxtime 1")
    again = subprocess.run(shorter, check=False, shell=True, capture_output=True, text=True, timeout=60)
    assert again.returncode == 0, again.stderr
    assert json.loads(again.stdout)["nit"] >= found["nit"]
