"""Does the library give the paper's numbers? Tables 1–3, three functions, d = 30 and 100, forty seeds."""

import pytest
from rich.console import Console

from gesmr.lab.run import runner
from gesmr.lab.run.lanes import METHODS
from gesmr.lab.run.store import Store
from gesmr.lab.studies import STUDIES, Selection
from gesmr.lab.studies.functions.agreement import agreement, read_printed
from gesmr.lab.studies.functions.show import VIEW
from gesmr.lab.studies.functions.tables import estimates
from helpers import DATA


@pytest.mark.slow
def test_the_printed_tables(tmp_path):
    """132 cells of Tables 1 and 2 and 120 of Table 3, by nine standard errors or five per cent.

    A right implementation fails in a cell with probability well below 1% where seeds are alike, and more often in
    Table 3, where LAMR-100's choice of a rate is a close race: at least 97% of Tables 1 and 2, and 94% of Table 3.
    """
    study, store = STUDIES["functions"], Store(tmp_path / "functions", create=True)
    wanted = Selection("paper", 40, (30, 100), ("sphere", "rastrigin", "ackley"))
    runner.run(study, study.specs(wanted), store, console=Console(quiet=True))
    for table, file, share in zip(
        estimates(VIEW.results(store)), sorted(DATA.glob("table*.csv")), (97, 97, 94), strict=True
    ):
        assert file.name.startswith(table.name)
        cells = agreement(table, read_printed(file))
        wrong = [cell for cell in cells if not cell.agrees]
        assert len(cells) == 12 * (len(METHODS) - (table.name == "table3"))
        assert len(wrong) <= (1 - share / 100) * len(cells), (table.title, wrong)
