"""Tasks and prompts of Golf."""
