"""Genetic algorithms that find their own mutation rate."""

from . import analysis, noise, problems
from ._pytree import pytree
from .controllers import (
    GESMR,
    PAPER_NAMES,
    SAMR,
    UCB,
    Clip,
    Controller,
    Feedback,
    Fixed,
    OneFifth,
    controller,
)
from .evolve import History, evolve
from .ga import GA, Proposal, State
from .oracles import LAMR, OFMR

__version__ = "0.1.0"

__all__ = [
    "GA",
    "GESMR",
    "LAMR",
    "OFMR",
    "PAPER_NAMES",
    "SAMR",
    "UCB",
    "Clip",
    "Controller",
    "Feedback",
    "Fixed",
    "History",
    "OneFifth",
    "Proposal",
    "State",
    "analysis",
    "controller",
    "evolve",
    "noise",
    "problems",
    "pytree",
]
