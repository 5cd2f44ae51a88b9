"""The page, in a browser: what can be done with it, live and exported, and that it asks for nothing outside."""

import json
import re
import threading
from urllib.parse import urlsplit

import pytest

from gesmr.lab.playground import Playground
from gesmr.lab.playground.page import PRESETS
from gesmr.lab.playground.settings import Setting
from gesmr.lab.playground.simulation import frames
from helpers.browser import chromium as headless
from helpers.processes import wait_until

SPACE, LEFT, RIGHT, HOME, END, SHIFT = " ", "\ue012", "\ue014", "\ue011", "\ue010", "\ue008"
FIRST = Setting(**PRESETS[0].setting)


@pytest.fixture(scope="module")
def playground():
    with Playground() as playground:
        threading.Thread(target=playground.serve_forever, daemon=True).start()
        yield playground
        playground.shutdown()


@pytest.fixture(scope="module")
def home(tmp_path_factory):
    """The browser's."""
    return tmp_path_factory.mktemp("browser")


@pytest.fixture(scope="module")
def downloads(home):
    return home / "downloads"


@pytest.fixture(scope="module")
def chromium(home):
    with headless(home) as chromium:
        yield chromium


@pytest.fixture
def browser(chromium, playground):
    """The page with its first preset, paused at the start. It must write nothing to the console but what the server
    refused, and request nothing from elsewhere."""
    chromium.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})
    chromium.get("about:blank")
    for kind in ("browser", "performance"):
        chromium.get_log(kind)
    chromium.get(playground.url)
    chromium.execute_script("localStorage.clear()")
    _computed(chromium)
    chromium.execute_script("Player.pause()")
    _press(chromium, HOME)
    yield chromium
    said = [entry["message"] for entry in chromium.get_log("browser")]
    assert [line for line in said if "400 (Bad Request)" not in line] == []
    log = "\n".join(entry["message"] for entry in chromium.get_log("performance"))
    requested = set(re.findall(r'"Network\.requestWillBeSent".*?"url":"(.*?)"', log))
    assert requested
    for url in requested:
        parts = urlsplit(url)
        assert parts.scheme in ("data", "blob", "file") or parts.netloc == f"127.0.0.1:{playground.port}", url


def _find(browser, selector):
    return browser.find_element("css selector", selector)


def _press(browser, *keys):
    """Keys, where nothing in particular has the focus."""
    browser.execute_script("document.activeElement.blur()")
    _find(browser, "body").send_keys(*keys)


def _set(browser, name, value):
    script = """const field = document.querySelector(`#settings [name="${arguments[0]}"]`);
                field.value = arguments[1]; field.dispatchEvent(new Event('change', {bubbles: true}))"""
    browser.execute_script(script, name, value)


def _frame(browser):
    shown = _find(browser, "#generation").text
    return int(shown.split(" / ")[0])


def _at(browser, frame):
    wait_until(lambda: _frame(browser) == frame, seconds=10)


def _computed(browser):
    ready = "return Player.state.runs.length > 0 && !document.querySelector('#status').classList.contains('busy')"
    wait_until(lambda: browser.execute_script(ready))


def _best(browser, method):
    """The run that is shown, as it came."""
    script = "return Player.state.runs.find((run) => run.setting.method === arguments[0]).best"
    return browser.execute_script(script, method)


def _pixels(browser, selector):
    """What a canvas shows, as an image in text."""
    return browser.execute_script("return document.querySelector(arguments[0]).toDataURL()", selector)


def test_the_first_preset_shows_a_vanishing_rate_in_ten_seconds(browser):
    assert [panel.get_attribute("data-method") for panel in browser.find_elements("css selector", ".panel")] == [
        "GESMR",
        "SAMR",
    ]
    for method in ("GESMR", "SAMR"):
        run = frames(Setting(**PRESETS[0].setting, method=method))
        assert _best(browser, method) == pytest.approx(run.best.tolist())
    assert _best(browser, "GESMR")[-1] < 1e-3
    assert _best(browser, "SAMR")[-1] > 0.9
    seconds = FIRST.generations / float(_find(browser, "#speed").get_attribute("value"))
    assert seconds <= 10
    rate = """const run = Player.state.runs.find((run) => run.setting.method === arguments[0]);
              return 10 ** run.rates[30 * run.width + run.elites[0]]"""
    assert browser.execute_script(rate, "SAMR") < 0.01
    assert browser.execute_script(rate, "GESMR") > 0.1


