"""The report, in a browser: what it shows, what can be done with it, and that it asks for nothing outside itself."""

import base64
import re
from html.parser import HTMLParser

import numpy as np
import pytest
from matplotlib.figure import Figure

from gesmr.lab.errors import LabError
from gesmr.lab.run.batch import Histories
from gesmr.lab.run.store import Store
from gesmr.lab.show import report
from gesmr.lab.show.claims import Finding, Rule
from gesmr.lab.show.report.page import duration
from gesmr.lab.show.table import Table
from gesmr.lab.show.view import Options, View
from gesmr.lab.studies import Selection
from gesmr.lab.studies.functions.chapter import chapter, line_of, thinned, three_digits
from gesmr.lab.studies.functions.figures import ranks
from gesmr.lab.studies.functions.results import Curves, Row
from gesmr.lab.studies.functions.runs import FunctionsStudy, Run, summary
from gesmr.lab.studies.functions.show import VIEW
from gesmr.lab.studies.functions.tables import estimates, number
from helpers.browser import chromium as headless

HOSTILE = "<script>alert(1)</script></script><img src=x onerror=alert(1)>\u2028&'\""
CHAPTERS = {"functions": chapter}
METHODS = ("OFMR", "LAMR-100", "FMR", "SAMR", "GESMR")
FUNCTIONS = ("ackley", "sphere", "linear")
MISSING = ("sphere", 2, 1.0, "FMR")  # the one cell without runs


def _histories(specs):
    """Made up: every method falls at its own speed, but SAMR and GESMR on `linear`, below zero; the rate falls too."""
    t = np.arange(specs[0].generations)
    elites, log_rates = [], []
    for spec in specs:
        spread = 1e-4 if spec.std == 1 else 0.1  # so that some differences are significant
        fast = METHODS.index("SAMR" if (spec.function, spec.method) == ("linear", "GESMR") else spec.method)
        speed = (1 + fast) * (1 + spread * spec.seed + 0.3 * spec.shifted) / spec.generations
        falling = spec.std * spec.dim * np.exp(-speed * t)
        elites.append(falling - 2 * spec.std * spec.dim if spec.function == "linear" else falling)
        log_rates.append(-speed * t - 0.2 * spec.seed)
    elite, log_rate = np.array(elites), np.array(log_rates)
    return Histories(elite[:, 0] + 1, elite, log_rate, log_rate[:, -1])


def _fill(store, *, shifted=False, functions=FUNCTIONS, dims=(2, 1000), label=None, seeds=2, as_text=False):
    selection = Selection("paper", seeds, dims, functions, METHODS, shifted, as_text=as_text)
    specs = [spec for spec in FunctionsStudy().specs(selection) if isinstance(spec, Run)]
    kept = [spec for spec in specs if (spec.function, spec.dim, spec.std, spec.method) != MISSING]
    for group in FunctionsStudy().jobs(kept, 2**40):
        machine = {"gesmr": "0.0", "jax": "0.0", "platform": "cpu", "device": "An <i>abacus</i>"}
        record = {**machine, "label": label or group.label, "seconds": 1.5}
        store.write(group.specs, summary(_histories(group.specs)), record)


@pytest.fixture(scope="module")
def directory(tmp_path_factory):
    directory = tmp_path_factory.mktemp("lab") / "a <b>run</b> & 'more'"
    store = Store(directory / "functions", create=True)
    _fill(store, shifted=False)
    _fill(store, shifted=True, functions=("ackley",), dims=(2,), label=HOSTILE)
    return directory


@pytest.fixture(scope="module")
def page(directory):
    path = report.write(directory, CHAPTERS)
    assert path == directory / "report.html"
    return path


@pytest.fixture(scope="module")
def results(directory):
    return VIEW.results(Store(directory / "functions"))


@pytest.fixture(scope="module")
def chromium(tmp_path_factory):
    with headless(tmp_path_factory.mktemp("browser")) as chromium:
        yield chromium


@pytest.fixture
def browser(chromium, page):
    yield from _opened(chromium, page)


def _demonstration(jobs):
    return "results"


