"""What the page shows, computed by the library: runs with every member of every generation, and landscapes."""

import base64
import dataclasses
import json
from collections.abc import Callable
from functools import cache, lru_cache
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from ... import noise
from ...controllers import GESMR, controller
from ...evolution import evolve
from ...ga import GA, State
from ...problems.functions import Function, get
from .settings import Place, Setting

PIXELS = 280  # of a landscape, on a side
_REACH = 2.4  # standard deviations of the first population from the middle of the view to its edge
_AWAY = (0.6, -0.45)  # where a moved optimum is, in standard deviations, gene by gene and then from the start again


_PROGRAMS = 12  # that are kept: each has about 130 MB
_compiled: set[Setting] = set()


class Frame(NamedTuple):
    """What is kept of a generation."""

    members: jax.Array  # f[N+1, 2]  the first two genes; slot 0 the elite
    best: jax.Array  # f[]
    log_rates: jax.Array  # f[any]  that the next children are made with; in slot 0 the elite's, if there is one
    parents: jax.Array  # i32[N+1]  which members the next generation is made from


def problem(function: str, dim: int, std: float, moved: bool) -> Function:
    """The function, its optimum shifted by about half a standard deviation per gene if it is `moved`."""
    shift = np.resize(np.array(_AWAY, np.float32) * std, dim) if moved else np.zeros(dim, np.float32)
    return get(function, dim, np.float32(std), shift=shift)


@cache
def algorithm(method: str, children: int, groups: int) -> tuple[GA, Callable[[State], Frame]]:
    """A method's GA, and what is recorded of its states. The same objects every time: they name a compiled program."""
    chosen = controller(method, children)
    if isinstance(chosen, GESMR):
        chosen = dataclasses.replace(chosen, groups=groups)
    ga = GA(chosen, num_children=children)

    def frame(state: State) -> Frame:
        proposal = ga.ask(state)
        parents = jnp.append(proposal.elite, proposal.parents)
        return Frame(
            state.population[:, :2], state.best_fitness, ga.controller.log_rates(state.controller).reshape(-1), parents
        )

    return ga, frame


def frames(setting: Setting) -> Frame:
    """A run, every entry with a leading axis of its `generations + 1` states."""
    _make_room(dataclasses.replace(setting, std=1.0, seed=0, moved=True))  # which are no part of a program
    objective = problem(setting.function, setting.dim, setting.std, setting.moved)
    grouped = setting.method.startswith("GESMR")
    ga, record = algorithm(setting.method, setting.children, setting.groups if grouped else 1)
    key = noise.key(setting.seed)
    population = objective.init(key, setting.children + 1)
    state = ga.init(key, population, objective(population))
    _, history = evolve(ga, objective, state, setting.generations, record=record)
    return jax.tree.map(lambda first, rest: np.concatenate([first[None], rest]), record(state), history.extra)


def _make_room(kind: Setting) -> None:
    """Forget all programs before there is one too many."""
    if kind not in _compiled and len(_compiled) >= _PROGRAMS:
        _compiled.clear()
        algorithm.cache_clear()
        jax.clear_caches()
    _compiled.add(kind)


@lru_cache(maxsize=32)
def run_json(setting: Setting) -> bytes:
    """A run as the page reads it: arrays are base64 of little-endian numbers."""
    run = frames(setting)
    return _json(
        setting=dataclasses.asdict(setting),
        members=_packed(run.members, "<f4"),
        parents=_packed(run.parents, "<u2"),
        rates=_packed(run.log_rates / np.log(10), "<f4"),
        shape=[setting.generations + 1, setting.children + 1, run.log_rates.shape[1]],
        best=[float(value) if np.isfinite(value) else None for value in run.best],
        elites=elites(setting),
    )


def elites(setting: Setting) -> list[int]:
    """Which of the rates are marked: those that were kept unaltered because they did best."""
    if setting.method == "SAMR":
        return [0]
    chosen = algorithm(setting.method, setting.children, setting.groups)[0].controller
    if not isinstance(chosen, GESMR) or not chosen.adapt:
        return []
    return [start for start, _ in chosen.classes(setting.groups)]


@lru_cache(maxsize=32)
def landscape_json(place: Place) -> bytes:
    """The plane of the first two genes, all others at the optimum: ranks of height 0 … 255, row by row from the top."""
    objective = problem(place.function, place.dim, place.std, place.moved)
    optimum = objective.optimum
    centre = np.zeros(2) if optimum is None or place.zoom == 1 else np.asarray(optimum[:2], np.float64)
    half = _REACH * place.std / place.zoom
    line = np.linspace(-half, half, PIXELS)
    base = np.zeros(place.dim) if optimum is None else np.asarray(optimum)
    points = np.tile(base, (PIXELS * PIXELS, 1)).astype(np.float32)
    x, y = np.meshgrid(centre[0] + line, centre[1] - line)
    points[:, 0], points[:, 1] = x.ravel(), y.ravel()
    values = np.asarray(jax.jit(objective.__call__)(points), np.float64)
    ranks = np.argsort(np.argsort(values, kind="stable"), kind="stable")
    return _json(
        place=dataclasses.asdict(place),
        centre=centre.tolist(),
        half=half,
        pixels=PIXELS,
        shades=_packed(ranks * 255 // (len(ranks) - 1), "u1"),
        optimum=None if optimum is None else np.asarray(optimum[:2], np.float64).tolist(),
    )


def _packed(array: Any, dtype: str) -> str:
    return base64.b64encode(np.ascontiguousarray(array, dtype).tobytes()).decode()


def _json(**content: Any) -> bytes:
    return json.dumps(content, allow_nan=False, separators=(",", ":")).encode()