def test_it_plays_and_pauses(browser):
    _find(browser, "#play").click()
    assert _find(browser, "#play").get_attribute("aria-label") == "Pause"
    wait_until(lambda: _frame(browser) >= 3, seconds=10)
    _find(browser, "#play").click()
    assert _find(browser, "#play").get_attribute("aria-label") == "Play"
    stopped = _frame(browser)
    before = _pixels(browser, ".map")
    _find(browser, "#forward").click()
    _at(browser, stopped + 1)
    assert _pixels(browser, ".map") != before
    _find(browser, "#back").click()
    _at(browser, stopped)
    assert _pixels(browser, ".map") == before


def test_it_is_scrubbed(browser):
    canvases = (".map", ".rates", "#values")
    before = [_pixels(browser, canvas) for canvas in canvases]
    script = "arguments[0].value = 60; arguments[0].dispatchEvent(new Event('input', {bubbles: true}))"
    browser.execute_script(script, _find(browser, "#scrub"))
    _at(browser, 60)
    assert all(_pixels(browser, canvas) != old for canvas, old in zip(canvases, before, strict=True))
    _find(browser, "#last").click()
    _at(browser, FIRST.generations)
    _find(browser, "#first").click()
    _at(browser, 0)


def test_it_works_by_keyboard(browser):
    for keys, frame in (
        ((RIGHT,), 1),
        ((SHIFT, RIGHT), 11),
        ((LEFT,), 10),
        ((END,), 120),
        ((LEFT,), 119),
        ((HOME,), 0),
    ):
        _press(browser, *keys)
        _at(browser, frame)
    _press(browser, SPACE)
    wait_until(lambda: _frame(browser) >= 2, seconds=10)
    _press(browser, SPACE)
    assert browser.execute_script("return Player.state.playing") is None
    _find(browser, '[name="seed"]').send_keys(HOME, RIGHT)  # there they move in the text
    assert _frame(browser) < 120
    focus = "const s = getComputedStyle(document.activeElement); return [s.outlineStyle, s.outlineWidth]"
    assert browser.execute_script(focus) == ["solid", "2px"]
    unnamed = """return [...document.querySelectorAll('button, input, select, canvas')].filter((one) =>
                 !(one.ariaLabel || one.labels?.length || one.textContent.trim())).map((one) => one.outerHTML)"""
    assert browser.execute_script(unnamed) == []


def test_another_seed_is_another_run(browser):
    before = _best(browser, "GESMR")
    _press(browser, "n")
    wait_until(lambda: _best(browser, "GESMR") != before, seconds=10)
    run = frames(Setting(**{**PRESETS[0].setting, "seed": 1}))
    assert _best(browser, "GESMR") == pytest.approx(run.best.tolist())


def test_methods_come_and_go_while_the_generation_stays(browser):
    _press(browser, SHIFT, RIGHT)
    _at(browser, 10)
    _find(browser, '[value="FMR"]').click()
    wait_until(lambda: len(browser.find_elements("css selector", ".panel")) == 3)
    assert _frame(browser) == 10
    _find(browser, '[value="1CMR"]').click()
    wait_until(lambda: len(browser.find_elements("css selector", ".panel")) == 4)
    assert not _find(browser, '[value="15MR"]').is_enabled()
    before = _pixels(browser, ".map")
    _set(browser, "zoom", "4")
    wait_until(lambda: _pixels(browser, ".map") != before)
    assert _frame(browser) == 10


def test_what_is_wrong_is_said_in_the_page_and_can_be_put_right(browser):
    error = _find(browser, "#error")
    _set(browser, "children", "3")
    wait_until(error.is_displayed)
    assert error.text == "children must be an integer from 4 to 400, got 3"
    assert _find(browser, '[name="children"]').get_attribute("aria-invalid") == "true"
    _set(browser, "children", "100")
    wait_until(lambda: not error.is_displayed())
    for method in ("GESMR", "SAMR"):
        _find(browser, f'[value="{method}"]').click()
    wait_until(error.is_displayed)
    assert "one to four" in error.text


def test_values_below_zero_have_no_log_scale(browser):
    assert _find(browser, "#values-scale").text == "log scale"
    _set(browser, "generations", "5")
    _set(browser, "function", "linear")
    wait_until(lambda: _find(browser, "#values-scale").text == "")
    assert min(_best(browser, "GESMR")) < 0


