"""The line that shows a run, on screens that are looked at as a terminal would draw them."""

import fcntl
import io
import os
import pty
import re
import struct
import subprocess
import sys
import termios
import time
from contextlib import redirect_stdout
from typing import NamedTuple

import numpy as np
import pytest
from scipy.optimize import OptimizeResult

from gesmr.optimize import display
from gesmr.optimize.display import Display


class Recent(NamedTuple):
    log_rate: np.ndarray


def glance(nit=3, *, rates=(0.1, 0.02), **fields):
    recent = Recent(np.log(np.array(rates)))
    return OptimizeResult(**{"nit": nit, "fun": 0.125, "nfev": 101 + 100 * nit, "recent": recent, **fields})


def screen(written, columns=80):
    """The lines a terminal shows: what \\r writes over is gone, and what is too long goes on in the next line."""
    lines, at = [""], 0
    for char in written:
        if char == "\r":
            at = 0
        elif char == "\b":
            at -= 1
        elif char == "\n":
            lines, at = [*lines, ""], 0
        else:
            if at == columns:
                lines, at = [*lines, ""], 0
            lines[-1] = lines[-1][:at] + char + lines[-1][at + 1 :]
            at += 1
    return [line.rstrip() for line in lines]


class Terminal(io.StringIO):
    encoding = "utf-8"

    def isatty(self):
        return True

    @property
    def lines(self):
        return screen(self.getvalue(), int(os.environ["COLUMNS"]))


class AsciiTerminal(Terminal):
    encoding = "ascii"


@pytest.fixture
def terminal(monkeypatch):
    """One of 80 columns, for which every call is due."""
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setattr(display, "_LIVE_SECONDS", 0.0)
    return Terminal()


def test_one_line_is_rewritten(terminal):
    with Display(terminal, {"maxiter": 100, "maxfun": None}) as show:
        assert terminal.lines == ["░" * 9 + " starting"]
        show(glance(50, fun=1e-12, seconds=3725.5))
        bar = "█" * 4 + "░" * 5
        assert terminal.lines == [f"{bar} generation 50, best 1e-12, rate 0.02, 5101 evaluations, 1:02:05"]
        show(glance(99, fun=0.0, seconds=3726.0))
        bar = "█" * 8 + "░"
        assert terminal.lines == [f"{bar} generation 99, best 0, rate 0.02, 10001 evaluations, 1:02:06"]
    assert terminal.lines == [""]


@pytest.mark.parametrize(
    ("limits", "share"),
    [
        ({"maxiter": 10}, 0.5),
        ({"maxiter": 10, "maxfun": 1000}, 0.601),
        ({"maxtime": 40, "maxiter": 20}, 0.75),
        ({"maxfun": 100, "patience": 3}, 1.0),
    ],
)
def test_the_bar_moves_with_the_limit_that_comes_first(terminal, monkeypatch, limits, share):
    monkeypatch.setenv("COLUMNS", "195")
    with Display(terminal, limits) as show:
        show(glance(5, seconds=30.0))
        (line,) = terminal.lines
        assert line.count("█") == int(24 * share)
        assert line.count("█") + line.count("░") == 24


def test_without_a_limit_that_can_be_seen_coming_there_is_no_bar(terminal):
    with Display(terminal, {"target": 0.0, "maxiter": None}) as show:
        show(glance(seconds=59.9))
        assert terminal.lines == ["generation 3, best 0.125, rate 0.02, 401 evaluations, 59 s"]


@pytest.mark.parametrize("columns", [*range(1, 90), 1000])
def test_any_width(terminal, monkeypatch, columns):
    """Always one line, with what matters most as soon as there is room for it."""
    monkeypatch.setenv("COLUMNS", str(columns))
    with Display(terminal, {"maxiter": 10**6}) as show:
        show(glance(999_999, fun=-1.23456e-100))
        (line,) = terminal.lines
        assert len(line) <= max(columns - 3, 0)
        assert ("best -1.23456e-100" in line) == (columns > 20)
    assert terminal.lines == [""]


@pytest.mark.parametrize(
    ("columns", "line"),
    [
        (15, "best -1.2345"),
        (30, "best -1.23456e-100"),
        (42, "generation 999999, best -1.23456e-100"),
        (43, "████░ best -1.23456e-100"),
        (60, "██████░ generation 999999, best -1.23456e-100, 0 s"),
        (80, "████████░ generation 999999, best -1.23456e-100, 100000001 evaluations, 0 s"),
        (90, "█████████░ generation 999999, best -1.23456e-100, rate 0.02, 100000001 evaluations, 0 s"),
    ],
)
def test_what_is_left_out(terminal, monkeypatch, columns, line):
    monkeypatch.setenv("COLUMNS", str(columns))
    with Display(terminal, {"maxiter": 10**6}) as show:
        show(glance(999_999, fun=-1.23456e-100))
        assert terminal.lines == [line]


