"""A page as a real browser shows it: Chromium, driven by Playwright. Nothing is downloaded."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from playwright.sync_api import Dialog, Page

_NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
_MAC = "/Applications/Google Chrome.app/Contents/MacOS/Google Chrome"


def browser_path() -> str:
    """Where Chromium is. Without one the test is skipped; in CI it fails."""
    found = next((path for name in _NAMES if (path := shutil.which(name))), None)
    found = found or (_MAC if Path(_MAC).exists() else None)
    if found:
        return found
    if os.environ.get("CI"):
        pytest.fail("no Chromium here: sh .ci/system_packages.sh installs it")
    pytest.skip("no Chromium or Chrome here, in which pages are looked at")


@dataclass
class Seen:
    """An open page, and what happened since it was opened."""

    page: Page
    requests: list[str] = field(default_factory=list)
    events: list[str] = field(default_factory=list)  #: console messages, dialogs, errors, other windows

    def refuse(self, dialog: Dialog) -> None:
        """A dialog: there should be none."""
        self.events.append(f"dialog: {dialog.message}")
        dialog.dismiss()

    def ask(self, script: str) -> Any:
        """What a script of the test says of the page; the page's own may not run."""
        return self.page.evaluate(script)

    def wider_than_the_window(self) -> list[str]:
        """Elements that stick out to the right, and are not in a part that scrolls by itself."""
        found: list[str] = self.ask(
            """() => [...document.querySelectorAll('body *')].filter(one =>
                one.checkVisibility() && one.getBoundingClientRect().right > innerWidth + 1
                && !one.closest('.wide, pre')).map(one => one.outerHTML.slice(0, 80))"""
        )
        return found


@contextmanager
def opened(path: Path, *, width: int = 1200) -> Iterator[Seen]:
    """The file, loaded."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        arguments = ["--no-sandbox"] if os.geteuid() == 0 else []
        browser = playwright.chromium.launch(executable_path=browser_path(), args=arguments)
        try:
            page = browser.new_page(viewport={"width": width, "height": 800})
            seen = Seen(page)
            page.on("request", lambda request: seen.requests.append(request.url))
            page.on("console", lambda message: seen.events.append(f"console: {message.text}"))
            page.on("dialog", seen.refuse)
            page.on("pageerror", lambda error: seen.events.append(f"error: {error}"))
            page.on("popup", lambda popup: seen.events.append(f"popup: {popup.url}"))
            page.goto(path.as_uri())
            yield seen
        finally:
            browser.close()
