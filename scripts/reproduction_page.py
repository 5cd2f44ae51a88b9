"""Writes docs/reproduction.md from the numbers in results/: `make reproduction-page`."""

import csv
import json
from collections import Counter, defaultdict
from pathlib import Path
from typing import Any

from gesmr.lab.run.lanes import METHODS, ORACLES
from gesmr.lab.show.claims import OWN
from gesmr.lab.studies.functions.tables import TITLES, number

ROOT = Path(__file__).parents[1]
RESULTS = ROOT / "results"
PAGE = ROOT / "docs" / "reproduction.md"
TABLES = ("table1", "table2", "table3")
PRINT, TEXT, SHIFTED = RESULTS / "paper", RESULTS / "as-text", RESULTS / "shifted"
HALVES = {"0–39": "", "40–79": "seeds-40-79"}
DIMS = ("2", "30", "100", "1000")


def page() -> str:
    parts = [INTRODUCTION.format(**_facts()), LEARNT, AGREEMENT, _counts(), _by_method_and_dimension(), DIFFERS]
    parts += [_differing(), WHY_NOT_ALL, CHOICES, CLAIMS, _claims(), BOTH_HALVES, _verdicts()]
    for name in TABLES:
        parts += [f"## {TITLES[name]}", _table(PRINT / f"{name}.csv")]
    parts += [MOVED, _wins(), _claims_of(SHIFTED)]
    return "\n\n".join(parts) + "\n"


INTRODUCTION = """# The paper, reproduced

Made from the files in [results/](../results) by `make reproduction-page`. The runs of the main study behind them:

```
gesmr study run functions --profile paper --seeds 0-39             # {runs} runs; the tables below
gesmr study run functions --profile paper --seeds 40-79            # the other half, on which no choice was made
gesmr study run functions --profile paper --seeds 0-39 --as-text   # by the paper's text alone; and 40-79
gesmr study run functions --profile paper --shifted                # with every optimum shifted
gesmr study export functions --profile paper --seeds 0-39 --to results/paper
gesmr study export functions --profile paper --shifted --to results/shifted
gesmr study compare functions --profile paper --seeds 0-39 --against tests/data --to results/paper
gesmr study compare functions --profile paper --seeds 40-79 --against tests/data --to results/paper/seeds-40-79
gesmr study claims --profile paper --seeds 40-79 --to results/paper/seeds-40-79
```

and the last three with `--as-text` into results/as-text. On one {device} with JAX {jax} the first half took {cold} s,
including compilation, and the second {warm} s with the programs already compiled, not counting the start of Python.
`make reproduce` runs a smaller version on two CPU cores. `statistics.csv`, beside the tables, compares each best method
with the others (Welch's t-test as in the paper, paired t-test, Wilcoxon, Mann–Whitney, Holm's correction, effect sizes,
medians). Two figures show [the curves of Fig. 2](../results/paper/curves.png) and
[which method wins where](../results/paper/overview.png). The curves are drawn from the same rows run again on two CPU
cores (`--dims 100`), the ranks from the tables (`python scripts/ranks_figure.py results/paper`)."""

LEARNT = """## How the printed tables were computed

Two groups of cells could not be reproduced from the paper's text: all of Linear and all of UCB. The first author's
public program (github.com/akarshkumar0101/evolved-neuroevolution) explains why: in a few places it differs from the
text. The study has these differences as named choices, in one file with their sources
(`src/gesmr/lab/run/reading.py`). No code of that program is in this project, and the library's own methods follow the
text. `--as-text` runs the study by the text.

| | in the printed tables | by the text (`--as-text`) |
| :-- | :-- | :-- |
| Linear | Σ cᵢxᵢ, c the first d of 3,000 evenly spaced values from −10 to 10 | Σ xᵢ |
| UCB/R: score | mean of an arm's last ten rewards + 0.5·√(ln t / n) | mean of all + √(2 ln(t + 1) / n) |
| UCB/R: credit | a generation's reward goes to the arm chosen after it | to the arm that earned it |
| Oracles, ties | the smallest rate | a random one |
| Averages over generations | including the first population, T + 1 values | generations 1 … T |
| Table 3 | rates after a generation's update; LAMR-100's are those it used | rates that children were made with |
| Seeds | five, one random stream through all methods | 40 (captions), five (body) |

In both, functions are computed term by term in single precision as printed, and methods share first populations but no
mutation noise."""

