# Four commands do everything; each sets up what it needs in .venv first.
#   make demo    fine-tune the shipped language model with GRPO for two minutes, and show what happened
#   make test    lint, types and all tests, on the installed package
#   make lint    formatting, lint and types only
#   make bench   the benchmarks
# Variables: PYTHON (the interpreter that .venv is made with), ARGS (more arguments for pytest).

PYTHON ?= python3
ARGS ?=
VENV := .venv
BIN := $(VENV)/bin
PACKAGES := rewards envs rollouts trainers cli
SOURCES := pyproject.toml $(shell find $(PACKAGES) -type f -not -name '*.pyc')
# On machines without an NVIDIA GPU, torch (extra "train") is the CPU build.
CONSTRAINTS := constraints/$(if $(shell command -v nvidia-smi),gpu,cpu).txt
PIP := PIP_CONSTRAINT=$(CONSTRAINTS) $(BIN)/python -m pip --disable-pip-version-check -q

.PHONY: setup demo test nightly lint bench clean

setup: $(VENV)/installed

$(VENV)/tools: pyproject.toml $(wildcard constraints/*.txt)
	PYTHON=$(PYTHON) sh .ci/system_packages.sh
	$(PYTHON) -m venv $(VENV)
	$(PIP) install pip setuptools wheel
	$(PIP) install --no-build-isolation '.[games,hf,lora,plots,servers,tensorboard,trackio,train,wandb,dev]'
	$(PIP) install --no-deps MinAtar==1.0.15  # its dependencies are for plots that nobody needs here
	touch $@

# Not editable: what is tested is what users get. Compiled objects in build/ are reused; stale Python files are not.
$(VENV)/installed: $(VENV)/tools $(SOURCES)
	find build -name '*.py' -delete 2>/dev/null || true
	$(PIP) install --no-deps --no-build-isolation --force-reinstall .
	touch $@

demo: setup
	rm -rf runs/demo
	$(BIN)/weightgym train examples/quickstart.toml --output runs/demo
	$(BIN)/weightgym inspect runs/demo

test: lint
	$(BIN)/python -m pytest -m "not nightly" -n 2 $(ARGS)

nightly: lint
	$(BIN)/python -m pytest -n 2 $(ARGS)

lint: setup
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy $(addprefix -p weightgym.,$(PACKAGES))
	MYPYPATH=tests:benchmarks $(BIN)/mypy tests benchmarks

bench: setup
	$(BIN)/python benchmarks/wpb_scorer.py
	$(BIN)/python benchmarks/wpb_games.py

clean:
	rm -rf $(VENV) build dist *.egg-info
