"""The pages: made ones are what the code says now, links lead somewhere, and named tests are there."""

from __future__ import annotations

import ast
import dataclasses
import re
import sys
from collections.abc import Iterable
from pathlib import Path

import pytest
from click.testing import CliRunner
from docs_commands import ROOT, written_pages

sys.path.insert(0, str(Path(__file__).parent))
import toy_scorers

from weightgym.cli import docs_pages
from weightgym.cli.docs_metrics import scorer_metrics
from weightgym.cli.docs_profile import choices
from weightgym.cli.docs_text import anchor, field_comments, markdown
from weightgym.cli.main import cli
from weightgym.cli.wsp_references import played
from weightgym.envs import registry
from weightgym.envs.weight_program.tasks import SOURCE
from weightgym.rewards.contracts import Score
from weightgym.rewards.golf.report import Result
from weightgym.rewards.golf.scorer import scored
from weightgym.rewards.weight_program.scorer import score
from weightgym.rewards.wsp import sets

DOCS = ROOT / "docs"


@pytest.fixture(autouse=True)
def no_snapshot(monkeypatch: pytest.MonkeyPatch) -> None:
    """The pages are of what the package ships."""
    for name in ("WEIGHTGYM_SNAPSHOT", "WEIGHTGYM_WSP_SETS"):
        monkeypatch.delenv(name, raising=False)


def test_the_pages_in_the_repository_are_up_to_date() -> None:
    assert list(docs_pages.stale(DOCS)) == [], "run: weightgym docs"


def test_every_kind_of_change_makes_them_stale(tmp_path: Path) -> None:
    (tmp_path / "toy.md").write_text("# Toys\n\nSmall ones: three tasks.\n\n## Reference answers\n\nThey get:\n\n"
                                     "| answer | reward |\n|---|---|\n| `one` | 0.1 |\n")  # fmt: skip
    with registry.override(toy_scorers.SPEC):
        docs_pages.write(tmp_path)
        assert list(docs_pages.stale(tmp_path)) == []
        assert "| `one` | 0.1 |" in (tmp_path / "environments/toy.md").read_text()
        assert "[Toys](toy.md) | Small ones |" in (tmp_path / "README.md").read_text()
        (tmp_path / "toy.md").write_text((tmp_path / "toy.md").read_text().replace("0.1", "0.2"))
        assert list(docs_pages.stale(tmp_path)) == ["environments/toy.md"]
        docs_pages.write(tmp_path)
        with registry.override(dataclasses.replace(toy_scorers.SPEC, floor=-3.0)):
            assert list(docs_pages.stale(tmp_path)) == ["environments/toy.md"]
        with registry.override(dataclasses.replace(toy_scorers.SPEC, summary="other words")):
            assert list(docs_pages.stale(tmp_path)) == ["environments/toy.md", "README.md"]
        (tmp_path / "metrics.md").unlink()
        assert list(docs_pages.stale(tmp_path)) == ["metrics.md"]
    assert "environments/toy.md" in list(docs_pages.stale(tmp_path))
    docs_pages.write(tmp_path)
    assert not (tmp_path / "environments/toy.md").exists()
    assert (tmp_path / "toy.md").exists()


def test_pages_that_people_wrote_are_not_overwritten(tmp_path: Path) -> None:
    (tmp_path / "README.md").write_text("# Mine\n")
    done = CliRunner().invoke(cli, ["docs", str(tmp_path)])
    assert done.exit_code == 1
    assert "was not made by `weightgym docs`" in done.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["README.md"]


def test_the_command_checks(tmp_path: Path) -> None:
    assert CliRunner().invoke(cli, ["docs", str(tmp_path)]).exit_code == 0
    assert CliRunner().invoke(cli, ["docs", str(tmp_path), "--check"]).exit_code == 0
    (tmp_path / "metrics.md").write_text("old")
    done = CliRunner().invoke(cli, ["docs", str(tmp_path), "--check"])
    assert (done.exit_code, "out of date" in done.stderr, "metrics.md" in done.stderr) == (1, True, True)
    assert (tmp_path / "metrics.md").read_text() == "old"


def test_every_environment_has_its_page() -> None:
    for entry in registry.specs():
        text = (DOCS / "environments" / f"{entry.name}.md").read_text()
        for part in (entry.gym_id, f"Profile {entry.default_profile}", "## The score", "## A prompt"):
            assert part in text, (entry.name, part)


