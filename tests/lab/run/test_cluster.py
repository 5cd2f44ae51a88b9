"""Studies on a real Ray cluster of two nodes, on this machine; one of them is killed."""

import io
import os
import re
import signal
import subprocess
import sys
import textwrap
import threading
from pathlib import Path

import pytest
from rich.console import Console

from gesmr.lab.errors import LabError
from gesmr.lab.run import runner
from gesmr.lab.run.store import Store
from helpers.cluster import Nodes
from helpers.processes import finding_helpers, heeding, wait_until
from helpers.small_study import Power, SmallStudy
from helpers.studies import arrays_in, devices_of

# JAX warns of forks, and Ray forks to start the programs of a node
pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore:os.fork:RuntimeWarning")]
pytest.importorskip("ray")
STUDY = SmallStudy()
FUNCTIONS = [
    "functions",
    "--dims",
    "2",
    "--seeds",
    "1",
    "--functions",
    "sphere,linear,ackley",
    "--methods",
    "GESMR,FMR",
]


@pytest.fixture(scope="module")
def nodes():
    """Their processes can import what is here."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONPATH", finding_helpers()["PYTHONPATH"])
        found = Nodes()
        yield found
        found.close()


def run(specs, store, nodes):
    """A run on the cluster, one group at a time on each node, and what it says."""
    said = io.StringIO()
    console = Console(file=said, width=200)
    computed = runner.run(STUDY, specs, store, console=console, threads=1, cluster=nodes.address)
    return computed, said.getvalue()


def alone(specs, directory):
    """The store of a run without Ray."""
    store = Store(directory, create=True)
    runner.run(STUDY, specs, store, console=Console(quiet=True))
    return store


def nodes_of(store):
    return {re.search(r"Ray node (\w+)", place)[1] for place in devices_of(store.directory)}


def gone(pids):
    return not any(Path(f"/proc/{pid}").exists() for pid in pids)


def waiting(flag):
    """Processes that have begun to wait for `flag`."""
    return {int(path.suffix[1:]) for path in flag.parent.glob(f"{flag.name}.*")}


def two_that_wait(directory):
    """The study with two groups that wait for a flag, and that."""
    flag = directory / "go"
    return [Power(0, f"wait:{flag}"), Power(1, f"wait:{flag}"), *STUDY.specs()[2:]], flag


def test_both_nodes_compute_and_the_store_is_that_of_one_machine(nodes, tmp_path):
    specs, flag = two_that_wait(tmp_path)
    store = Store(tmp_path / "ray", create=True)
    threading.Thread(target=lambda: wait_until(lambda: len(waiting(flag)) == 2) or flag.touch(), daemon=True).start()
    computed, said = run(specs, store, nodes)
    assert computed == 8
    assert "[8/8 runs] power" in said
    assert len(nodes_of(store)) == 2
    assert arrays_in(store.directory) == arrays_in(alone(specs, tmp_path / "alone").directory)
    assert store.sessions()[0]["runs"] == 8
    assert not list(store.directory.glob("groups/*.lock"))
    assert run(specs, store, nodes) == (0, "")


def test_a_node_is_killed_and_its_group_computed_elsewhere(nodes, tmp_path):
    """Both nodes wait in a group when one of them is killed; a new one is used."""
    specs, flag = two_that_wait(tmp_path)
    store = Store(tmp_path / "ray", create=True)

    found = []
    running = threading.Thread(target=lambda: found.append(run(specs, store, nodes)), daemon=True)
    running.start()
    wait_until(lambda: len(waiting(flag)) == 2)
    nodes.kill()
    nodes.add()
    wait_until(lambda: len(waiting(flag)) == 3)
    flag.touch()
    running.join()
    ((computed, said),) = found
    assert computed == 8
    assert said.count("its node was lost, and another one will compute it") == 1
    assert arrays_in(store.directory) == arrays_in(alone(specs, tmp_path / "alone").directory)
    wait_until(lambda: gone(waiting(flag)))


def test_a_group_that_fails_says_so_and_what_is_finished_is_kept(nodes, tmp_path):
    store = Store(tmp_path / "ray", create=True)
    with pytest.raises(ArithmeticError, match="no power") as error:
        run([*STUDY.specs(), Power(8, "raise")], store, nodes)
    assert error.value.__notes__ == ["in power 8, on a node of the Ray cluster"]
    assert len(arrays_in(store.directory)) >= 6  # all but what the other node was at
    assert not list(store.directory.glob("groups/*.lock"))
    missing = 8 - len(arrays_in(store.directory))
    assert run(STUDY.specs(), store, nodes)[0] == missing


def test_a_group_that_ends_its_process_is_given_up(nodes, tmp_path):
    store = Store(tmp_path / "ray", create=True)
    with pytest.raises(LabError, match=r"power 9: 3 nodes of the Ray cluster were lost while they computed it"):
        run([Power(9, "exit")], store, nodes)
    assert not list(store.directory.glob("groups/*"))


def test_what_another_process_computes_is_left_to_it(nodes, tmp_path):
    """A group that is claimed here, and finished here when all others are."""
    store = Store(tmp_path / "shared", create=True)
    (first, *_), elsewhere = STUDY.jobs(STUDY.specs(), 0), alone(STUDY.specs(), tmp_path / "alone")
    found = []
    with store.claim(first.specs) as mine:
        assert mine
        thread = threading.Thread(target=lambda: found.append(run(STUDY.specs(), store, nodes)), daemon=True)
        thread.start()
        wait_until(lambda: len(arrays_in(store.directory)) == 7)
        (group,) = (group for group in elsewhere.jobs() if group.specs[0]["number"] == 0)
        store.write(first.specs, group.arrays, {"on": "here"})
    thread.join()
    assert "power 0, by another process" in found[0][1]
    assert arrays_in(store.directory) == arrays_in(elsewhere.directory)


SCRIPT = textwrap.dedent("""
    import sys
    from gesmr.lab.run import runner
    from gesmr.lab.run.store import Store
    from helpers.small_study import Power, SmallStudy
    address, directory, flag = sys.argv[1:]
    specs = [Power(0), Power(1), Power(2), Power(3, "wait:" + flag)]
    runner.run(SmallStudy(), specs, Store(directory, create=True), threads=1, cluster=address)
