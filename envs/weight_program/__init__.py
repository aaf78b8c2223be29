"""Tasks, prompts and the single-turn environment of WeightProgramBench."""
