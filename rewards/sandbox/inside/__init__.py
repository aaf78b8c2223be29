"""What the sandbox holds of ours: it imports the standard library and its neighbours only."""
