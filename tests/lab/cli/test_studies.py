"""The command line, as a user types it."""

import csv
import json
import re
import shlex
import shutil
import signal
import subprocess
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from gesmr.lab.run.store import Store
from gesmr.lab.studies import STUDIES, Selection
from helpers import PRINTED
from helpers.command_line import gesmr
from helpers.processes import heeding
from helpers.small_study import Power, SmallStudy
from helpers.studies import made_up_group

SMALL = ["--dims", "2", "--seeds", "2", "--functions", "sphere,linear", "--methods", "LAMR-100,FMR,GESMR"]


@pytest.fixture(scope="module")
def home(tmp_path_factory):
    """A directory with a small study in it, run by the command."""
    directory = tmp_path_factory.mktemp("cli") / "runs"
    code, _, said = gesmr("study", "run", "functions", *SMALL, "--out", directory)
    assert code == 0
    assert re.search(r"\[\d+/25 runs\] sphere d=2 GESMR: .* s; .* evaluations/s, ", said)
    assert "25 runs in" in said
    return directory


def test_list():
    code, out, _ = gesmr("study", "list")
    assert code == 0
    assert "functions: " in out
    assert "quick, paper" in out


def test_run_again_finds_everything_there(home):
    code, _, said = gesmr("study", "run", "functions", *SMALL, "--out", home)
    assert code == 0
    assert "all there already" in said


def test_table(home, tmp_path):
    code, out, _ = gesmr("study", "table", "functions", "--out", home)
    assert code == 0
    assert all(f"Table {n}" in out for n in (1, 2, 3))
    assert {p.name for p in (home / "tables" / "functions").iterdir()} == {
        *(f"table{n}.{suffix}" for n in (1, 2, 3) for suffix in ("csv", "md", "tex")), "statistics.csv"}  # fmt: skip
    assert gesmr("study", "table", "functions", "--out", home, "--to", tmp_path / "t")[0] == 0
    with (tmp_path / "t" / "table1.csv").open() as file:
        lines = list(csv.DictReader(file))
    assert [(line["function"], line["std"]) for line in lines] == [
        ("sphere", "1"), ("sphere", "10"), ("linear", "1"), ("linear", "10")]  # fmt: skip


