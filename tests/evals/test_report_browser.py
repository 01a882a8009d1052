"""The report in a real browser: it opens from a file, asks for nothing, complains of nothing, and fits."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from rlver_gym.evals.report import write_report
from rlver_gym.types import Episode
from tests.sample_episodes import HOSTILE, content, hostile_episode, samples

pytestmark = pytest.mark.browser

CHROMIUM = Path("/usr/bin/chromium")


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    """A headless Chromium; skips where there is none."""
    playwright = pytest.importorskip(
        "playwright.sync_api", reason="playwright is not installed: pip install playwright"
    )
    if not CHROMIUM.exists():
        pytest.skip(f"there is no Chromium at {CHROMIUM}: apt-get install chromium")
    arguments = [
        "--no-sandbox",
        "--disable-gpu",
        "--disable-background-networking",
        "--disable-component-update",
        "--no-first-run",
    ]
    with playwright.sync_playwright() as driver:
        chromium = driver.chromium.launch(executable_path=str(CHROMIUM), args=arguments)
        yield chromium
        chromium.close()


def report(folder: Path, *episodes: Episode, title: str = "Report") -> Path:
    write_report(episodes, folder / "report.html", title=title)
    return folder / "report.html"


def open_page(browser: Any, path: Path, width: int = 1280) -> tuple[Any, list[str], list[str]]:
    """The page, what it asked for and what its console said, in a window of `width` pixels."""
    page = browser.new_page(viewport={"width": width, "height": 800})
    requests: list[str] = []
    complaints: list[str] = []
    page.on("request", lambda request: requests.append(request.url))
    page.on("console", lambda message: complaints.append(message.text))
    page.on("pageerror", lambda error: complaints.append(str(error)))
    page.on("dialog", lambda dialog: complaints.append(f"dialog: {dialog.message}"))
    page.goto(path.as_uri(), wait_until="load")
    return page, requests, complaints


def overflow(page: Any) -> int:
    return int(page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth"))


def test_a_browser_opens_the_file_asks_for_nothing_else_and_complains_of_nothing(browser: Any, tmp_path: Path) -> None:
    path = report(tmp_path, *samples(), *(hostile_episode(text) for text in HOSTILE), title=HOSTILE[0])
    page, requests, complaints = open_page(browser, path)
    page.evaluate("document.querySelectorAll('details').forEach(details => details.open = true)")
    page.wait_for_timeout(200)
    assert requests == [path.as_uri()] and complaints == []
    assert page.locator("article").count() == len(samples()) + len(HOSTILE)
    assert page.evaluate("getComputedStyle(document.querySelector('.card')).borderRadius") == "14px", (
        "the style sheet was refused"
    )
    page.close()


def test_the_browser_would_notice_a_request_and_a_refused_style(browser: Any, tmp_path: Path) -> None:
    source = report(tmp_path, content()).read_text(encoding="utf-8")
    bad = source.replace("<main>", "<main><img src='other.png'><p style='color:red'>x</p>")
    (tmp_path / "bad.html").write_text(re.sub(r"(?s)<meta http-equiv.*?>", "", bad), encoding="utf-8")
    page, requests, _ = open_page(browser, tmp_path / "bad.html")
    assert len(requests) == 2
    page.close()
    (tmp_path / "refused.html").write_text(bad, encoding="utf-8")
    page, _, complaints = open_page(browser, tmp_path / "refused.html")
    assert complaints
    page.close()


@pytest.mark.parametrize("width", [360, 768, 1280])
def test_nothing_overflows_sideways(browser: Any, tmp_path: Path, width: int) -> None:
    long = hostile_episode("W" * 400)
    path = report(tmp_path, *samples(), long, title="W" * 200)
    page, _, _ = open_page(browser, path, width)
    page.evaluate("document.querySelectorAll('details').forEach(details => details.open = true)")
    assert overflow(page) == 0
    page.evaluate(
        "document.querySelector('main').insertAdjacentHTML('beforeend', '<pre>' + 'W'.repeat(400) + '</pre>')"
    )
    assert overflow(page) > 0, "the measure would not notice an overflow"
    page.close()


def test_folds_open_by_keyboard_and_a_link_opens_its_episode(browser: Any, tmp_path: Path) -> None:
    path = report(tmp_path, *samples())
    page, _, _ = open_page(browser, path)
    need = page.get_by_text(content().need_text)
    assert not need.is_visible()
    page.locator("#e1 > .fold > summary").focus()
    page.keyboard.press("Enter")
    assert need.is_visible()
    article = page.locator("#e3")
    assert not article.is_visible()
    page.locator("a[href='#e3']").focus()
    page.keyboard.press("Enter")
    article.wait_for(state="visible", timeout=2000)
    page.close()