def _figure(results):
    figure = Figure(figsize=(5, 2))
    figure.subplots().plot([1, 2], [1, 3])
    map_of_heat = Figure(figsize=(5, 2))
    map_of_heat.subplots().imshow([[1, 2]])
    return {"line": (f"A line of {HOSTILE}", figure), "heat": ("Shades", map_of_heat)}


DEMONSTRATION = View(
    name="demonstration",
    title=f"A {HOSTILE} study",
    text=f"What to look for: {HOSTILE}",
    load=_demonstration,
    summary=lambda results: HOSTILE,
    make_tables=lambda results: [Table("demo", HOSTILE, ("Name", "Value"), (("=1+1", 0.5), (HOSTILE, 2.0)), HOSTILE)],
    make_figures=_figure,
    rules=(Rule(8, HOSTILE, HOSTILE, lambda results: Finding(True, HOSTILE)),),
)


@pytest.fixture(scope="module")
def studies(tmp_path_factory):
    """A page of the usual study and of another."""
    directory = tmp_path_factory.mktemp("studies")
    for name in ("functions", "demonstration"):
        _fill(Store(directory / name, create=True), functions=("sphere",), dims=(2,))
    return report.write(directory, {**CHAPTERS, "demonstration": DEMONSTRATION.chapter})


@pytest.fixture
def on_studies(chromium, studies):
    yield from _opened(chromium, studies)


def _opened(chromium, page):
    """The page, freshly opened. In the end it must have written nothing to the console and requested nothing."""
    chromium.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})
    chromium.get("about:blank")
    for kind in ("browser", "performance"):
        chromium.get_log(kind)
    chromium.get(page.as_uri())
    chromium.execute_script("localStorage.clear()")
    yield chromium
    assert chromium.get_log("browser") == []
    requests = re.findall(
        r'"Network\.requestWillBeSent".*?"url":"(.*?)"',
        "\n".join(entry["message"] for entry in chromium.get_log("performance")),
    )
    assert {url for url in requests if not url.startswith(("data:", "blob:"))} <= {page.as_uri()}
    entries = "return performance.getEntriesByType('resource').map((entry) => entry.name)"
    assert [url for url in chromium.execute_script(entries) if not url.startswith(("data:", "blob:"))] == []


def _wait(browser, seconds):
    return pytest.importorskip("selenium.webdriver.support.ui").WebDriverWait(browser, seconds)


def _find(browser, selector):
    return browser.find_element("css selector", selector)


def _choose(browser, selector, value):
    script = "arguments[0].value = arguments[1]; arguments[0].dispatchEvent(new Event('change', {bubbles: true}))"
    browser.execute_script(script, _find(browser, selector), value)


def _click(browser, selector):
    element = _find(browser, selector)
    browser.execute_script("arguments[0].scrollIntoView({block: 'center'})", element)
    element.click()


def _line(browser, plot, method):
    """What the plot draws of a method: x, y and whether it is visible."""
    script = """const line = document.getElementById(arguments[0]).data.find((trace) => trace.name === arguments[1]);
                return {x: [...line.x], y: [...line.y], visible: line.visible, colour: line.line.color}"""
    return browser.execute_script(script, plot, method)


def _expected(results, row, method):
    curves = results.curves(row, method)
    kept = thinned(curves.generation)
    return curves.generation[kept], curves.elite[:, kept].mean(0), np.exp(curves.log_rate[:, kept].mean(0))


@pytest.mark.parametrize("row", [Row("sphere", 1000, 10.0), Row("ackley", 2, 1.0), Row("linear", 2, 10.0)])
def test_a_chosen_row_is_drawn(browser, results, row):
    for part, value in (("function", row.function), ("dim", row.dim), ("std", f"{row.std:g}")):
        _choose(browser, f"#choose-{part}", value)
    for method in METHODS:
        generation, value, rate = _expected(results, row, method)
        for plot, expected in (("plot-value", value), ("plot-rate", rate)):
            line = _line(browser, plot, method)
            assert line["x"] == generation.tolist()
            np.testing.assert_allclose(line["y"], expected, rtol=2e-3)
    assert row.label in _find(browser, "#row-label").text


def test_a_link_in_a_table_draws_its_row(browser):
    _click(browser, '.panel[data-table="table1"] tr[data-function="sphere"][data-d="2"][data-std="10"] a')
    assert _find(browser, "#row-label").text.startswith("Sphere 2-D, std 10")


