"""Readers of answers: this package's own files, and those of verifiers and TRL. See ``open_reader``."""
