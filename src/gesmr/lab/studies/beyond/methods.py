"""The GAs of the study `beyond`: the paper's methods, those that recombine, and variants of GESMR-X by name."""

import re
from typing import NamedTuple

from ...._pytree import pytree
from ....controllers import GESMR, PAPER_NAMES, SAMR, Controller, Fixed, OneFifth, controller
from ....controllers.group_elite import default_groups
from ....ga import GA
from ...run.lanes import ORACLES
from ...run.reading import Reading


class Variant(NamedTuple):
    """GESMR some of whose groups recombine. Its name says all of it, so that stored runs stay what they are."""

    share: float  # of the groups
    groups: int  # K
    truncation: float  # η_x
    rate_truncation: float  # η_σ
    shared: bool = False  # one population of rates for copies and mixtures
    mates: int | None = None

    def __str__(self) -> str:
        said = f"GESMR/share={self.share:g}/K={self.groups}/x={self.truncation:g}/rates={self.rate_truncation:g}"
        return said + "/shared" * self.shared + (f"/mates={self.mates}" if self.mates else "")

    @classmethod
    def named(cls, name: str) -> "Variant | None":
        """The one that is called so; None if that is no such name."""
        number = r"([0-9.]+)"
        pattern = rf"GESMR/share={number}/K=(\d+)/x={number}/rates={number}(/shared)?(?:/mates=(\d+))?"
        if (said := re.fullmatch(pattern, name)) is None:
            return None
        share, groups, truncation, rates, shared, mates = said.groups()
        return cls(
            float(share), int(groups), float(truncation), float(rates), bool(shared), int(mates) if mates else None
        )

    def ga(self, num_children: int) -> GA:
        kind = SharedRates if self.shared else GESMR
        rates = kind(self.groups, truncation=self.rate_truncation, recombine=self.share, mates=self.mates)
        return GA(rates, num_children, self.truncation)


@pytree
class SharedRates(GESMR):
    """GESMR whose groups have one population of rates, though some recombine."""

    def classes(self, groups: int) -> list[tuple[int, int]]:
        return [(0, groups)]


X = "GESMR-X"
DEFAULT = "default"  # of `minimize`, without recombination
DEFAULT_X = "default-X"  # and with it
# Written down before anything but Ackley, Rosenbrock and bbob's odd functions was run (docs/recombination.md)
CHOSEN = Variant(share=0.4, groups=10, truncation=0.5, rate_truncation=0.5)  # GESMR-X at N = 100
CHOSEN_DEFAULT = Variant(share=0.4, groups=12, truncation=0.3, rate_truncation=0.3)  # default-X at N = 100

SHARES = (0.2, 0.4, 0.6, 0.8, 1.0)
GROUPS = (5, 10, 20, 25, 50)
TRUNCATIONS = (0.1, 0.2, 0.35, 0.5)
RATE_TRUNCATIONS = (0.1, 0.2, 0.3, 0.5)
# What these were chosen from: share and K together, η_x and η_σ together, then what lay between the best of these and
# of bbob's odd functions; and what else recombination could be
GRID = tuple(
    dict.fromkeys(
        [Variant(share, groups, 0.5, 0.5) for share in SHARES for groups in GROUPS]
        + [Variant(0.4, 20, x, rates) for x in TRUNCATIONS for rates in RATE_TRUNCATIONS]
        + [Variant(0.4, 20, 0.5, 0.5, shared=True), Variant(0.4, 20, 0.5, 0.5, mates=2)]
        + [Variant(share, groups, 0.2, 0.3) for groups in (12, 20) for share in SHARES]
        + [Variant(0.4, 12, x, rates) for x in (0.3, 0.35, 0.5) for rates in (0.3, 0.5)]
        + [Variant(0.6, 12, 0.35, rates) for rates in (0.3, 0.5)]
        + [CHOSEN._replace(shared=True), CHOSEN._replace(mates=2)]
    )
)

_RECOMBINING = {
    "FMR": lambda share: Fixed(rate=0.01, recombine=share),
    "15MR": lambda share: OneFifth(rate=0.01, target=0.2, factor=2.0, recombine=share),
    "SAMR": lambda share: SAMR(meta_rate=2.0, low=1e-3, high=1e3, recombine=share),
}
MIXING = tuple(f"{name}-X" for name in _RECOMBINING)  # all of their children recombine
PARTLY_MIXING = tuple(f"{name}-X/{CHOSEN.share:g}" for name in _RECOMBINING)  # as many as of GESMR-X
PAPERS = tuple(name for name in PAPER_NAMES if name != "GESMR")
OURS = ("GESMR", X, DEFAULT, DEFAULT_X, *PAPERS, *ORACLES, *MIXING, *PARTLY_MIXING)


def ga_of(method: str, num_children: int) -> GA:
    """The GA of a method, an oracle's with a fixed rate; ValueError if there is none of this name."""
    if (variant := Variant.named(method)) is not None:
        return variant.ga(num_children)
    if method == X:
        return GA(controller(X, num_children), num_children)
    if method == DEFAULT:
        return GA(GESMR(default_groups(num_children), truncation=0.1), num_children, 0.2)
    if method == DEFAULT_X:
        share, _, truncation, rate_truncation, *_ = CHOSEN_DEFAULT
        return GA(GESMR(None, truncation=rate_truncation, recombine=share), num_children, truncation)
    return GA(_mixing(method) or Reading.TEXT.controller(method, num_children), num_children)


def _mixing(method: str) -> Controller | None:
    """The one that recombines, as in SAMR-X for all children or SAMR-X/0.4 for a share of them."""
    said = re.fullmatch(rf"({'|'.join(_RECOMBINING)})-X(?:/([0-9.]+))?", method)
    return None if said is None else _RECOMBINING[said[1]](float(said[2] or 1))
