# make run-experiment   install, generate data, train, show results   (ROWS=... for more rows)
# make test             the tests        make test-all   the slow ones too
# make chaos            a storm of signals on trainings, for SECONDS, drawn from SEED
# make fuzz             COUNT bad inputs for every reader, from number FIRST on, drawn from SEED
# make test-extras      what needs other libraries, with them: installs them in .extras first
# make check            formatter, linter, type checker
# make speed            every ratio of speeds that is demanded (DATA=FILE, BASELINE=DIR)
# make scaling          how training scales with workers, and why no better (SHAPE=..., ROWS=...)
# make peers            time to the answer beside other linear trainers: installs them in
#                       experiments/.peers first (DATA="FILE...")
# make peers-mf         the same for factorization: installs them in experiments/.peers first (3 GB)
# make perceptrons      distributed perceptrons: mixing and votes, by test error
# make textbooks        the textbooks' experiments on SGD, with a page that explains them (ROWS=...)
# make docs            the documentation, in site/: open site/index.html
# make package          sdist and wheel in dist/, and the wheel tried in a fresh environment
# make clean            removes .venv, site, dist, the peers, and what the experiments wrote

ROWS ?= 200000
SHAPE ?= rcv1
SECONDS ?= 60
SEED ?= 0
COUNT ?= 13000
FIRST ?= 0
# Shapes have numbers of rows of their own
ASKED_ROWS = $(if $(filter command environment,$(firstword $(origin ROWS))),--rows $(ROWS))
# The first of these that is new enough; or say PYTHON=...
PYTHON ?= $(shell for p in python3 python3.14 python3.13 python3.12 python3.11; do \
  $$p -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && echo $$p && break; done)

BIN := .venv/bin
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt

.PHONY: run-experiment test test-all chaos fuzz test-extras check format speed scaling peers peers-mf perceptrons textbooks \
  docs package clean

run-experiment: .venv/installed
	$(BIN)/python experiments/run.py --rows $(ROWS)

test: .venv/installed-dev
	$(BIN)/python -m pytest --numprocesses logical --maxprocesses 8 --dist loadfile

test-all: .venv/installed-dev
	$(BIN)/python -m pytest -m "slow or not slow"

chaos: .venv/installed-dev
	$(BIN)/python -m tests.chaos.run --seconds $(SECONDS) --seed $(SEED)

fuzz: .venv/installed-dev
	PYTHONPATH=tests $(BIN)/python -m tests.fuzz --count $(COUNT) --seed $(SEED) --first $(FIRST)

test-extras: .venv/installed-dev
	$(BIN)/python tests/extras/models.py
	$(BIN)/python tests/extras/run.py

check: .venv/installed-dev
	$(BIN)/ruff format --check
	$(BIN)/ruff check
	$(BIN)/mypy

format: .venv/installed-dev
	$(BIN)/ruff format
	$(BIN)/ruff check --fix

speed: .venv/installed-dev
	@failed=0; \
	for command in "speed.py $(if $(DATA),--data $(DATA)) $(if $(BASELINE),--baseline $(BASELINE))" \
	  speed_factors.py speed_workers.py speed_solvers.py; do \
	  $(BIN)/python experiments/$$command || failed=$$?; \
	  test $$failed -lt 130 || break; \
	done; exit $$failed

scaling: .venv/installed
	$(BIN)/python experiments/scaling.py --shape $(SHAPE) $(ASKED_ROWS)

peers: .venv/installed-dev
	$(BIN)/python experiments/peers_linear.py --install
	$(BIN)/python experiments/peers_linear.py $(if $(DATA),--data $(DATA))

peers-mf: .venv/installed-dev
	$(BIN)/python experiments/peers_mf.py --install
	$(BIN)/python experiments/peers_mf.py

perceptrons: .venv/installed
	$(BIN)/python experiments/perceptrons.py

textbooks: .venv/installed
	$(BIN)/python experiments/textbooks.py --rows $(ROWS)

docs: .venv-docs/installed
	NO_MKDOCS_2_WARNING=1 .venv-docs/bin/mkdocs build --strict

# A list of files that is left from an earlier build would add them to the sdist
package: .venv/installed-dev
	rm -rf dist hogwild.egg-info
	$(BIN)/python -m build --quiet
	rm -rf hogwild.egg-info
	$(BIN)/python tests/package.py dist

.venv/installed: pyproject.toml constraints.txt
	@test -n "$(PYTHON)" || { echo "hogwild needs Python 3.11 or newer; say make PYTHON=/path/to/python" >&2; exit 1; }
	$(PYTHON) -m venv --clear .venv
	$(PIP) --editable .
	@touch $@

.venv/installed-dev: .venv/installed
	$(PIP) --editable ".[dev]"
	@touch $@

# Not beside the tests: some of its libraries (colorama) change what programs print
.venv-docs/installed: pyproject.toml constraints.txt
	$(PYTHON) -m venv --clear .venv-docs
	.venv-docs/bin/$(PIP:$(BIN)/%=%) --editable ".[docs]"
	@touch $@

clean:
	rm -rf .venv .venv-docs site dist hogwild.egg-info experiments/.peers .extras experiments/out .mypy_cache .ruff_cache .pytest_cache