def test_metrics_of_scores_are_explained() -> None:
    """Those that scores have, not those that a docstring names."""
    made: dict[str, Score] = {
        "weight-program": score(SOURCE.task("original/freeway", prompt=False), "```edits\nb3[2]=9\n```",
                                profile="wpb-v1-e1"),
        "golf": scored([Result(status="ok", phase="audit", val_bpb=3.0, verdict="legal", runtime_s=1.0, cpu_s={},
                               artifact_bytes=1, claimed_bytes=1, audited_bytes=1, source_bytes=1, param_count=1)],
                       profile="golf-cpu-v1", seconds=0.0),
    }  # fmt: skip
    for name, one in made.items():
        explained(one.metrics.keys(), scorer_metrics(registry.spec(name)))
    for family in ("audit", "backdoor"):
        task = next(task for task in sets.tasks().values() if task.data["family"] == family)
        explained(played(task, "oracle").metrics.keys(), scorer_metrics(registry.spec("wsp-bench")))


def explained(names: Iterable[str], text: str) -> None:
    assert {name for name in names if f"`{name}`" not in text} == set()


def test_docstrings_become_markdown() -> None:
    text = """Say ``x``.

    As :class:`~a.b.Score` has
    it; see ``y`` too.

    Args:
        one, other: numbers,
            of any size.

    Raises:
        ValueError: no.
    """
    assert markdown(text) == (
        "Say `x`.\n\nAs `Score` has it; see `y` too.\n\nArgs:\n\n- `one`, `other`: numbers, of any size.\n\n"
        "Raises:\n\n- `ValueError`: no."
    )


@dataclasses.dataclass
class Inner:
    """Of a profile."""

    size: int = 2000  #: how much


@dataclasses.dataclass
class Outer:
    """A profile."""

    name: str = "p"
    #: Two ends,
    #: of ``it``.
    ends: tuple[float, float] = (0.5, 1e9)
    parts: dict[str, Inner] = dataclasses.field(default_factory=lambda: {"é": Inner()})
    on: bool | None = None  # a remark


def test_choices_of_a_profile() -> None:
    assert field_comments(Outer)["ends"] == "Two ends, of `it`."
    assert list(choices(Outer())) == [
        ("ends", "0.5, 1e+09", "Two ends, of `it`."),
        ("parts.é.size", "2,000", "how much"),
        ("on", "none", ""),
    ]


def test_links_lead_somewhere() -> None:
    wrong = []
    for page in written_pages():
        text = re.sub(r"^(`{3,}).*?^\1`*$", "", page.read_text(), flags=re.MULTILINE | re.DOTALL)
        for target in re.findall(r"\]\(([^)\s]+)\)", text):
            if re.match(r"https?://", target):
                continue
            name, _, heading = target.partition("#")
            place = (page.parent / name).resolve() if name else page
            if not place.exists():
                wrong.append(f"{page.relative_to(ROOT)}: {target} is not there")
            elif heading and heading not in headings(place):
                wrong.append(f"{page.relative_to(ROOT)}: {target}: no such heading")
    assert wrong == []


def headings(page: Path) -> set[str]:
    return {anchor(line.lstrip("# ")) for line in page.read_text().splitlines() if re.match(r"#+ ", line)}


def test_named_tests_and_scripts_are_there() -> None:
    files = [path for folder in ("tests", "examples") for path in (ROOT / folder).rglob("test_*.py")]
    tests = {path.name: functions(path) for path in files}
    wrong = []
    for page in written_pages():
        text = page.read_text()
        where = page.relative_to(ROOT)
        for file, name in re.findall(r"(test_\w+\.py)(?:::(\w+))?", text):
            if file not in tests or (name and name not in tests[file]):
                wrong.append(f"{where}: {file}::{name}")
        for script in re.findall(r"\b(?:benchmarks|examples|\.ci)/[\w/.]+\.(?:py|toml|sh)\b", text):
            if not (ROOT / script).is_file():
                wrong.append(f"{where}: {script}")
    assert wrong == []


def functions(path: Path) -> set[str]:
    return {node.name for node in ast.parse(path.read_text()).body if isinstance(node, ast.FunctionDef)}


def test_every_claim_names_a_test() -> None:
    rows = re.findall(r"^\| (?!claim|---)(.*?) \| (.*) \|$", (DOCS / "tests.md").read_text(), re.MULTILINE)
    assert len(rows) > 30
    for claim, tests in rows:
        assert "::" in tests, claim
