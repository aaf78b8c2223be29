"""The pages of ``weightgym inspect`` in a real browser: they are seen as meant, and nothing in them acts."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from browser import Seen, opened
from click.testing import CliRunner
from run_folders import healthy_run, rollout
from scored_rows import write
from test_inspect_file import attacked, healthy

from weightgym.cli.main import cli
from weightgym.rollouts.store import line

pytestmark = pytest.mark.usefixtures("digits")

OPEN_ALL = "document.querySelectorAll('details').forEach(one => one.open = true)"
BROKEN_PICTURES = "[...document.images].filter(one => !one.complete || one.naturalWidth === 0).length"
#: Fragments of which no element of that name is there.
DEAD_LINKS = "[...document.links].map(one => one.hash.slice(1)).filter(id => !document.getElementById(id))"


def page_of(path: Path, page: Path, *args: str) -> Path:
    done = CliRunner().invoke(cli, ["inspect", str(path), "-o", str(page), *args], prog_name="weightgym")
    assert done.exit_code == 0, done.output
    return page


def expect_whole(seen: Seen) -> None:
    """All pictures and links are good, no part sticks out, nothing was fetched but pictures in the page itself."""
    assert seen.ask("document.compatMode") == "CSS1Compat"
    assert seen.ask("document.images.length") > 0
    assert seen.ask(BROKEN_PICTURES) == 0
    assert seen.ask(DEAD_LINKS) == []
    assert seen.wider_than_the_window() == []
    assert seen.ask("document.documentElement.scrollWidth <= innerWidth")
    assert [url for url in seen.requests[1:] if not url.startswith("data:image/svg+xml;base64,")] == []
    assert seen.events == []


@pytest.mark.parametrize("width", [1200, 420])
def test_a_file_is_seen_as_meant(tmp_path: Path, width: int) -> None:
    path = write(tmp_path / "a.jsonl", healthy())
    with opened(page_of(path, tmp_path / "a.html"), width=width) as seen:
        expect_whole(seen)
        assert seen.page.title() == "a.jsonl – weightgym"
        assert seen.page.locator(".card").first.inner_text().split() == ["answers", "40", "40", "ok"]
        assert seen.page.get_by_text("Nothing suspicious was found.").is_visible()
        group = seen.page.locator("#group-1")
        answers = group.locator(".sample")
        assert answers.count() == 4
        assert not answers.first.is_visible()
        group.locator("summary").first.click()  # opens without a script
        assert answers.first.is_visible()
        assert "reward 0.8" in answers.first.inner_text()  # the best comes first
        answers.first.get_by_text("how this score came about").click()
        assert "reward 0.8 under digits-v1" in answers.first.inner_text()
        seen.ask(OPEN_ALL)
        expect_whole(seen)


def test_a_run_is_seen_as_meant(tmp_path: Path) -> None:
    folder = healthy_run(tmp_path / "run", steps=12)
    with opened(page_of(folder, tmp_path / "run.html")) as seen:
        expect_whole(seen)
        seen.page.get_by_role("link", name="Groups").click()
        assert seen.page.url.endswith("#groups")
        seen.ask(OPEN_ALL)
        expect_whole(seen)


def test_trained_tokens_look_different(tmp_path: Path) -> None:
    made = rollout("a", text="ab").model_dump()
    answer = made["steps"][1] | {"token_ids": (1, 97, 98), "logprobs": (0.0, -1.0, -1.0), "mask": (False, True, True)}
    path = tmp_path / "a.jsonl"
    other = line(rollout("b", text="12", reward=0.1)).decode()
    path.write_text(json.dumps(made | {"steps": [made["steps"][0], answer]}) + "\n" + other)
    with opened(page_of(path, tmp_path / "a.html", "--tokenizer", "tiny-writer")) as seen:
        seen.ask(OPEN_ALL)
        ground = "one => getComputedStyle(one).backgroundColor"
        trained = seen.page.locator("#sample-1 span.t")
        given = seen.page.locator("#sample-1 span.o")
        assert [trained.nth(n).inner_text() for n in range(2)] == ["a", "b"]
        assert trained.first.evaluate(ground) != given.first.evaluate(ground) == "rgba(0, 0, 0, 0)"
        assert trained.first.get_attribute("title") == "97 log p -1"


def test_hostile_text_does_nothing(tmp_path: Path) -> None:
    """No script, dialog, request or new element out of any text; the style sheet holds; the title is the file's."""
    path = write(tmp_path / "<img src=x onerror=alert(1)>.jsonl", attacked()[:6])
    with opened(page_of(path, tmp_path / "a.html")) as seen:
        seen.ask(OPEN_ALL)
        for link in seen.page.locator("a").all():
            link.click()
        expect_whole(seen)
        assert seen.page.title() == "<img src=x onerror=alert(1)>.jsonl – weightgym"
        assert seen.ask("document.querySelectorAll('script, iframe, svg, object, embed, form, base').length") == 0
        assert seen.ask("getComputedStyle(document.body).display") == "block"
        assert seen.ask("document.querySelectorAll('style').length") == 1
        text = seen.ask("document.body.innerText")
        assert "<script>document.title='owned'</script>" in text
        assert "\\u202e\\u2066\\x00\\ud800" in text
        assert "{{ 7*7 }}" in text
