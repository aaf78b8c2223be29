"""WSP-Bench: a language model with one planted defect, tools to look into it and to repair it, and a budget."""