AGREEMENT = """## Agreement with the printed tables

Our mean agrees with a printed one if they differ by at most nine of our standard errors plus half a printed unit,
or by at most 5%. (Nine is 3·√(1 + 40/5): the noise of our 40 seeds and that of the five behind a printed mean.) All
cells are counted: 48 rows × 11 methods in Tables 1 and 2; 40 rows × 10 methods in Table 3, where LAMR-100
is left out, because it would be compared with itself. We required 515, 515 and 375 on each half."""

DIFFERS = """Cells that differ, as printed:"""

WHY_NOT_ALL = """Why some do:

- **Few seeds behind the printed means.** All rows of one dimension share first populations, so their deviations are
  correlated.
- **SAMR and GESMR-AVG on Linear.** Rates multiply over 100 generations, and a mean over seeds is dominated by the seed
  that grew most. GESMR-AVG's mean in 1000-D, which differs from the printed one on one half only, differs by a factor
  of four between our halves. SAMR's printed values are larger than ours in all six rows from 30-D on, up to 36 times.
  Single seeds of ours reach them, but our mean does not. One such seed among five would explain a row or two; we do not
  know whether it explains all six.
- **Close races.** LAMR-100 takes the rate whose look-ahead ended best. On Ackley in 1000-D at std 10, rates twenty
  times apart end nearly level, and in 2-D at std 1 so do the smallest rates of the grid, so a row of Table 3 depends on
  a few choices. Here the two halves differ most from one another.
- **UCB/5 on Rosenbrock in 30-D and UCB/10 on Sphere in 1000-D** differ in both halves. We do not know why."""

CHOICES = """### Which choices were made before seeing results, and which after

- Truncation (half), K = 10, τ = 2 and the natural logarithm were calibrated on Tables 1–3 by an independent program
  before this one was written, and the authors' program confirms them.
- Computing the functions as printed, in single precision, was chosen **after** looking at Table 3 on seeds 0–39. The
  authors' program does so too, and seeds 40–79 were not looked at then.
- The choices in the table above were taken from the authors' program. Linear, UCB and the oracles' ties had been tried
  on the printed tables before, by an independent program; Table 3's alignment had **not**. With the runs as printed
  both alignments give the same count (last line of the table of counts), and the described one was chosen without
  regard to it.
- Nothing was changed after these counts were seen. An earlier version of this page counted 357, 360 and 348 of 360
  cells on seeds 0–39, without UCB and Linear and with LAMR-100 against itself, and 357, 358 and **336** on seeds 40–79:
  twelve cells of Table 3 had agreed only by the luck of its seeds, which random ties had hidden.
- The rules of claims 5, 10, 11, 12 and 14–18 and the margins in them were written down before the runs that decide
  them, but not blind: those of 5, 10, 11, 12 and 14 replace rules that had been applied to older runs, whose results
  were known; claim 16's range d ≥ 1,000 was chosen with an older table of costs in view, and claim 17 had been tried on
  a small run. 5 and 18 are confirmed on seeds 40–79 and with shifted optima, 10 and 15 in the authors' setting; the
  others have not been confirmed on other runs.
- The costs behind claim 16 were measured three times, and the last measurement is committed. The exponents of the time
  of GESMR and of CMA-ES were 0.80 and 1.68 on a busy machine, 0.50 and 2.16 on two idle cores, and 0.62 and 2.14 on one
  idle core (`taskset -c 1`). The verdict was the same each time, for different reasons: first CMA-ES's exponent was too
  low, then GESMR's, whose time grew more slowly than d. We have not looked into why.

Two studies fall short of what was planned. **Images** have 1,000 training images instead of 5,000 (`gesmr study run
images --profile paper --images 1000`, with `--methods` naming all but the oracles); older runs with 5,000, in which
methods still shared their noise, are in [results/images-shared-noise](../results/images-shared-noise/README.md).
**CMA-ES** has five seeds instead of ten (`gesmr study run cmaes --profile paper --seeds 5`, less the cost of full
CMA-ES in 10,000 dimensions); the paper has five."""

