# make help
PYTHON ?= python3
PIP_FLAGS ?=
VENV := .venv
RUN := $(VENV)/bin/python
READY := $(VENV)/.ready
EXTRAS := agents,report,render,video,tune,dev
LOWEST := .venv-lowest
GPU_VENV := .venv-gpu
DOCS_VENV := .venv-docs
# As pip does it: an extra index of PIP_FLAGS may hold the new versions only of what PyPI holds too.
AS_PIP := --index-strategy unsafe-best-match

INSTALL = $(RUN) -m pip install -qq --disable-pip-version-check $(PIP_FLAGS) -c constraints.txt
# What the demo needs is compiled while pip fetches torch. If that fails, the demo compiles it, and says why.
COMPILE = $(RUN) -m clustergym warm Delay --large --jobs 2 --quiet > /dev/null 2>&1 || true

# A virtual environment that was copied or moved here still imports the old tree: make it anew.
ifneq ($(file < $(READY)),$(CURDIR))
.PHONY: $(READY)
endif

# Learners of other libraries. constraints.txt holds but for what a library pins otherwise.
CLIENT_VENVS := .venv-clients
CLIENTS := sb3 torchrl tianshou rllib
NEEDS_sb3 := stable-baselines3 sb3-contrib safetensors rl_zoo3 tyro tensorboard
NEEDS_torchrl := torchrl tensordict
NEEDS_tianshou := tianshou==2.*
NEEDS_rllib := ray[rllib] torch
FREE_sb3 := python-dateutil
FREE_torchrl :=
FREE_tianshou := filelock|pandas
FREE_rllib := gymnasium

.DEFAULT_GOAL := help
.PHONY: help demo test test-slow test-clients test-gpu test-lowest hunt lint wheel docs clean
.PHONY: hunt-flips hunt-readers hunt-words hunt-store hunt-events hunt-kills hunt-soak

help: ## this list
	@grep -E '^[a-z-]+:.*## ' Makefile | sed 's/:.*## /\t/' | expand -t 14

demo: $(READY) ## train a small agent, compare it with every scheduler: table, TensorBoard, HTML report
	@$(RUN) -m clustergym.experiments.demo

test: $(READY) ## the tests, without the slow ones
	@$(RUN) -m pytest -n 2 --dist worksteal -q

test-slow: $(READY) ## the slow tests, and what is tried on examples on all of them
	@$(RUN) -m pytest -m slow -q
	@CLUSTERGYM_EXAMPLES=all $(RUN) -m pytest -q $$(grep -lr --include='test_*.py' 'support.drawn import' tests)

test-clients: $(CLIENTS:%=$(CLIENT_VENVS)/%/.ready) ## learners of other libraries, in virtual environments of their own
	@for client in $(CLIENTS); do \
		$(CLIENT_VENVS)/$$client/bin/python -m pytest -m clients -q -rP tests/project/test_clients.py || exit 1; done

test-gpu: $(GPU_VENV)/.ready ## whether kernels compile for a GPU, without a card, in .venv-gpu
	@$(GPU_VENV)/bin/python -m pytest -m slow -q -rP tests/simulator/test_gpu.py

test-lowest: ## the tests with the lowest versions that pyproject.toml admits, of the extras too, in .venv-lowest
	@$(PYTHON) -m venv --clear $(LOWEST)
	@$(LOWEST)/bin/python -m pip install -qq --disable-pip-version-check $(PIP_FLAGS) uv packaging
	@$(LOWEST)/bin/uv pip compile -q $(AS_PIP) --resolution lowest-direct --python $(LOWEST)/bin/python $(PIP_FLAGS) \
		--extra agents --extra report --extra render --extra video --extra tune --extra dev pyproject.toml -o $(LOWEST)/lowest.txt
	@$(LOWEST)/bin/python tests/support/lowest.py $(LOWEST)/lowest.txt
	@$(LOWEST)/bin/uv pip install -q $(AS_PIP) --python $(LOWEST)/bin/python $(PIP_FLAGS) -r $(LOWEST)/lowest.txt setuptools
	@$(LOWEST)/bin/uv pip install -q --python $(LOWEST)/bin/python --no-deps -e .
	@$(LOWEST)/bin/python -m pytest -n 2 -q

