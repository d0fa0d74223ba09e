# The two that matter: `make demo` and `make test`. Both set everything up first; see tools/setup.sh.
SHELL := /bin/bash
.DEFAULT_GOAL := help
.DELETE_ON_ERROR:

# An environment that the caller has active must not leak into ours.
unexport VIRTUAL_ENV CONDA_PREFIX PYTHONHOME PYTHONPATH
# Without byte code every process of the tests would compile NumPy and pydantic anew.
unexport PYTHONDONTWRITEBYTECODE
export NO_MKDOCS_2_WARNING := true

BIN := .venv/bin
BASE ?= HEAD
STAMP := .venv/.thalweg-setup
WORKERS ?= 3
TESTS := $(BIN)/python -m pytest --doctest-modules src tests
PYTEST := $(TESTS) -n $(WORKERS) --dist loadfile --no-loadscope-reorder

.PHONY: help setup demo check test test-all checked collected bench campaign soak lint lint-types lint-rest \
  audit docs docs-serve clean

help: ## list the targets
	@sed -nE 's/^([a-z-]+):.*## (.*)/  make \1\t\2/p' Makefile | expand -t 20

setup: $(STAMP) ## make .venv from uv.lock, find or get Java, Chromium; quick when nothing changed

$(STAMP): pyproject.toml uv.lock tools/setup.sh tools/provide.py
	@PYTHON="$(PYTHON)" tools/setup.sh

demo: $(STAMP) ## taxi rides on three fogs and a cloud on this machine: a surge, a kill, nothing lost
	@$(BIN)/thalweg demo

check: $(STAMP) ## ruff, types, imports, and the tests without a JVM that a change since BASE can touch
	@$(BIN)/ruff check . && $(BIN)/ruff format --check --quiet . && $(BIN)/mypy \
	  && $(BIN)/lint-imports --cache-dir .cache/import-linter | tail -n 1 \
	  && $(BIN)/python tools/choose_tests.py --base $(BASE)

test: checked ## lint, then every test but the slow ones, with few cases for each property
	@$(COMPILE) & $(PYTEST) -m "not slow"; code=$$?; wait; exit $$code

test-all: checked ## lint, then every test, with all cases, then a part with every Python that is here
	@$(COMPILE) & $(PYTEST) --hypothesis-profile full; code=$$?; wait; exit $$code
	@$(BIN)/python tools/try_pythons.py

# What is compiled once beside the first tests, which wait for Spark, the others need not.
COMPILE := $(BIN)/python tools/compile_kernels.py

# One core for the types, which take as long as the rest. Collected once, the byte code of the tests
# is there for all workers.
checked: $(STAMP)
	@$(MAKE) --no-print-directory -j 2 lint-types collected

collected: lint-rest
	@$(TESTS) --collect-only -qq >.cache/collected.txt || { cat .cache/collected.txt; exit 1; }

# FORM is empty, --quick or --smoke. One that fails must not keep the others from running.
bench: $(STAMP) ## answer every benchmark's question; results also go to results/benchmarks
	@names=$$($(BIN)/python -m benchmarks --list) || exit; failed=; for name in $$names; do \
	  $(BIN)/python -m benchmarks $$name $(FORM) || failed="$$failed $$name"; \
	done; test -z "$$failed" || { echo "without an answer:$$failed" >&2; exit 1; }

campaign: $(STAMP) ## every fault on Spark sites that run, then the control plane under 2,000 seeds
	@$(BIN)/python -m campaign; faults=$$?; \
	  $(BIN)/python -m campaign.control --seeds 500 && exit $$faults

soak: $(STAMP) ## load the demo's deployment: its maximum, half an hour at 80 % of it, an overload
	@$(BIN)/python -m campaign.load

lint: lint-types lint-rest ## ruff, mypy, the import directions and bandit

lint-types: $(STAMP)
	$(BIN)/mypy

lint-rest: $(STAMP)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/lint-imports --no-cache
	$(BIN)/bandit --quiet --configfile pyproject.toml --recursive \
	  $(wildcard src benchmarks campaign tools)

# Strict: a package that nobody could look up is a failure, not a pass.
audit: $(STAMP) ## ask PyPI for known vulnerabilities of every package in uv.lock
	@PATH="$(CURDIR)/.cache/uv-home/bin:$$PATH" uv export --quiet --frozen --all-extras \
	  --all-groups --no-emit-project --output-file .cache/audited.txt >/dev/null
	@$(BIN)/python tools/audit_packages.py .cache/audited.txt

docs: $(STAMP) ## build the documentation into site/
	$(BIN)/mkdocs build --strict

docs-serve: $(STAMP) ## show the documentation on this machine while you write
	$(BIN)/mkdocs serve

clean: ## remove everything that make made, except results/
	rm -rf .venv .cache .hypothesis .import_linter_cache .mypy_cache .pytest_cache .ruff_cache \
	  build dist site
	find src tests benchmarks tools -name __pycache__ -type d -prune -exec rm -rf {} +