def test_values_below_zero_have_no_log_axis(browser):
    kind = "return document.getElementById('plot-value').layout.yaxis.type"
    _choose(browser, "#choose-function", "sphere")
    assert browser.execute_script(kind) == "log"
    assert _find(browser, "#log-value").is_enabled()
    _click(browser, "#log-value")
    assert browser.execute_script(kind) == "linear"
    _click(browser, "#log-value")
    _choose(browser, "#choose-function", "linear")
    assert browser.execute_script(kind) == "linear"
    assert not _find(browser, "#log-value").is_enabled()
    assert "negative" in _find(browser, "#log-value-reason").text


@pytest.mark.parametrize(("box", "plot", "axis"), [("log-rate", "rate", "yaxis"), ("log-generation", "value", "xaxis")])
def test_other_axes_switch(browser, box, plot, axis):
    kind = f"return document.getElementById('plot-{plot}').layout.{axis}.type"
    before = browser.execute_script(kind)
    _click(browser, f"#{box}")
    assert {before, browser.execute_script(kind)} == {"log", "linear"}


def test_methods_are_toggled_in_both_plots(browser):
    def visible(method):
        return [_line(browser, plot, method)["visible"] for plot in ("plot-value", "plot-rate")]

    _click(browser, '#methods input[value="SAMR"]')
    assert visible("SAMR") == visible("SAMR band") == [False, False]
    assert visible("GESMR") == visible("GESMR band") == [True, True]
    _click(browser, '[data-show="ranked"]')
    assert {method: visible(method)[0] for method in METHODS} == {m: m not in ("OFMR", "LAMR-100") for m in METHODS}
    _click(browser, '[data-show="none"]')
    assert not any(visible(method)[0] for method in METHODS)
    _find(browser, '#methods input[value="GESMR"]').send_keys(" ")  # by keyboard
    assert visible("GESMR") == [True, True]
    _click(browser, "#bands")
    assert visible("GESMR band") == [False, False]


def test_ranks_come_first_by_function_and_by_row(browser, results):
    assert browser.execute_script("return document.querySelector('main section[id]').id") == "ranks"
    lines = 'return [...document.querySelectorAll(".ranks")[0].querySelectorAll("table")].map((table) => ['
    lines += '[...table.querySelectorAll("thead th")].map((cell) => cell.textContent.trim()),'
    lines += "...[...table.tBodies[0].rows].filter((row) => row.getClientRects().length).map("
    lines += "(row) => [...row.cells].map((cell) => cell.textContent.trim()))])"
    for table, (methods, *shown) in zip(("final", "mean", "rate_error"), browser.execute_script(lines), strict=True):
        functions = [name for name in FUNCTIONS if not (table == "rate_error" and name == "linear")]
        rank = ranks(results, table)[:, [results.ranked.index(method) for method in methods]]
        assert methods == sorted(methods, key=lambda m: np.nanmean(ranks(results, table)[:, results.ranked.index(m)]))
        assert shown[0] == ["All", *(f"{value:.1f}" for value in np.nanmean(rank, axis=0))]
        assert [line[0] for line in shown[1:]] == [name.capitalize() for name in functions]
        of_sphere = [i for i, row in enumerate(results.rows) if row.function == "sphere"]
        assert shown[1 + functions.index("sphere")][1:] == [f"{v:.1f}" for v in np.nanmean(rank[of_sphere], axis=0)]
    _click(browser, "#every-rank")
    methods, *shown = browser.execute_script(lines)[0]
    column = 1 + methods.index("FMR")
    assert len(shown) == 1 + len(FUNCTIONS) + len(results.rows)
    assert [line[column] for line in shown if line[0] == "2-D, std 1"] == ["3", "–", "3"]  # ackley, sphere, linear


def test_a_rank_leads_to_its_table(browser):
    _click(browser, '.ranks caption a[href="#tab-table2"]')
    assert _find(browser, "#tab-table2").get_attribute("aria-selected") == "true"