CLAIMS = """## Claims

Every claim of the paper that can be decided, with the rule that decides it on our runs. Brackets hold 95% intervals."""

BOTH_HALVES = """### The same verdicts elsewhere

The claims of the main study on the other half of the seeds, by the text, and with shifted optima:"""

MOVED = """## With shifted optima

In the paper every optimum but Rosenbrock's is at the mean of the initial distribution, which flatters some methods.
Here every optimum is a draw from that distribution, a new one for each seed. The tables are in
[results/shifted](../results/shifted). The number of rows, out of 40 with a minimum, in which a method is best, oracles
aside:"""


def _facts() -> dict[str, Any]:
    provenance = _json(PRINT / "provenance.json")
    cold, warm = provenance["sessions"][:2]
    seconds = {"cold": round(cold["wall_seconds"]), "warm": round(warm["wall_seconds"])}
    return {**cold, **seconds, "runs": f"{provenance['runs']:,}"}


def _counts() -> str:
    """Tables by reading and half."""
    columns = {
        f"{how}, seeds {seeds}": home / half
        for how, home in (("as printed", PRINT), ("by the text", TEXT))
        for seeds, half in HALVES.items()
    }
    lines = [f"| | {' | '.join(columns)} |", f"| :-- {'| --: ' * len(columns)}|"]
    for name in (*TABLES, "table3_used"):
        files = [home / f"agreement_{name}.csv" for home in columns.values()]
        cells = [_share(_rows(file)) if file.exists() else "(as above)" for file in files]
        lines.append(f"| {TITLES[name].split(':')[0]} | {' | '.join(cells)} |")
    return "\n".join(lines)


def _by_method_and_dimension() -> str:
    """Of both halves, as printed."""
    lines = [
        "By method and dimension, as printed, seeds 0–39 / 40–79:",
        "",
        f"| | {' | '.join(f'{name.title()[:-1]} {name[-1]}, d = {d}' for name in TABLES for d in DIMS)} |",
        f"| :-- {'| --: ' * (len(TABLES) * len(DIMS))}|",
    ]
    cells = {(name, half): _rows(PRINT / half / f"agreement_{name}.csv") for name in TABLES for half in HALVES.values()}
    for method in METHODS:
        line = []
        for name in TABLES:
            for dim in DIMS:
                mine = [
                    [cell for cell in cells[name, half] if (cell["method"], cell["dim"]) == (method, dim)]
                    for half in HALVES.values()
                ]
                agree = " / ".join(str(sum(cell["agrees"] == "1" for cell in half)) for half in mine)
                line.append(f"{agree} of {len(mine[0])}" if mine[0] else "–")
        lines.append(f"| {method} | {' | '.join(line)} |")
    return "\n".join(lines)


def _differing() -> str:
    """Row by row, on which half."""
    lines = ["| | on both halves | on seeds 0–39 alone | on seeds 40–79 alone |", "| :-- | :-- | :-- | :-- |"]
    for name in TABLES:
        wrong = [
            {_place(cell) for cell in _rows(PRINT / half / f"agreement_{name}.csv") if cell["agrees"] == "0"}
            for half in HALVES.values()
        ]
        sets = wrong[0] & wrong[1], wrong[0] - wrong[1], wrong[1] - wrong[0]
        lines.append(f"| {TITLES[name].split(':')[0]} | {' | '.join(map(_listed, sets))} |")
    return "\n".join(lines)


def _place(cell: dict[str, str]) -> tuple[str, int, str, int]:
    return cell["function"].capitalize(), int(cell["dim"]), cell["std"], METHODS.index(cell["method"])