def test_in_ascii(monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    terminal = AsciiTerminal()
    with Display(terminal, {"maxiter": 6}) as show:
        show(glance())
        (line,) = terminal.lines
    line.encode("ascii")
    assert line.startswith("####..... generation")


def test_a_violation_is_shown_while_there_is_one(terminal):
    with Display(terminal, {}) as show:
        show(glance(fun=np.inf, constr_violation=0.25, rates=()))
        assert terminal.lines == ["generation 3, violation 0.25, 401 evaluations, 0 s"]
        show(glance(4, constr_violation=0.0))
        assert "best 0.125" in terminal.lines[0]


def test_not_more_often_than_it_can_be_read(terminal, monkeypatch):
    monkeypatch.setattr(display, "_LIVE_SECONDS", 0.1)
    with Display(terminal, {}) as show:
        assert show.is_due
        show(glance(1))
        assert not show.is_due
        show(glance(2))
        assert "generation 1," in terminal.lines[0]
        time.sleep(0.11)
        show(glance(3))
        assert "generation 3," in terminal.lines[0]


def test_what_others_print_stands_above(terminal):
    """Whole lines, parts of lines and nothing at all."""
    with redirect_stdout(terminal), Display(terminal, {}) as show:
        print("first")
        assert terminal.lines == ["first", ""]
        show(glance(1))
        print("second", "third", sep="\n")
        show(glance(2))
        print(".", end="", flush=True)
        print("", end="")
        print(".", end="")
        assert terminal.lines == ["first", "second", "third", ".."]
        show(glance(3))
        assert terminal.lines[-2:] == ["..", "generation 3, best 0.125, rate 0.02, 401 evaluations, 0 s"]
        assert sys.stdout.isatty()
        sys.stdout.flush()
    assert terminal.lines == ["first", "second", "third", "..", ""]


def test_other_files_are_left_alone(terminal):
    """What is piped elsewhere is not on the screen."""
    elsewhere = io.StringIO()
    with redirect_stdout(elsewhere), Display(terminal, {}) as show:
        assert sys.stdout is elsewhere
        show(glance())
        print("piped")
        assert len(terminal.lines) == 1
    assert elsewhere.getvalue() == "piped\n"


def test_what_ctrl_c_echoes_goes_with_the_line(terminal, monkeypatch):
    monkeypatch.setenv("COLUMNS", "61")  # full
    with Display(terminal, {}) as show:
        show(glance(55_555, seconds=59.0))
        terminal.write("^C")
        (line,) = terminal.lines
        assert line == "generation 55555, best 0.125, 5555601 evaluations, 59 s^C"
    assert terminal.lines == [""]


def test_a_shorter_line_leaves_nothing_of_a_longer_one(terminal):
    with Display(terminal, {}) as show:
        show(glance(fun=-1.23456e-100))
        show(glance(fun=0.5))
        assert terminal.lines == ["generation 3, best 0.5, rate 0.02, 401 evaluations, 0 s"]


def test_errors_leave_no_line(terminal):
    def fail():
        with Display(terminal, {"maxiter": 3}) as show:
            show(glance())
            assert sys.stdout is not terminal
            raise ZeroDivisionError

    with redirect_stdout(terminal):
        with pytest.raises(ZeroDivisionError):
            fail()
        assert sys.stdout is terminal
    assert terminal.lines == [""]


def the_end(**fields):
    return OptimizeResult(message="The target 1.0 was reached.", fun=0.5, nit=7, nfev=801, **fields)


def test_the_end(terminal, monkeypatch):
    monkeypatch.setenv("COLUMNS", "120")
    with Display(terminal, {"maxiter": 9}) as show:
        show(glance())
        show.finish(the_end())
    assert terminal.lines == ["The target 1.0 was reached. Best value 0.5 after 7 generations and 801 evaluations.", ""]
    with Display(terminal, {}) as show:
        show.finish(the_end(constr_violation=0.1))
    assert terminal.lines[1] == "The target 1.0 was reached. After 7 generations and 801 evaluations."


def test_plain_lines_now_and_then(monkeypatch):
    """In a file, without control characters."""
    monkeypatch.setattr(display, "_PLAIN_SECONDS", 0.1)
    file, before = io.StringIO(), sys.stdout
    with Display(file, {"maxiter": 10}) as show:
        assert sys.stdout is before
        show(glance(1))
        time.sleep(0.11)
        show(glance(2))
        show(glance(3))
        time.sleep(0.11)
        show(glance(4, rates=()))
        show.finish(the_end())
    assert file.getvalue().splitlines() == [
        "generation 2, best 0.125, rate 0.02, 301 evaluations, 0 s",
        "generation 4, best 0.125, 501 evaluations, 0 s",
        "The target 1.0 was reached. Best value 0.5 after 7 generations and 801 evaluations.",
    ]


SLOW = """import time
def fun(x):
    time.sleep(0.002)
    if fun.calls == 20:
        print("a word of its own")
    fun.calls += 1
    return float(sum(x * x))
fun.calls = 0
"""


def test_in_a_real_terminal(tmp_path):
    """Of 60 columns: the command shows the line, what the function prints, and then the result alone."""
    (tmp_path / "slowly_minimized.py").write_text(SLOW)
    command = [sys.executable, "-m", "gesmr", "minimize", "slowly_minimized:fun", "--dim", "2", "--maxfun", "120"]
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 60, 0, 0))
    environment = {name: value for name, value in os.environ.items() if name != "COLUMNS"}
    command += ["--popsize", "11", "--seed", "1"]
    with subprocess.Popen(
        command, cwd=tmp_path, env=environment, stdin=theirs, stdout=theirs, stderr=theirs
    ) as process:
        os.close(theirs)
        written = b""
        while True:
            try:
                read = os.read(ours, 65536)
            except OSError:  # the end, on Linux
                break
            written += read
    os.close(ours)
    assert process.returncode == 0, written
    text = written.decode()
    assert "starting" in text
    assert re.search(r"█░+ generation \d+, best", text)
    lines = screen(text, 60)
    assert lines[0] == "a word of its own"
    assert lines[1].startswith("Another generation would exceed 120 evaluations.")
    assert not any("░" in line for line in lines)