def _column(browser, method):
    """Row and value of the cells of a column of Table 1, from top to bottom."""
    script = """const table = document.querySelector('.panel[data-table="table1"] table');
                const column = [...table.tHead.rows[0].cells].findIndex((cell) => cell.innerText === arguments[0]);
                return [...table.tBodies[0].rows].map((row) => [
                  [row.dataset.function, row.dataset.d, row.dataset.std].join(), row.cells[column].innerText.trim()])"""
    return browser.execute_script(script, method)


@pytest.mark.parametrize("method", ["GESMR", "FMR"])
def test_tables_sort_by_value_with_what_is_missing_last(browser, results, method):
    table = estimates(results)[0]
    means = dict(zip(table.rows, table.mean[:, table.methods.index(method)], strict=True))
    names = {row: f"{row.function},{row.dim},{row.std:g}" for row in table.rows}
    there = [row for row in table.rows if not np.isnan(means[row])]
    missing = [row for row in table.rows if np.isnan(means[row])]
    assert len(missing) == (method == "FMR")
    heading = f'//div[@data-table="table1"][@data-variant="centred"]//th[normalize-space()="{method}"]'
    button = browser.find_element("xpath", f"{heading}/button")
    browser.execute_script("arguments[0].scrollIntoView({block: 'center'})", button)
    orders = {
        "ascending": [*sorted(there, key=means.__getitem__), *missing],
        "descending": [*sorted(there, key=means.__getitem__, reverse=True), *missing],
        None: list(table.rows),
    }
    for direction, order in orders.items():
        button.click()
        assert browser.find_element("xpath", heading).get_attribute("aria-sort") == direction
        shown = _column(browser, method)
        assert [name for name, _ in shown] == [names[row] for row in order]
        assert [text.split("\n")[0].rstrip("*") for _, text in shown] == [three_digits(means[row]) for row in order]


def _bold(browser, table):
    """The methods in bold of every row, and whether each has a star."""
    script = """const table = document.querySelector(arguments[0]);
                const names = [...table.tHead.rows[0].cells].map((cell) => cell.innerText.trim());
                const bold = (cell) => Number(getComputedStyle(cell.querySelector('.mean')).fontWeight) > 600;
                return [...table.tBodies[0].rows].map((row) => Object.fromEntries(
                  [...row.querySelectorAll('td[data-error]')].filter(bold).map(
                    (cell) => [names[cell.cellIndex], cell.querySelector('sup')?.textContent === '*'])))"""
    return browser.execute_script(script, f'.panel[data-table="{table}"][data-variant="centred"] table')


def test_tables_mark_the_best_and_what_shows_the_same_digits(browser, results):
    def expected(table, shown):
        rows = []
        for i, best in enumerate(table.best):
            texts = {method: shown(table.cell(i, method)) for method in table.ranked}
            equal = [method for method in table.ranked if best and texts[method] == texts[best]]
            rows.append({method: method == best and table.significant[i] for method in equal})
        return rows

    tables = estimates(results)
    for table in tables:
        assert set(table.significant) == {False, True} or table.name != "table1"
        assert _bold(browser, table.name) == expected(table, three_digits)
    _click(browser, '[name="digits"][value="printed"]')
    for table in tables:
        assert _bold(browser, table.name) == expected(table, number)
    assert max(map(len, expected(tables[0], three_digits))) > 1  # on Linear two are equal
    cell = '.panel[data-table="table1"] tr[data-function="ackley"][data-d="2"][data-std="1"] td.ours .mean'
    assert _find(browser, cell).text == number(tables[0].cell(0, "GESMR"))
    _click(browser, '[name="digits"][value="three"]')
    assert _find(browser, cell).text == three_digits(tables[0].cell(0, "GESMR"))


@pytest.mark.parametrize(
    ("value", "text"),
    [(0.0, "0"), (1.23456e-12, "1.23e-12"), (0.00999999, "0.0100"), (0.0123, "0.0123"), (9.999, "10.0"),
     (-1.5, "-1.50"), (999.6, "1000"), (1234.5, "1234"), (12345.0, "1.23e4"), (np.nan, "–")],
)  # fmt: skip
def test_three_digits(value, text):
    assert three_digits(value) == text