def _listed(places: set[tuple[str, int, str, int]]) -> str:
    where: dict[str, list[str]] = defaultdict(list)
    for function, dim, std, method in sorted(places):
        where[f"{function} {dim}-D std {std}"].append(METHODS[method])
    return "; ".join(f"{row}: {', '.join(methods)}" for row, methods in where.items()) or "none"


def _share(cells: list[dict[str, str]]) -> str:
    return f"{sum(cell['agrees'] == '1' for cell in cells)} of {len(cells)}"


def _claims() -> str:
    """Of all studies, in order."""
    homes = [path for path in sorted(RESULTS.glob("*/claims.json")) if path.parent.name not in _OTHER_RUNS]
    return _claim_lines([claim for path in homes for claim in _json(path) if claim["number"] < OWN])


_OTHER_RUNS = ("as-text", "shifted", "images-shared-noise")  # of claims that another directory decides


def _claims_of(directory: Path) -> str:
    return _claim_lines(_json(directory / "claims.json"))


def _claim_lines(claims: list[dict[str, Any]]) -> str:
    lines = ["| # | The paper says | Rule | Found | |", "| --: | :-- | :-- | :-- | :-- |"]
    for claim in sorted(claims, key=lambda claim: claim["number"]):
        short = f" *Decided on less than the paper's runs: {claim['short']}.*" if claim.get("short") else ""
        cells = claim["number"], claim["claim"], claim["rule"], claim["found"] + short, f"**{claim['verdict']}**"
        lines.append(f"| {' | '.join(map(str, cells))} |")
    return "\n".join(lines)


def _verdicts() -> str:
    homes = {
        "seeds 0–39": PRINT,
        "seeds 40–79": PRINT / "seeds-40-79",
        "by the text, 0–39": TEXT,
        "by the text, 40–79": TEXT / "seeds-40-79",
        "shifted": SHIFTED,
    }
    verdicts = {name: {c["number"]: c["verdict"] for c in _json(home / "claims.json")} for name, home in homes.items()}
    numbers = [n for n in verdicts["seeds 0–39"] if n != 14]  # whose times are the same for all
    lines = [f"| claim | {' | '.join(homes)} |", f"| --: {'| :-- ' * len(homes)}|"]
    lines += [f"| {n} | {' | '.join(found[n] for found in verdicts.values())} |" for n in numbers]
    return "\n".join(lines)


def _table(path: Path) -> str:
    headings = [f"{method}†" if method in ORACLES else method for method in METHODS]
    lines = [f"| Function | d | std | {' | '.join(headings)} |", f"| :-- {'| --: ' * (len(METHODS) + 2)}|"]
    for row in _rows(path):
        cells = [number(float(row[method])) for method in METHODS]
        best = METHODS.index(row["best"])
        cells[best] = f"**{cells[best]}**" + "\\*" * int(row["significant"])
        lines.append(f"| {row['function'].capitalize()} | {row['dim']} | {row['std']} | {' | '.join(cells)} |")
    return "\n".join(
        [*lines, "", "Bold: the best, oracles (†) aside. \\* p < 0.05 against every other method (Welch)."]
    )


def _wins() -> str:
    ranked = [method for method in METHODS if method not in ORACLES]
    lines = [f"| | {' | '.join(ranked)} |", f"| :-- {'| --: ' * len(ranked)}|"]
    for name in TABLES:
        for label, directory in (("as in the paper", PRINT), ("shifted", SHIFTED)):
            best = Counter(row["best"] for row in _rows(directory / f"{name}.csv") if row["function"] != "linear")
            lines.append(f"| {name.replace('table', 'Table ')}, {label} | {' | '.join(str(best[m]) for m in ranked)} |")
    return "\n".join(lines)


def _json(path: Path) -> Any:
    return json.loads(path.read_text(encoding="utf-8"))


def _rows(path: Path) -> list[dict[str, str]]:
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
    print(f"written to {PAGE}")
