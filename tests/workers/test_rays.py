"""Evaluation on a real Ray cluster of two nodes, on this machine; one of them is killed."""

import json
import threading
import time

import numpy as np
import pytest

import gesmr
from gesmr import _ray
from helpers import misbehaving
from helpers.cluster import Nodes
from helpers.evaluation import INNOCENT, SPHERES, assert_same, lines_to_copy, minimize, values
from helpers.processes import Program, wait_until

pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore:os.fork:RuntimeWarning")]  # to start programs
pytest.importorskip("ray")


@pytest.fixture(scope="module")
def nodes():
    found = Nodes()
    yield found
    found.close()


@pytest.fixture(scope="module")
def actors(nodes):
    with gesmr.Ray(nodes.address, cpus=2, actors=2) as actors:
        yield actors


@pytest.fixture(scope="module")
def hasty(nodes, actors):
    """The same, with one actor that does not have much time, and half a CPU, for which there is room."""
    with gesmr.Ray(nodes.address, cpus=0.5, actors=1, timeout=1.0) as hasty:
        yield hasty


OUR_OWN = """
import json, os, stat, tempfile
from pathlib import Path
from gesmr import _ray

_ray._found_here = lambda: False  # whatever else runs on this machine
os.umask(0)
with _ray.connected(num_cpus=1, object_store_memory=10**8) as ray:
    import psutil  # Ray has it

    @ray.remote
    class Actor:
        def ready(self):
            pass

    actor = Actor.remote()
    ray.get(actor.ready.remote())
    ours = {os.getpid(), *(program.pid for program in psutil.Process().children(recursive=True))}
    listen = [
        (psutil.Process(connection.pid).name(), connection.laddr.ip)
        for connection in psutil.net_connections("tcp")
        if connection.pid in ours and connection.status == psutil.CONN_LISTEN
    ]
    modes = {path.name[:10]: stat.S_IMODE(path.stat().st_mode) for path in Path(tempfile.gettempdir()).iterdir()}
print(json.dumps((listen, modes)))
"""


def test_a_cluster_of_our_own_is_private(tmp_path):
    """It listens on the loopback interface alone, and other users cannot look into its directory."""
    program = Program(OUR_OWN, tmp_path)
    out, err, status = program.finish()
    program.assert_nothing_left()
    assert status == 0, err
    listen, modes = json.loads(out)
    assert {"gcs_server", "raylet", "ray::Actor"} <= {name for name, _ in listen}
    assert {address for _, address in listen} <= {"127.0.0.1", "::ffff:127.0.0.1", "::1"}
    assert modes == {"gesmr-ray-": 0o700}


def test_results_are_those_of_no_workers(actors):
    shift = np.arange(3.0)

    def fun(x):  # is sent along: Ray has what that takes
        return misbehaving.sphere(x - shift)

    result = minimize(fun, workers=actors)
    assert result.path == "python, 2 actors of Ray"
    assert_same(result, minimize(fun))


def test_both_nodes_work_and_what_was_there_before_is_there_after(actors, nodes, tmp_path):
    """The second may still be starting when the first has done it all."""
    wait_until(lambda: values(actors, misbehaving.somewhere, tmp_path, 0.05) and len(list(tmp_path.iterdir())) == 2)
    with _ray.connected("ray") as ray:  # the connection that there is
        assert len(ray.nodes()) == 2
    assert ray.is_initialized()


def test_the_lines_of_the_docs_to_copy(actors):
    """`actors` has connected this process, so that "ray" is that cluster."""
    names = {"fun": misbehaving.sphere, "x0": [1.0, 2.0], "gesmr": gesmr}
    for lines in lines_to_copy():
        if "ray" in lines:
            exec(lines.replace("x0,", "x0, maxiter=2,"), names)
            assert names["result"].path == "python, actors of Ray"


def test_exceptions_come_back_as_they_are_the_first_one_first(actors):
    with pytest.raises(ZeroDivisionError, match="at 14") as error:
        values(actors, misbehaving.raises)
    assert "misbehaving.py" in error.value.__notes__[0]
    by, found = values(actors, misbehaving.raises, on_error="worst")
    alone, expected = values(None, misbehaving.raises, on_error="worst")
    np.testing.assert_array_equal(found, expected)
    assert (by.errors, by.first_error) == (alone.errors, alone.first_error)


@pytest.mark.parametrize("fun", [misbehaving.text, misbehaving.array])
def test_nonsense_is_refused_as_without_workers(actors, fun):
    with pytest.raises(TypeError, match="fun must return one real number"):
        values(actors, fun)


def test_a_candidate_that_kills_workers_is_given_up_after_three_tries(actors, tmp_path):
    by, found = values(actors, misbehaving.dies, tmp_path / "calls", on_error="worst")
    np.testing.assert_array_equal(found, np.where(INNOCENT, SPHERES, np.nan))
    assert by.errors == 1
    assert "its actor died" in str(by.first_error)
    assert (tmp_path / "calls").read_text() == "xxx"


def test_a_candidate_that_hangs_is_given_up_after_three_tries(hasty, tmp_path):
    by, found = values(hasty, misbehaving.hangs, tmp_path / "calls", on_error="worst")
    np.testing.assert_array_equal(found, np.where(INNOCENT, SPHERES, np.nan))
    assert (by.errors, by.first_error) == (1, "no answer within 1 s, in the last of 3 tries")
    assert (tmp_path / "calls").read_text() == "xxx"


def test_what_cannot_be_sent_is_said_before_anything_is_started():
    workers = gesmr.Ray("ray")
    with pytest.raises(TypeError, match=r"args\[0\] \(a lock\) cannot be sent to workers"):
        minimize(args=(threading.Lock(),), workers=workers)
    assert not workers._is_open


def test_what_cannot_be_loaded_is_said_before_any_work(actors):
    with pytest.raises(gesmr.WorkerError, match="a worker cannot load fun: ImportError: not here"):
        minimize(misbehaving.Unloadable(), workers=actors)


@pytest.mark.filterwarnings("ignore:os.fork:RuntimeWarning")  # to start another node
def test_a_node_is_killed_in_the_middle_of_a_generation(actors, nodes, tmp_path):
    """Everything is as if nothing had happened; a new node then gets work."""
    ours = actors._ray.get_runtime_context().get_node_id()

    def others():
        return [path for path in tmp_path.iterdir() if path.name != ours]

    def kill():
        wait_until(others)
        nodes.kill()

    killer = threading.Thread(target=kill)
    killer.start()
    options = {"fun": misbehaving.somewhere, "args": (tmp_path, 0.1), "popsize": 41}
    result = minimize(**options, maxiter=2, workers=actors)
    killer.join()
    assert_same(result, minimize(misbehaving.sphere, popsize=41, maxiter=2))
    wait_until(lambda: sum(node["Alive"] for node in actors._ray.nodes()) == 1)
    for path in others():
        path.unlink()
    nodes.add()
    until = time.monotonic() + 120
    while not others():
        np.testing.assert_array_equal(values(actors, misbehaving.somewhere, tmp_path, 0.05)[1], SPHERES)
        assert time.monotonic() < until, "the new node gets no work"
