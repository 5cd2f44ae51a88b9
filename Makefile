# Every target sets up what it needs. PYTHON=python3.12 make test chooses another interpreter.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
BENCH_VENV := .venv-bench
BENCH_STAMP := $(BENCH_VENV)/.installed
REQUIRES := import sys; sys.exit(sys.version_info < (3, 11) and "gesmr needs Python 3.11 or newer, got " + sys.version.split()[0] + "; try PYTHON=python3.12 make ...")

.PHONY: setup test test-all check reproduce reproduction-page bench format clean help

help:
	@echo "make setup      a virtual environment with everything the other targets need"
	@echo "make reproduce  the main job: the paper's main study in small, with tables, claims, figures and a report"
	@echo "make test       format, lint, types, tests (under 15 minutes on two cores)"
	@echo "make test-all   the same, with the long statistical tests"
	@echo "make reproduction-page  docs/reproduction.md from the numbers in results/"
	@echo "make bench      speed and memory beside evosax, pycma and nevergrad, into benchmarks/README.md"
	@echo "make format     let ruff rewrite the code"
	@echo "make clean      remove environments, caches and build products"

setup: $(STAMP)

$(STAMP): pyproject.toml
	@$(PYTHON) -c '$(REQUIRES)'
	$(PYTHON) -m venv --clear $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable ".[dev]"
	@touch $@

$(BENCH_STAMP): pyproject.toml benchmarks/requirements.txt
	@$(PYTHON) -c '$(REQUIRES)'
	$(PYTHON) -m venv --clear $(BENCH_VENV)
	$(BENCH_VENV)/bin/python -m pip install --quiet --disable-pip-version-check --editable . -r benchmarks/requirements.txt
	@touch $@

check: $(STAMP)
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/pyright

test: check
	$(BIN)/python -m pytest -n 2 --dist worksteal -m "not slow"

test-all: check
	$(BIN)/python -m pytest -n 2 --dist worksteal

reproduce: $(STAMP)
	$(BIN)/gesmr study reproduce functions --profile quick

reproduction-page: $(STAMP)
	$(BIN)/python scripts/reproduction_page.py

bench: $(BENCH_STAMP)
	$(BENCH_VENV)/bin/python benchmarks/against_evosax.py --write benchmarks/README.md; evosax=$$?; \
	$(BENCH_VENV)/bin/python benchmarks/ask_and_tell.py --write benchmarks/README.md; optimizer=$$?; \
	$(BENCH_VENV)/bin/python benchmarks/workers.py --write benchmarks/README.md && exit $$((evosax + optimizer))

format: $(STAMP)
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

clean:
	rm -rf $(VENV) $(BENCH_VENV) build dist .pytest_cache .ruff_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