def test_a_table_is_downloaded_as_csv(browser, results):
    link = _find(browser, '.panel[data-table="table1"][data-variant="centred"] a[download]')
    assert link.get_attribute("download") == "table1-centred.csv"
    lines = base64.b64decode(link.get_attribute("href").partition("base64,")[2]).decode().splitlines()
    assert lines[0].startswith("function,dim,std,OFMR,LAMR-100,FMR,SAMR,GESMR,best,significant,OFMR_se")
    table = estimates(results)[0]
    first = dict(zip(lines[0].split(","), lines[1].split(","), strict=True))
    assert float(first["GESMR"]) == pytest.approx(table.cell(0, "GESMR"), rel=1e-5)
    assert len(lines) == 1 + len(table.rows)


def test_no_table_is_cut_and_its_headings_stay_in_sight(browser):
    cut = "return [...document.querySelectorAll('.scroll')].filter((box) => box.scrollHeight > box.clientHeight).length"
    assert browser.execute_script(cut) == 0
    last = '.panel[data-table="table1"] tbody tr:last-child'
    browser.execute_script("arguments[0].scrollIntoView({block: 'start'})", _find(browser, last))
    _wait(browser, 5).until(lambda _: "translate" in (_find(browser, ".panel thead").get_attribute("style") or ""))


def test_tables_are_chosen_and_filtered(browser):
    def shown():
        panels = [p for p in browser.find_elements("css selector", ".panel") if p.is_displayed()]
        assert len(panels) == 1
        rows = [row for row in panels[0].find_elements("css selector", "tbody tr") if row.is_displayed()]
        return panels[0].get_attribute("data-table"), panels[0].get_attribute("data-variant"), len(rows)

    assert shown() == ("table1", "centred", 12)
    _choose(browser, '[data-filter="d"]', "1000")
    assert shown() == ("table1", "centred", 6)
    _choose(browser, '[data-filter="function"]', "sphere")
    assert shown() == ("table1", "centred", 2)
    assert "2 of 12" in _find(browser, ".count-rows").text
    _choose(browser, '[data-filter="function"]', "")
    _find(browser, "#tab-table1").send_keys("\ue014")  # the right arrow
    assert shown()[0] == "table2"
    _click(browser, "#tab-table3")
    assert shown() == ("table3", "centred", 4)


def test_centred_and_shifted_are_switched_together(browser, directory):
    _choose(browser, "#choose-function", "ackley")
    centred = _line(browser, "plot-value", "GESMR")
    _click(browser, '[name="variant-tables"][value="shifted"]')
    assert _find(browser, '[name="variant-curves"][value="shifted"]').is_selected()
    assert not _find(browser, '[name="variant-curves"][value="centred"]').is_selected()
    panels = [p for p in browser.find_elements("css selector", ".panel") if p.is_displayed()]
    assert [panel.get_attribute("data-variant") for panel in panels] == ["shifted"]
    shifted = VIEW.results(Store(directory / "functions"), Options(shifted=True))
    row = Row("ackley", 2, float(_find(browser, "#choose-std").get_attribute("value")))
    line = _line(browser, "plot-value", "GESMR")
    assert line != centred
    np.testing.assert_allclose(line["y"], _expected(shifted, row, "GESMR")[1], rtol=2e-3)


def test_theme_switches_and_stays(browser):
    theme = "return document.documentElement.dataset.theme"
    background = "return getComputedStyle(document.body).backgroundColor"
    before = [browser.execute_script(theme), browser.execute_script(background), _line(browser, "plot-value", "GESMR")]
    _click(browser, "#theme")
    after = [browser.execute_script(theme), browser.execute_script(background), _line(browser, "plot-value", "GESMR")]
    assert {before[0], after[0]} == {"light", "dark"}
    assert before[1] != after[1]
    assert before[2]["colour"] != after[2]["colour"]
    assert before[2]["y"] == after[2]["y"]
    browser.refresh()
    assert browser.execute_script(theme) == after[0]


def test_a_phone_never_scrolls_sideways(browser):
    metrics = {"width": 390, "height": 844, "deviceScaleFactor": 1, "mobile": True}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)
    browser.refresh()
    for tab in ("table1", "table2", "table3"):
        _click(browser, f"#tab-{tab}")
        assert browser.execute_script("return [document.documentElement.scrollWidth, innerWidth]") == [390, 390]
    _click(browser, "details summary")
    assert browser.execute_script("return document.documentElement.scrollWidth <= innerWidth")
    left = [browser.find_element("id", plot).rect["x"] for plot in ("plot-value", "plot-rate")]
    assert left[0] == left[1]


