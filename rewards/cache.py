"""Where the package keeps what it can make again."""

from __future__ import annotations

import os
from pathlib import Path


def cache_root() -> Path:
    """``WEIGHTGYM_CACHE``, else ``weightgym`` in the user's cache folder. It may not exist yet."""
    chosen = os.environ.get("WEIGHTGYM_CACHE")
    if chosen:
        return Path(chosen)
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "weightgym"