def test_the_theme_changes_everything_drawn(browser):
    looks = "return [document.documentElement.dataset.theme, getComputedStyle(document.body).backgroundColor]"
    canvases = (".map", ".rates", "#values")
    before = [*browser.execute_script(looks), *(_pixels(browser, canvas) for canvas in canvases)]
    _find(browser, "#theme").click()
    wait_until(lambda: _pixels(browser, "#values") != before[-1], seconds=10)
    after = [*browser.execute_script(looks), *(_pixels(browser, canvas) for canvas in canvases)]
    assert {before[0], after[0]} == {"light", "dark"}
    assert all(one != other for one, other in zip(before, after, strict=True))


def test_a_key_that_is_held_down_counts_once_unless_it_steps(browser):
    held = """for (const repeat of [false, true, true, true])
                dispatchEvent(new KeyboardEvent("keydown", {key: arguments[0], repeat}))"""
    browser.execute_script(held, "ArrowRight")
    _at(browser, 4)
    browser.execute_script(held, " ")
    assert _find(browser, "#play").get_attribute("aria-label") == "Pause"


def test_who_wants_little_motion_starts_it_and_nobody_is_read_every_generation(browser, playground):
    motion = {"features": [{"name": "prefers-reduced-motion", "value": "reduce"}]}
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", motion)
    browser.get(playground.url)
    _computed(browser)
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": []})
    assert browser.execute_script("return [Player.state.playing, Player.state.frame]") == [None, 0]
    assert _find(browser, "#generation").get_attribute("aria-live") == "off"
    assert browser.execute_script("return Boolean(document.querySelector('[role=status] #elapsed'))") is False
    _find(browser, "#play").click()
    wait_until(lambda: _frame(browser) >= 2, seconds=10)


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_system_s_theme_is_the_first(chromium, browser, playground, scheme):
    feature = {"features": [{"name": "prefers-color-scheme", "value": scheme}]}
    chromium.execute_cdp_cmd("Emulation.setEmulatedMedia", feature)
    chromium.get(playground.url)
    _computed(chromium)
    assert chromium.execute_script("return document.documentElement.dataset.theme") == scheme
    metrics = {"width": 390, "height": 844, "deviceScaleFactor": 1, "mobile": True}
    chromium.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)
    for method in (None, "FMR", "1CMR"):
        if method:
            chromium.execute_script(f"document.querySelector('[value=\"{method}\"]').click()")
            _computed(chromium)
        assert chromium.execute_script("return [document.documentElement.scrollWidth, innerWidth]") == [390, 390]
    chromium.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": []})


def test_what_is_exported_needs_no_server(browser, playground, downloads):
    _press(browser, SHIFT, RIGHT)
    _at(browser, 10)
    expected = _best(browser, "SAMR")
    theme = browser.execute_script("return document.documentElement.dataset.theme")
    _find(browser, "#export").click()
    path = downloads / "gesmr-rastrigin-2d-seed0.html"
    wait_until(path.exists)
    text = path.read_text("utf-8")
    assert playground.token not in text
    assert "connect-src" not in text.split("</head>")[0]
    browser.get(path.as_uri())
    assert _frame(browser) == 10
    assert browser.execute_script("return document.documentElement.dataset.theme") == theme
    assert _best(browser, "SAMR") == expected
    assert "seed 0" in _find(browser, "#says").text
    assert not browser.find_elements("css selector", "#settings, #export")
    before = _pixels(browser, ".map")
    _press(browser, RIGHT)
    _at(browser, 11)
    assert _pixels(browser, ".map") != before
    _find(browser, "#play").click()
    wait_until(lambda: _frame(browser) > 13, seconds=10)


def test_an_export_escapes_its_data():
    """Nothing a request may hold reaches the page but what was checked; `<` is escaped all the same."""
    from gesmr.lab.playground import page  # noqa: PLC0415 - what the others need not know of

    small = {"method": "GESMR", "function": "sphere", "children": 8, "groups": 2, "generations": 3}
    asked = page.wanted({"runs": [small], "place": {"function": "sphere"}, "frame": 0, "theme": "dark"})
    text = page.exported(asked).decode()
    data = re.search(r'id="data">(.*?)</script>', text, re.DOTALL)
    assert data is not None
    assert "<" not in data[1]
    assert json.loads(data[1])["runs"][0]["shape"] == [4, 9, 2]
    with pytest.raises(ValueError, match="theme must be one of 'light', 'dark', got '<script>'"):
        page.wanted({"runs": [small], "place": {}, "frame": 0, "theme": "<script>"})
