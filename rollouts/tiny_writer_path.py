"""Where the language model lies that the package ships."""

from __future__ import annotations

from importlib.resources import files
from pathlib import Path


def tiny_writer_path() -> Path:
    """The folder of tiny-writer, as ``from_pretrained`` of transformers and ``model`` of vLLM take it.

    A byte-level Llama of about a million parameters that writes short valid ``edits`` answers; its ``README.md`` says
    more, and ``examples/tiny_writer/make.py`` makes it.
    """
    return Path(str(files("weightgym.rollouts") / "tiny_writer"))