def test_a_phone_has_its_navigation_in_one_line(on_studies):
    metrics = {"width": 390, "height": 844, "deviceScaleFactor": 1, "mobile": True}
    on_studies.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)
    on_studies.refresh()
    assert on_studies.execute_script("return document.querySelector('.top').offsetHeight") < 64
    assert on_studies.execute_script("return document.documentElement.scrollWidth") == 390


def test_a_phone_shows_gesmr_beside_the_name_and_that_more_follows(browser):
    metrics = {"width": 390, "height": 844, "deviceScaleFactor": 1, "mobile": True}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)
    browser.refresh()
    panel = '.panel[data-table="table1"][data-variant="centred"]'
    sides = "const at = document.querySelector(arguments[0]).getBoundingClientRect(); return [at.left, at.right]"
    name, gesmr = (browser.execute_script(sides, f"{panel} tbody tr {cell}") for cell in (".k3", "td.ours"))
    assert gesmr[0] == pytest.approx(name[1], abs=1)
    assert gesmr[1] < 390
    assert _find(browser, f"{panel} .cue").is_displayed()
    browser.execute_script(f"document.querySelector('{panel} .scroll').scrollLeft = 9999")
    _wait(browser, 5).until(lambda _: not _find(browser, f"{panel} .cue").is_displayed())


def test_claims_come_before_tables_with_their_verdicts_in_words(browser):
    sections = [s.get_attribute("id") for s in browser.find_elements("css selector", "main > section[id]")]
    assert sections == ["ranks", "claims", "tables", "curves", "glossary", "provenance"]
    claims = browser.find_elements("css selector", ".claim")
    assert [claim.get_attribute("data-claim") for claim in claims] == ["1", "2", "3", "4", "5", "6", "7", "14", "18"]
    for claim in claims:
        badges = [badge.text for badge in claim.find_elements("css selector", ".badge")]
        runs = [label.text for label in claim.find_elements("css selector", ".found .runs")]
        assert runs in (["centred", "shifted"], ["centred and shifted"])
        assert len(badges) == len(runs)
        assert all(re.fullmatch(r"[✓✗?] (holds|does not hold|not decidable)", badge) for badge in badges)


def test_nothing_stored_becomes_markup(browser, directory):
    assert browser.execute_script("return document.querySelectorAll('img, i, b').length") == 0
    labels = "return [...document.querySelectorAll('details td')].map((cell) => cell.textContent)"
    assert HOSTILE in browser.execute_script(labels)
    assert "An <i>abacus</i>" in _find(browser, ".machine").text
    assert str(directory) == _find(browser, "#provenance code").text


def test_no_text_of_a_study_becomes_markup(on_studies):
    section = _find(on_studies, "#demonstration")
    assert HOSTILE in section.get_attribute("textContent")
    assert on_studies.execute_script("return document.querySelectorAll('main img:not(.plate img), i, b').length") == 0
    assert _find(on_studies, "#demonstration img").get_attribute("alt") == f"A line of {HOSTILE}"


def test_a_figure_is_enlarged_by_keyboard_and_fits_both_themes(on_studies):
    shown = "return getComputedStyle(document.querySelector('.plate img')).filter"
    filters = {}
    for _ in range(2):
        _click(on_studies, "#theme")
        filters[on_studies.execute_script("return document.documentElement.dataset.theme")] = on_studies.execute_script(
            shown
        )
    assert filters["light"] == "none"
    assert filters["dark"].startswith("invert")
    button, dialog = _find(on_studies, ".enlarge"), _find(on_studies, "#enlarged")
    width = on_studies.execute_script("return document.querySelector('.plate img').clientWidth")
    assert not dialog.is_displayed()
    button.send_keys("\ue007")  # Enter
    assert dialog.is_displayed()
    large = "return document.querySelector('#enlarged img').clientWidth"
    first = on_studies.execute_script(large)
    assert first >= 1680 > 1.5 * width
    _click(on_studies, '[data-zoom="1.4"]')
    assert on_studies.execute_script(large) == pytest.approx(1.4 * first, abs=2)
    dialog.send_keys("\ue00c")  # Escape
    assert not dialog.is_displayed()