""")


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGKILL])
def test_when_the_runner_ends_so_do_its_actors_and_another_goes_on(number, nodes, tmp_path):
    flag, directory = tmp_path / "go", tmp_path / "ray"
    command = heeding("-c", SCRIPT, nodes.address, directory, flag)
    with subprocess.Popen(command, env=finding_helpers(), stderr=subprocess.PIPE, text=True) as process:
        wait_until(lambda: waiting(flag) and len(arrays_in(directory)) == 3)
        process.send_signal(number)
        said = process.communicate(timeout=120)[1]
    assert process.returncode != 0
    assert ("KeyboardInterrupt" in said) == (number == signal.SIGINT)
    wait_until(lambda: gone(waiting(flag)))
    flag.touch()
    specs = [*STUDY.specs()[:3], Power(3, f"wait:{flag}")]
    assert run(specs, Store(directory, create=True), nodes)[0] == 1
    assert len(arrays_in(directory)) == 4


def test_a_study_of_the_paper_by_the_command_while_a_node_is_killed(nodes, tmp_path):
    def command(out, *how):
        line = [sys.executable, "-m", "gesmr.lab.cli", "study", "run", *FUNCTIONS, "--out", str(out), *how]
        return subprocess.Popen(
            line, stderr=subprocess.PIPE, text=True, env={**os.environ, "RAY_ADDRESS": nodes.address}
        )

    with command(tmp_path / "ray", "--ray", "--threads", "1") as process:
        wait_until(lambda: arrays_in(tmp_path / "ray" / "functions"), 300)
        nodes.kill()
        said = process.communicate(timeout=600)[1]
    assert process.returncode == 0, said
    assert "computed now" in said
    nodes.add()
    with command(tmp_path / "alone") as process:
        assert process.wait(600) == 0, process.stderr.read()
    everything = arrays_in(tmp_path / "alone" / "functions")
    measured = {name for name in everything if name[:24] in times(tmp_path / "alone" / "functions")}
    found = arrays_in(tmp_path / "ray" / "functions")
    assert {name: data for name, data in everything.items() if name not in measured}.items() <= found.items()
    assert len(found) == len(everything)


def times(directory):
    """Groups whose arrays are measured times, which no two runs have in common."""
    return {path.stem for path in directory.glob("groups/*.json") if '"kind": "cost"' in path.read_text()}


def test_an_address_where_nobody_answers(tmp_path):
    line = [sys.executable, "-m", "gesmr.lab.cli", "study", "run", "functions", "--address", "127.0.0.1:1"]
    done = subprocess.run([*line, "--out", str(tmp_path / "runs")], capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert done.stderr.startswith("error: no Ray cluster answers at '127.0.0.1:1'")
