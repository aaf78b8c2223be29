"""The tools that an agent calls: their schemas, the checks of their arguments, and those that need no forward pass."""