def test_a_heat_map_keeps_its_colours_in_the_dark(on_studies):
    on_studies.execute_script("document.documentElement.dataset.theme = 'dark'")
    shown = "return [...document.querySelectorAll('#demonstration img')].map((image) => getComputedStyle(image).filter)"
    line, heat = on_studies.execute_script(shown)
    assert line.startswith("invert")
    assert heat == "none"


def test_a_phone_shows_figures_large_enough_to_read(on_studies):
    metrics = {"width": 390, "height": 844, "deviceScaleFactor": 1, "mobile": True}
    on_studies.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)
    on_studies.refresh()
    width = on_studies.execute_script("return document.querySelector('.plate img').clientWidth")
    assert width / 5 * 7 / 72 >= 9  # pixels of the smallest letters, 7 points high in a figure 5 inches wide
    assert on_studies.execute_script("return document.documentElement.scrollWidth") == 390


def test_a_number_of_a_table_is_not_broken_over_lines(on_studies):
    wrap = "return getComputedStyle(document.querySelector('#demonstration td.number')).whiteSpace"
    assert on_studies.execute_script(wrap) == "nowrap"


def test_no_button_sends_anything(browser):
    titles = "return [...document.querySelectorAll('.modebar-btn')].map((button) => button.dataset.title)"
    assert set(browser.execute_script(titles)) == {"Download plot", "Zoom", "Pan", "Zoom in", "Zoom out", "Reset axes"}


class _Addresses(HTMLParser):
    """What elements refer to."""

    def __init__(self, text):
        super().__init__()
        self.found, self.policies = [], []
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        given = dict(attrs)
        self.found += [given[name] for name in ("src", "href", "srcset", "action", "data") if given.get(name)]
        if given.get("http-equiv") == "Content-Security-Policy":
            self.policies.append(given["content"])


def test_page_refers_to_nothing_outside(page):
    addresses = _Addresses(page.read_text("utf-8"))
    assert addresses.found
    assert all(address.startswith(("#", "data:")) for address in addresses.found)
    assert len(addresses.policies) == 1
    assert addresses.policies[0].startswith("default-src 'none'; script-src 'sha256-")


def _plain(page):
    return re.sub(r"</?(?:span|pre)\b[^>]*>", "", page.read_text("utf-8"))


def test_page_says_how_the_paper_was_read_and_where_runs_fall_short(tmp_path):
    functions = ("ackley", "griewank", "rastrigin", "rosenbrock", "sphere", "linear")
    store = Store(tmp_path / "functions", create=True)
    _fill(store, functions=functions, dims=(30, 100, 1000), seeds=range(40, 42), as_text=True)
    text = _plain(report.write(tmp_path, CHAPTERS))
    assert "--dims 30,100,1000" in text
    assert "--seeds 40-41 --as-text" in text
    assert "centred, as text: 36 rows × 5 methods × 2 seeds" in text
    # claims 1–5 and 18: of the others the runs are missing
    assert text.count("Decided on less than the paper’s runs: 2 of 40 seeds, 3 of 4 dimensions.") == 6


def test_page_repeats_its_commands(page):
    text = _plain(page)
    run = "gesmr study run functions --profile quick --dims 2 --functions ackley"
    assert re.search(rf"^{run} --methods \S+ --seeds 2 --shifted --out", text, re.MULTILINE)
    assert re.search(r"^gesmr report ", text, re.MULTILINE)


def test_page_repeats_the_commands_that_were_given(tmp_path):
    store = Store(tmp_path / "functions", create=True)
    _fill(store, functions=("sphere",), dims=(2,))
    for command in ("gesmr study run functions --dims 2", "gesmr study reproduce functions --threads 1") * 2:
        store.log({"runs": 1, "command": command})
    commands = chapter(tmp_path / "functions").commands
    assert commands == ["gesmr study run functions --dims 2", "gesmr study reproduce functions --threads 1"]
    store.log({"runs": 1})  # of an older version: who knows what it was
    assert chapter(tmp_path / "functions").commands[0].startswith("gesmr study run functions --profile")


