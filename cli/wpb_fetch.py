"""``weightgym wpb fetch``."""

from __future__ import annotations

from pathlib import Path

import click


@click.command(epilog="Example: weightgym wpb fetch --revision 0123456789abcdef0123456789abcdef01234567 wpb-data")
@click.argument("folder", type=click.Path(file_okay=False, path_type=Path))
@click.option("--revision", required=True, help="The commit of the dataset: results compare only within one.")
@click.option("--repository", help="Another dataset of the same layout.  [default: the published one]")
@click.option("--snapshot-sha256", metavar="HEX", help="SHA-256 of its task file, if it is another dataset.")
def fetch(folder: Path, revision: str, repository: str | None, snapshot_sha256: str | None) -> None:
    """Download the published WeightProgramBench dataset into FOLDER and check every digest.

    Needs the extra `hf` (huggingface_hub). A download that was broken off goes on where it stopped. Nothing of the
    dataset is run.
    """
    try:
        from huggingface_hub import HfApi, snapshot_download
    except ImportError as error:
        raise click.ClickException("fetching needs huggingface_hub: pip install 'weightgym[hf]'") from error
    from weightgym.rewards.weight_program.snapshot import layout

    name = repository or layout.REPOSITORY
    try:
        commit = HfApi().dataset_info(name, revision=revision).sha  # offline, a download would pass off what is there
        snapshot_download(name, repo_type="dataset", revision=commit, local_dir=folder)
    except Exception as error:  # which HTTP library fails differs between versions of huggingface_hub
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise click.ClickException(f"can't download dataset {name!r} at revision {revision!r}: {reason}") from error
    snapshot = layout.load(folder.resolve(), snapshot_sha256 or layout.PUBLISHED_TASKS)
    train = sum(row["split"] == "train" for row in snapshot.rows.values())
    click.echo(
        f"{folder}: commit {commit}, {train} training games and {len(snapshot.rows) - train} originals, "
        "all digests match"
    )
    click.echo(f"use it with: weightgym tasks --snapshot {folder}")
