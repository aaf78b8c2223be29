"""Scripts of ``examples/``, which are no package: their siblings import each other by their bare names."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

EXAMPLES = Path(__file__).parents[1] / "examples"


def load_script(folder: str, name: str) -> ModuleType:
    """A module of a folder, made anew. Siblings that it imports are forgotten: other folders have their names."""
    place, before = EXAMPLES / folder, set(sys.modules)
    spec = importlib.util.spec_from_file_location(name, place / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.path.insert(0, str(place))
    try:
        spec.loader.exec_module(module)
    finally:
        sys.path.remove(str(place))
        for new in set(sys.modules) - before:
            if Path(getattr(sys.modules[new], "__file__", None) or "/").parent == place:
                del sys.modules[new]
    return module