def test_page_says_what_is_missing_and_what_computes_it(browser, directory):
    caution = _find(browser, ".caution").text
    assert "Missing: functions griewank, rastrigin, rosenbrock; dimensions 30, 100; methods 15MR, 1CMR" in caution
    assert "seeds 2 to 39; 2 other runs." in caution
    command = f"gesmr study run functions --profile paper --out {report.shell(directory)}"
    assert command in caution
    assert f"{command.replace(' --out', ' --shifted --out')}" in caution


def test_claims_lead_to_their_evidence(browser):
    links = browser.find_elements("css selector", ".claim .evidence a")
    targets = {link.get_attribute("href").partition("#")[2] for link in links}
    assert targets == {"tab-table1", "tab-table2", "tab-table3", "curves"}
    _click(browser, '.claim[data-claim="4"] .evidence a')
    assert _find(browser, "#tab-table3").get_attribute("aria-selected") == "true"


def test_glossary_has_every_method(browser):
    terms = _find(browser, ".glossary").text
    assert all(method.replace("LAMR-100", "LAMR-G") in terms for method in METHODS)


def test_a_rate_that_leaps_is_a_smooth_line_with_its_range():
    log_rate = np.tile(np.where(np.arange(200) % 2, np.log(1e-3), np.log(1e-1)), (2, 1))
    history = Curves(np.arange(200), np.ones((2, 200)), log_rate)
    for method, low, middle, high in (("UCB/5", -3, -2, -1), ("SAMR", -3, -3, -3)):
        line = line_of(method, history, np.array([101]))
        assert [line[f"rate{end}"][0] for end in ("_low", "", "_high")] == pytest.approx([low, middle, high], abs=0.2)


def test_curves_stay_small(page):
    """The paper's 48 rows with 11 methods each are to take less than 4 MB."""
    data = re.search(r'id="data-curves">(.*?)</script>', page.read_text("utf-8"), re.DOTALL)
    assert data is not None
    lines = 12 * len(METHODS) - 1 + 2 * len(METHODS)
    assert len(data[1]) / lines * 48 * 11 < 4e6


def test_thinned_generations_keep_the_ends_and_the_beginning():
    assert thinned(np.arange(1, 101)).tolist() == list(range(100))
    generation = 1 + np.round(np.linspace(0, 2499, 500)).astype(int)
    kept = generation[thinned(generation)]
    assert (kept[0], kept[-1]) == (1, 2500)
    assert 80 <= len(kept) <= 120
    assert np.diff(kept).max() <= 2 * 2500 / 60
    assert (np.diff(kept) > 0).all()


@pytest.mark.parametrize(
    ("seconds", "text"), [(0.2, "0 s"), (59.6, "1 min 0 s"), (125, "2 min 5 s"), (11520, "3 h 12 min")]
)
def test_durations(seconds, text):
    assert duration(seconds) == text


def test_a_directory_without_results_is_refused(tmp_path):
    with pytest.raises(LabError, match="holds no results"):
        report.write(tmp_path, CHAPTERS)
    Store(tmp_path / "functions", create=True)
    with pytest.raises(LabError, match="holds no centred runs"):
        report.write(tmp_path, CHAPTERS)
    assert not (tmp_path / "report.html").exists()


def test_a_study_that_has_just_begun_is_named_and_others_are_shown(tmp_path):
    _fill(Store(tmp_path / "functions", create=True), functions=("sphere",), dims=(2,))
    Store(tmp_path / "demonstration", create=True)
    text = report.write(tmp_path, {**CHAPTERS, "demonstration": DEMONSTRATION.chapter}).read_text("utf-8")
    assert "demonstration holds no results; <code>gesmr study run demonstration</code> makes some." in text
    assert 'id="tables"' in text


def test_shifted_runs_alone_make_a_page(tmp_path):
    _fill(Store(tmp_path / "functions", create=True), shifted=True, functions=("sphere",), dims=(2,))
    assert "shifted: 2 rows × 5 methods × 2 seeds" in report.write(tmp_path, CHAPTERS).read_text("utf-8")
