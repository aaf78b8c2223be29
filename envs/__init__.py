"""What the model sees: tasks, prompts, environments.

Importing this package makes Gymnasium know its environments. It is cheap all the same: where Gymnasium is not imported
yet, they are registered at the moment that it is; the registry itself is data, and what it points to loads on use.
"""

from __future__ import annotations

from types import ModuleType

import wrapt


def _register_with_gymnasium(gymnasium: ModuleType) -> None:
    from weightgym.envs.gymnasium_plugin import register

    register()


wrapt.register_post_import_hook(_register_with_gymnasium, "gymnasium")
