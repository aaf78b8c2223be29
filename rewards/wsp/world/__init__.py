"""tiny-world: an invented world in two languages, and the small language model that the package ships, taught on it.

``facts``, ``topics``, ``prompts``, ``corpus`` and ``languages`` are what defects are made and measured with;
``paths.tiny_world_path()`` is the model's folder. Nothing here needs torch.
"""
