# Every target sets up what it needs. PYTHON=python3.12 make test chooses the interpreter, and makes .venv anew if it has
# another one.
VENV := .venv
BIN := $(VENV)/bin
DEV := $(VENV)/.installed
LAB := $(VENV)/.lab
BENCH_VENV := .venv-bench
BENCH_STAMP := $(BENCH_VENV)/.installed
PEERS_STAMP := $(BENCH_VENV)/.peers
DOCS_VENV := .venv-docs
DOCS_STAMP := $(DOCS_VENV)/.installed
JOBS ?= 1
INTERPRETER := $(or $(PYTHON),python3)
REQUIRES := import sys; sys.exit(sys.version_info < (3, 11) and "gesmr needs Python 3.11 or newer, got " + sys.version.split()[0] + "; try PYTHON=python3.12 make ...")
VERSION := import sys; print("%d.%d" % sys.version_info[:2])
CHOSEN := $(if $(PYTHON),$(VENV)/.python$(shell $(PYTHON) -c '$(VERSION)'))

.PHONY: setup quick durations test test-all style check reproduce reproduction-page bench coco coco-budgets coco-beyond choosing-page coco-mixed docs docs-serve format clean help

help:
	@echo "make setup      a virtual environment with everything the other targets need"
	@echo "make reproduce  the main job: the paper's main study in small, with tables, claims, figures and a report"
	@echo "make quick      while working: format, lint, and the first case of every test that is fast (90 s on two cores)"
	@echo "make test       what a change must pass: format, lint, types, tests (about 12 minutes on two cores)"
	@echo "make test-all   the same, with the long statistical tests"
	@echo "make durations  measure which tests are fast, for make quick"
	@echo "make reproduction-page  docs/reproduction.md from the numbers in results/"
	@echo "make bench      speed and memory beside eight other libraries, into docs/performance.md: half an hour"
	@echo "make coco       COCO's functions beside pycma, scipy and evosax, into docs/benchmarks.md: over an hour of CPU; JOBS=16"
	@echo "make coco-budgets  population sizes for small budgets, into docs/budgets.md: half an hour of CPU"
	@echo "make coco-beyond   recombination, its settings and its peers, into docs: hours of CPU; JOBS=16"
	@echo "make choosing-page  tables of docs/choosing.md and docs/recombination.md from the numbers in results/"
	@echo "make coco-mixed    integers and constraints beside scipy and pycma, into docs: half an hour of CPU"
	@echo "make docs       the documentation site, strictly, into build/site; make docs-serve shows it on 127.0.0.1:8000"
	@echo "make format     let ruff rewrite the code"
	@echo "make clean      remove environments, caches and build products"

setup: $(DEV)

# $(call install,environment,what pip installs,files that say so)
define install
@$(INTERPRETER) -c '$(REQUIRES)'
$(INTERPRETER) -m venv --clear $(1)
$(1)/bin/python -m pip install --quiet --disable-pip-version-check --editable $(2)
@touch $(1)/.python$$($(1)/bin/python -c '$(VERSION)') $(3)
endef

# What develops the library runs its studies too; what runs studies is much less.
$(DEV): pyproject.toml $(CHOSEN)
	$(call install,$(VENV),".[dev]",$(LAB) $@)

$(LAB): pyproject.toml $(CHOSEN)
	$(call install,$(VENV),".[lab]",$@)

# Missing where the environment has another interpreter: the two above are then made anew.
$(CHOSEN): ;

$(BENCH_STAMP): pyproject.toml benchmarks/requirements.txt
	$(call install,$(BENCH_VENV),".[lab]" -r benchmarks/requirements.txt,$@)

# Libraries on PyTorch take gigabytes, and only `make bench` needs them.
$(PEERS_STAMP): $(BENCH_STAMP) benchmarks/requirements-torch.txt
	$(BENCH_VENV)/bin/python -m pip install --quiet --disable-pip-version-check -r benchmarks/requirements-torch.txt
	@touch $@

$(DOCS_STAMP): pyproject.toml
	$(call install,$(DOCS_VENV),".[docs]",$@)

style: $(DEV)
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .

check: style
	$(BIN)/pyright

quick: style
	$(BIN)/python -m pytest -n 2 --dist worksteal --quick --durations 5 --durations-min 5

# Which tests --quick leaves out, by the processor time they take. One process: others would take time from it.
durations: $(DEV)
	$(BIN)/python -m pytest --record-durations

test: check
	$(BIN)/python -m pytest -n 2 --dist worksteal -m "not slow"

test-all: check
	$(BIN)/python -m pytest -n 2 --dist worksteal

reproduce: $(LAB)
	$(BIN)/gesmr study reproduce functions --profile quick

reproduction-page: $(LAB)
	$(BIN)/python scripts/reproduction_page.py

bench: $(PEERS_STAMP)
	@missed=0; for script in against_evosax parts peers large ask_and_tell mixed_spaces workers; do \
		$(BENCH_VENV)/bin/python benchmarks/$$script.py --write docs/performance.md || missed=1; done; \
	$(BENCH_VENV)/bin/python benchmarks/memory.py --write docs/performance.md docs/devices.md || missed=1; exit $$missed

coco: $(BENCH_STAMP)
	$(BENCH_VENV)/bin/python benchmarks/coco.py --jobs $(JOBS) --write docs/benchmarks.md

coco-budgets: $(BENCH_STAMP)
	$(BENCH_VENV)/bin/python benchmarks/coco_budgets.py --jobs $(JOBS) --write docs/budgets.md
	$(BENCH_VENV)/bin/python benchmarks/tuning.py --write docs/budgets.md

coco-beyond: $(BENCH_STAMP)
	$(BENCH_VENV)/bin/python benchmarks/coco_beyond.py coco-beyond-choice --jobs $(JOBS) --write docs/recombination.md
	$(BENCH_VENV)/bin/python benchmarks/coco_beyond.py coco-beyond --jobs $(JOBS) --write docs/recombination.md docs/choosing.md

choosing-page: $(LAB)
	$(BIN)/python benchmarks/choosing_page.py --write docs/choosing.md docs/recombination.md
	$(BIN)/python benchmarks/coco_beyond_page.py --write docs/choosing.md docs/recombination.md

coco-mixed: $(BENCH_STAMP)
	$(BENCH_VENV)/bin/python benchmarks/coco_mixint_choice.py --jobs $(JOBS) --write docs/spaces.md
	$(BENCH_VENV)/bin/python benchmarks/coco_mixint.py --jobs $(JOBS) --write docs/benchmarks.md
	$(BENCH_VENV)/bin/python benchmarks/coco_constrained.py --jobs $(JOBS) --write docs/benchmarks.md

# What reads the documentation needs little: an environment of its own, so that nobody waits for the development tools.
docs: $(DOCS_STAMP)
	NO_MKDOCS_2_WARNING=1 $(DOCS_VENV)/bin/mkdocs build --strict --quiet
	$(DOCS_VENV)/bin/python scripts/check_site.py build/site

docs-serve: docs
	$(DOCS_VENV)/bin/python -m http.server --bind 127.0.0.1 --directory build/site 8000

format: $(DEV)
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

clean:
	rm -rf $(VENV) $(BENCH_VENV) $(DOCS_VENV) build dist .pytest_cache .ruff_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
