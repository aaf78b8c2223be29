"""WSP-Bench: a language model with one planted defect, tools under a budget, exact scores."""