hunt: hunt-flips hunt-readers hunt-words hunt-store hunt-events hunt-kills hunt-soak ## looks long for what breaks: flips, files, words, faults, events, kills, memory (half an hour)

hunt-flips: $(READY)
	@$(RUN) tests/hunt/flips.py 4000

hunt-readers: $(READY)
	@$(RUN) tests/hunt/readers.py 1000

hunt-words: $(READY)
	@$(RUN) tests/hunt/words.py 1000

hunt-store: $(READY)
	@$(RUN) tests/hunt/store_faults.py 30

hunt-events: $(READY)
	@$(RUN) tests/hunt/events.py 10000000

hunt-kills: $(READY)
	@$(RUN) tests/hunt/kills.py 20

hunt-soak: $(READY)
	@$(RUN) tests/hunt/soak.py 30

lint: $(READY) ## ruff, mypy, import-linter
	@$(RUN) -m ruff check .
	@$(RUN) -m ruff format --check .
	@$(RUN) -m mypy -p clustergym
	@$(VENV)/bin/lint-imports

wheel: $(READY) ## a wheel for this platform and Python in dist/, with all kernels compiled (some minutes)
	@$(RUN) -m pip install -qq $(PIP_FLAGS) -c constraints.txt setuptools wheel
	@echo "compiling all kernels (some minutes) ..."
	@CLUSTERGYM_PREBUILT=1 $(RUN) -m pip wheel -q --disable-pip-version-check --no-build-isolation --no-deps -w dist .
	@ls -l dist/*.whl

docs: $(DOCS_VENV)/.ready ## the documentation as web pages, in site/
	@NO_MKDOCS_2_WARNING=1 $(DOCS_VENV)/bin/python -m mkdocs build --strict
	@echo "the pages are in site/index.html"

clean: ## remove the virtual environment and everything generated
	@rm -rf $(VENV) $(CLIENT_VENVS) $(GPU_VENV) $(DOCS_VENV) $(LOWEST) build dist site *.egg-info .pytest_cache .mypy_cache .ruff_cache .hypothesis .import_linter_cache
	@find . -name __pycache__ -type d -prune -exec rm -rf {} +

$(READY): pyproject.toml constraints.txt
	@test ! -e $(VENV) -o -e $(READY) -o -L $(VENV)/src/clustergym || { \
		echo "$(VENV) was not made by make, which would clear it: rename or remove it, then make again"; exit 1; }
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "clustergym needs Python 3.11 or newer; try: make PYTHON=python3.12")'
	@echo "installing clustergym[$(EXTRAS)] into $(VENV) (once; a few minutes) ..."
	@$(PYTHON) -m venv --clear $(VENV) || { rm -rf $(VENV); echo "python3 -m venv failed; on Debian and Ubuntu: apt install python3-venv"; exit 1; }
	@mkdir -p $(VENV)/src && ln -sfn ../.. $(VENV)/src/clustergym
	@$(if $(filter demo,$(MAKECMDGOALS)),$(INSTALL) -e . && { $(COMPILE) & } &&,) $(INSTALL) -e ".[$(EXTRAS)]" && wait
	@printf '%s' "$(CURDIR)" > $@

$(CLIENT_VENVS)/%/.ready: pyproject.toml constraints.txt
	@echo "installing $(NEEDS_$*) into $(@D) (once; a few minutes) ..."
	@$(PYTHON) -m venv --clear $(@D)
	@grep -v -x -E "($(or $(FREE_$*),none))==.*" constraints.txt > $(@D)/constraints.txt
	@$(@D)/bin/python -m pip install -qq --disable-pip-version-check $(PIP_FLAGS) -c $(@D)/constraints.txt \
		-e . pytest hypothesis $(NEEDS_$*)
	@touch $@

$(GPU_VENV)/.ready $(DOCS_VENV)/.ready: .venv-%/.ready: pyproject.toml constraints.txt
	@echo "installing clustergym[$*] into $(@D) (once; a minute) ..."
	@$(PYTHON) -m venv --clear $(@D)
	@$(@D)/bin/python -m pip install -qq --disable-pip-version-check $(PIP_FLAGS) -c constraints.txt -e ".[$*]" $(if $(filter gpu,$*),pytest hypothesis)
	@touch $@
