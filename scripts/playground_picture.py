"""docs/playground.png: the playground's first preset at its 25th generation, in Chromium.

.venv/bin/python scripts/playground_picture.py docs/playground.png
"""

import argparse
import io
import shutil
import threading
from pathlib import Path

from PIL import Image
from selenium import webdriver
from selenium.webdriver.support.wait import WebDriverWait

from gesmr.lab.playground import Playground

WIDTH, HEIGHT = 1600, 1290
GENERATION = 25


def picture(url: str) -> Image.Image:
    options = webdriver.ChromeOptions()
    options.binary_location = shutil.which("chromium") or ""
    for flag in ("--headless=new", "--no-sandbox", "--disable-gpu", "--hide-scrollbars"):
        options.add_argument(flag)
    browser = webdriver.Chrome(options=options, service=webdriver.ChromeService(shutil.which("chromedriver")))
    try:
        size = {"width": WIDTH * 4 // 5, "height": HEIGHT * 4 // 5, "deviceScaleFactor": 1.25, "mobile": False}
        browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
        dark = {"features": [{"name": "prefers-color-scheme", "value": "dark"}]}  # whose maps compress better
        browser.execute_cdp_cmd("Emulation.setEmulatedMedia", dark)
        browser.get(url)
        ready = "return Player.state.runs.length > 0 && !document.querySelector('#status').classList.contains('busy')"
        WebDriverWait(browser, 120).until(lambda _: browser.execute_script(ready))
        browser.execute_script(
            "Player.pause(); const scrub = document.getElementById('scrub');"
            "scrub.value = arguments[0]; scrub.dispatchEvent(new Event('input'))",
            GENERATION,
        )
        browser.execute_async_script("requestAnimationFrame(() => requestAnimationFrame(arguments[0]))")
        return Image.open(io.BytesIO(browser.get_screenshot_as_png())).convert("RGB")
    finally:
        browser.quit()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("path", type=Path)
    path = parser.parse_args().path
    with Playground() as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        picture(server.url).save(path, optimize=True)
        server.shutdown()


if __name__ == "__main__":
    main()