def test_tables_fit_80_columns(home, tmp_path, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    code, out, _ = gesmr("study", "table", "functions", "--out", home, "--to", tmp_path / "t")
    assert code == 0
    tables = [line for line in out.splitlines() if not line.startswith("written to")]
    assert max(map(len, tables)) <= 80
    assert {"Function", "d", "std", "FMR", "GESMR", "LAMR-100†", "Sphere", "Linear"} <= set(out.split())


def test_json(home, tmp_path):
    """It is all there is on standard output, and the files are written as ever."""
    code, out, said = gesmr("study", "table", "functions", "--out", home, "--json", "--to", tmp_path / "t")
    assert code == 0
    tables = json.loads(out)
    assert [table["name"] for table in tables] == ["table1", "table2", "table3"]
    assert [(row["function"], row["std"]) for row in tables[0]["rows"]] == [
        ("sphere", 1), ("sphere", 10), ("linear", 1), ("linear", 10)]  # fmt: skip
    with (tmp_path / "t" / "table1.csv").open() as file:
        for line, row in zip(csv.DictReader(file), tables[0]["rows"], strict=True):
            assert float(line["GESMR"]) == pytest.approx(row["GESMR"], rel=1e-5)
    assert "written to" in said
    code, out, _ = gesmr("study", "claims", "--out", home, "--json")
    assert code == 0
    assert {claim["verdict"] for claim in json.loads(out)} == {"not decidable"}
    code, out, _ = gesmr("study", "compare", "functions", "--out", home, "--against", PRINTED, "--json")
    assert code == 0
    (table,) = json.loads(out)
    assert len(table["cells"]) == 12
    code, out, _ = gesmr("study", "list", "--json")
    assert [study["name"] for study in json.loads(out)] == list(STUDIES)


def test_compare(home):
    code, out, _ = gesmr("study", "compare", "functions", "--out", home, "--against", PRINTED)
    assert code == 0
    assert re.search(r"\d+ of 12 cells agree", out)  # Linear counts too
    assert (home / "tables" / "functions" / "agreement_table1.csv").exists()


def test_compare_all_tables_on_some_seeds(home, tmp_path):
    command = ["study", "compare", "functions", "--out", home, "--against", PRINTED.parent]
    code, out, _ = gesmr(*command, "--seeds", "1-1", "--to", tmp_path)
    assert code == 0
    assert re.search(r"Method +d = 2 +all", out)
    assert "Table 3 by the rates that children were made with" in out
    assert re.search(r"\d of 4 cells agree with the printed ones \(LAMR-100 compared with itself is not counted\)", out)
    with (tmp_path / "agreement_table3.csv").open() as file:
        lines = list(csv.DictReader(file))
    assert [(line["method"], line["seeds"]) for line in lines] == [("FMR", "1"), ("GESMR", "1")] * 2
    assert json.loads((tmp_path / "provenance.json").read_text())["seeds"] == [1, 1]
    code, _, said = gesmr(*command, "--seeds", "40-79")
    assert code == 2
    assert "no centred runs of seeds 40-79" in said
    code, _, said = gesmr(*command, "--as-text")
    assert code == 2
    assert "no centred, as text runs" in said


def test_claims(home):
    code, out, _ = gesmr("study", "claims", "--out", home)
    assert code == 0
    assert out.count("not decidable") == 9 + 1  # verdicts, and the rule of claim 14


def test_figure(home, tmp_path):
    code, _, _ = gesmr("study", "figure", "functions", "--out", home, "--row", "sphere,2,10", "--to", tmp_path)
    assert code == 0
    assert any("sphere" in path.name and path.suffix == ".pdf" for path in tmp_path.iterdir())


def test_export(home, tmp_path):
    code, _, _ = gesmr("study", "export", "functions", "--out", home, "--to", tmp_path / "results")
    assert code == 0
    claims = json.loads((tmp_path / "results" / "claims.json").read_text())
    provenance = json.loads((tmp_path / "results" / "provenance.json").read_text())
    assert [claim["number"] for claim in claims] == [1, 2, 3, 4, 5, 6, 7, 14, 18]
    assert (provenance["runs"], provenance["seeds"]) == (24, [0, 1])
    assert {"curves.png", "overview.png"} <= {path.name for path in (tmp_path / "results").iterdir()}
    assert provenance["sessions"][0]["runs"] == 25


def test_report(home):
    code, out, _ = gesmr("report", home)
    assert code == 0
    path = Path(out.split("report: ")[1].strip())
    assert path == home / "report.html"
    assert "<!doctype html>" in path.read_text(encoding="utf-8")[:100].lower()


def test_reproduce_ends_in_tables_figures_verdicts_and_a_report(home):
    """On a store that has all of the quick profile's runs, made up: nothing is left to compute."""
    directory = home.parent / "whole"
    store = Store(directory / "functions", create=True)
    wanted = STUDIES["functions"].specs(Selection(seeds=2))
    group: Any
    for group in STUDIES["functions"].jobs(wanted, 10**12):
        first = group.specs[0]
        if first.kind == "run":
            _, arrays = made_up_group(group.methods, first.function, first.dim, len(group.lanes))
            store.write(group.specs, arrays, {"label": group.label})
        else:
            store.write(group.specs, {"seconds": np.ones((1, 9, 2))}, {"label": group.label})
    code, out, said = gesmr("study", "reproduce", "functions", "--seeds", 2, "--out", directory)
    assert code == 0
    assert "all there already" in said
    assert "Table 3" in out
    assert "Claims of the paper" in out
    assert (directory / "figures" / "functions" / "curves.pdf").exists()
    assert (directory / "report.html").exists()


ERRORS = {
    "an unknown study": (["study", "run", "schwefel"], "study must be one of functions, "),
    "an unknown study's table": (["study", "table", "x"], "study must be one of functions, "),
    "an unknown profile": (["study", "run", "functions", "--profile", "x"], "must be one of choice, paper, quick"),
    "an unknown method": (["study", "run", "functions", "--methods", "CMA"], "--methods must be one of 'OFMR'"),
    "an unknown function": (["study", "run", "functions", "--functions", "f"], "--functions must be one of 'ackley'"),
    "an unknown dimension": (["study", "run", "functions", "--dims", "3"], "--dims must be one of 2, 30"),
    "no number": (["study", "run", "functions", "--dims", "two"], "--dims must be whole numbers"),
    "no seeds": (["study", "run", "functions", "--seeds", "0"], "--seeds must be a number of seeds as in 5"),
    "seeds backwards": (["study", "run", "functions", "--seeds", "9-3"], "or a range as in 40-79, got '9-3'"),
    "seeds that are none": (["study", "run", "functions", "--seeds", "few"], "or a range as in 40-79, got 'few'"),
    "text of another study": (["study", "run", "groups", "--as-text"], "--as-text means nothing to the study groups"),
    "seeds of another table": (["study", "table", "groups", "--seeds", "2"], "--seeds means nothing to what the study"),
    "more devices than there are": (["study", "run", "functions", "--devices", "99"], "--devices must be from 1 to"),
    "devices of a cluster": (["study", "run", "functions", "--ray", "--devices", "1"], "choose one"),
    "no address": (["study", "run", "functions", "--address", "here"], "\"host:6379\", got 'here'"),
    "no results": (["study", "table", "functions"], "holds no results"),
    "no results for a report": (["report", "absent"], "absent"),
    "no results for claims": (["study", "claims"], "holds no results"),
    "a foreign directory": (["study", "run", "functions", "--out", "thesis"], "thesis is not empty"),
    "a file": (["study", "run", "functions", "--out", "thesis/main.tex"], "main.tex"),
    "a name too long to run in": (["study", "run", "functions", "--out", "x" * 300], "x cannot be used: File name"),
    "a name too long for tables": (["study", "table", "functions", "--out", "x" * 300], "x cannot be used: File name"),
    "a name too long for claims": (["study", "claims", "--out", "x" * 300], "x cannot be used: File name"),
    "a name too long for a report": (["report", "x" * 300], "x cannot be used: File name"),
    "a name too long to watch": (["watch", "x" * 300], "x cannot be used: File name"),
}


@pytest.mark.parametrize("case", ERRORS)
def test_bad_input_ends_with_a_line_and_exit_code_2(case, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "thesis").mkdir()
    (tmp_path / "thesis" / "main.tex").write_text("mine")
    arguments, message = ERRORS[case]
    code, _, said = gesmr(*arguments)
    assert code == 2
    assert message in said.replace("\n", " ")
    assert len(said.strip().splitlines()) == 1
    assert [path.name for path in (tmp_path / "thesis").iterdir()] == ["main.tex"]


def test_a_directory_that_cannot_be_written(tmp_path):
    """/proc takes no directories, even from root."""
    code, _, said = gesmr("study", "run", "functions", "--out", "/proc/gesmr")
    assert code == 2
    assert "/proc/gesmr/functions cannot be used" in said


@pytest.mark.parametrize("threads", [1, 3])
def test_a_store_that_vanishes_while_it_is_filled(tmp_path, monkeypatch, threads):
    """The fifth group takes it away: one sentence, and what was stored is whole, wherever it is now."""
    place = tmp_path / "runs" / "small"

    class Taken(SmallStudy):
        def specs(self, selection=None):
            return [Power(number, f"take:{place}" if number == 4 else "") for number in range(8)]

    monkeypatch.setitem(STUDIES, "small", Taken())
    code, out, said = gesmr("study", "run", "small", "--out", tmp_path / "runs", "--threads", threads)
    assert (code, out) == (1, "")
    (error,) = [line for line in said.splitlines() if "error: " in line]
    assert f"{place}/groups cannot be used: No such file or directory; what was stored before is left" in error
    assert said.endswith(f"{error}\n")
    damage = []
    stored = list(Store(f"{place}.taken", warn=damage.append).jobs())
    assert not damage
    assert 5 - threads <= len(stored) < 8


READ = {
    "table": ["study", "table", "functions", "--out", "."],
    "figure": ["study", "figure", "functions", "--out", "."],
    "claims": ["study", "claims", "--out", "."],
    "export": ["study", "export", "functions", "--out", ".", "--to", "elsewhere"],
    "compare": ["study", "compare", "functions", "--out", ".", "--against", PRINTED],
    "report": ["report", "."],
    "run": ["study", "run", "functions", *SMALL, "--out", "."],
}


@pytest.mark.parametrize("command", READ)
def test_a_store_whose_groups_cannot_be_read(tmp_path, monkeypatch, home, command):
    """A regular file in place of the directory, which is an obstacle for root too."""
    shutil.copytree(home / "functions", tmp_path / "functions")
    (tmp_path / "functions" / "groups").rename(tmp_path / "away")
    (tmp_path / "functions" / "groups").touch()
    monkeypatch.chdir(tmp_path)
    code, out, said = gesmr(*READ[command])
    assert (code, out) == (2 if command == "run" else 1, "")
    assert "cannot be used: " in said
    assert len(said.strip().splitlines()) == 1


WRITE = {
    "tables": ["study", "table", "functions"],
    "figures": ["study", "figure", "functions", "--row", "sphere,2,1"],
    "claims.json": ["study", "claims"],
    "results": ["study", "export", "functions"],
}


@pytest.mark.parametrize("document", WRITE)
def test_documents_where_nothing_can_be_written(home, document):
    """/proc is read-only, even for root."""
    code, _, said = gesmr(*WRITE[document], "--out", home, "--to", "/proc/gesmr")
    assert code == 1
    assert re.fullmatch(r"error: (could not write )?/proc/gesmr/\S+( cannot be written)?: No such file.*\n", said)


def test_a_report_where_nothing_can_be_written(home, tmp_path):
    shutil.copytree(home / "functions", tmp_path / "functions")
    (tmp_path / "report.html").mkdir()
    code, out, said = gesmr("report", tmp_path)
    assert (code, out) == (1, "")
    assert re.fullmatch(r"error: could not write \S+/report.html: Is a directory\n", said)


@pytest.mark.parametrize("row", ["sphere,2", "sphere,x,1", "ackley,2,1"])
def test_rows_that_are_not_there(home, row):
    code, _, said = gesmr("study", "figure", "functions", "--out", home, "--row", row)
    assert code == 2
    assert row.split(",")[0] in said.lower()


def test_ctrl_c_keeps_what_is_finished(tmp_path):
    out = tmp_path / "my runs"
    some = ["--dims", "2", "--seeds", "2", "--methods", "SAMR,GESMR", "--threads", "1"]
    command = heeding("-m", "gesmr.lab.cli", "study", "run", "functions", *some, "--out", out)
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
        deadline = time.monotonic() + 240
        while not list(out.glob("functions/groups/*.json")) and time.monotonic() < deadline:
            time.sleep(0.005)
        process.send_signal(signal.SIGINT)
        _, said = process.communicate(timeout=120)
    assert process.returncode == 130
    line = said.partition("To continue:\n")[2].strip()
    words = ["-m", "gesmr", "study", "run", "functions", *some, "--out", str(out)]
    assert shlex.split(line)[1:] == words
    assert "Traceback" not in said
    assert len(Store(out / "functions").done()) > 0
