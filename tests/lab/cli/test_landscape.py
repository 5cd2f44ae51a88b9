"""`gesmr landscape`, as a user types it."""

import json
import re

from helpers.command_line import gesmr, put_module

MODULE = """
import jax.numpy as jnp

def bowls(xs):
    return jnp.sum(xs**2, axis=-1)

def broken(xs):
    raise ValueError("my own fault")
"""
SMALL = ["--dim", "3", "--samples", "200"]


def test_json_is_all_on_standard_output(tmp_path, monkeypatch):
    put_module(monkeypatch, tmp_path, "mine_to_look_at", MODULE)
    code, out, said = gesmr("landscape", "mine_to_look_at.py:bowls", *SMALL, "--json", "--to", "seen")
    assert code == 0, said
    found = json.loads(out)
    curves = found["curves"]
    assert len({len(of) for of in curves.values()}) == 1
    assert found["rows"][0]["σ*_min"] in curves["rates"]
    assert curves["mean"][-1] > curves["mean"][0]  # larger mutations of a bowl are worse
    assert "written to seen" in said
    assert len((tmp_path / "seen" / "landscape.csv").read_text().splitlines()) == 1 + len(curves["rates"])


def test_the_table_fits_80_columns(tmp_path, monkeypatch):
    put_module(monkeypatch, tmp_path, "mine_to_look_at", MODULE)
    monkeypatch.setenv("COLUMNS", "80")
    code, out, _ = gesmr("landscape", "mine_to_look_at:bowls", *SMALL)
    assert code == 0
    assert max(map(len, out.splitlines())) <= 80
    assert all(heading in out for heading in ("σ*_mean", "σ*_min", "E[min Δ] there", "dropped"))


def test_an_error_of_the_function_shows_its_lines(tmp_path, monkeypatch):
    put_module(monkeypatch, tmp_path, "mine_to_look_at", MODULE)
    code, out, said = gesmr("landscape", "mine_to_look_at.py:broken", *SMALL)
    assert (code, out) == (1, "")
    assert set(re.findall(r'File ".*/(.+?)"', said)) == {"mine_to_look_at.py"}
    assert "ValueError: my own fault" in said
