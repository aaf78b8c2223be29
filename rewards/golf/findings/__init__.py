"""What the gate looks for, one module per family. Each has a ``find(view)`` that yields findings."""
