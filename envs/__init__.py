"""What the model sees: tasks, prompts, environments.

Importing this package is cheap (no Gymnasium, no NumPy): the registry is data, and everything else loads on use.
"""
