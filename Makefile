# `make run` and `make test` set everything up by themselves: Python 3.11+ is all they need.
PYTHON ?= python3
BIN := .venv/bin

.PHONY: run test test-integrations ns3 lint bench bench-small fuzz chaos mutants audit docs site gallery
.PHONY: dist-check lock clean

run: .venv/ready
	$(BIN)/cosmo run

test: .venv/ready
	$(BIN)/python -m pytest

# Libraries that bring torch along, in an environment of their own; programs of others (Envoy, k6, buf,
# Prometheus) in .cache/outsiders, axe-core in .cache/axe-core.
test-integrations: .venv-integrations/ready
	.venv-integrations/bin/python -m pytest -p no:cacheprovider -o addopts="-ra -n 2 --dist loadfile" integrations

.venv-integrations/ready: integrations/requirements.txt pyproject.toml
	$(PYTHON) -m venv .venv-integrations
	.venv-integrations/bin/python -m pip install --quiet --disable-pip-version-check torch==2.13.0
	.venv-integrations/bin/python -m pip install --quiet --disable-pip-version-check \
	  -r integrations/requirements.txt -e '.[envs,live]'
	@touch $@

# The libraries of the engine ns3.
ns3: .venv/ready
	$(BIN)/cosmo ns3 install

lint: .venv/ready
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy

BENCHMARKS := world decisions training scheduler envs engines live faults report

bench: .venv/ready
	set -e; for each in $(BENCHMARKS); do $(BIN)/python benchmarks/$$each.py; done

# Seconds: whether they run, not how fast.
bench-small: .venv/ready
	set -e; for each in $(BENCHMARKS); do $(BIN)/python benchmarks/$$each.py --small; done

# Odd input of all kinds through the command line, for as long as you like: make fuzz CASES=200000 SEED=7
CASES ?= 20000
SEED ?= 1
fuzz: .venv/ready
	$(BIN)/python campaigns/fuzz/run.py --cases $(CASES) --seed $(SEED)

# Work killed at random moments and files damaged: make chaos KILLS=200 FLIPS=5000
KILLS ?= 50
FLIPS ?= 1000
chaos: .venv/ready
	$(BIN)/python campaigns/chaos.py --kills $(KILLS) --flips $(FLIPS) --seed $(SEED)

# Mistakes made on purpose, and whether a test notices: make mutants MUTANTS=140
MUTANTS ?= 40
mutants: .venv/ready
	$(BIN)/python campaigns/mutants/score.py --mutants $(MUTANTS) --seed $(SEED)

# Known weaknesses of what we depend on (needs PyPI itself, a mirror does not tell; strict: what could
# not be looked up is a failure), and its licences.
audit: .venv/ready
	$(BIN)/python campaigns/licences.py
	$(BIN)/python -m pip install --quiet --disable-pip-version-check pip-audit
	$(BIN)/python -m pip_audit --strict --disable-pip --no-deps -r requirements.lock

# Measures again what the docs report.
docs: .venv/ready
	$(BIN)/python docs/regenerate.py

# The documentation site, in site/: warnings are errors, and nothing is fetched by a reader.
site: .venv-tools/ready
	.venv-tools/bin/python docs/stage.py
	.venv-tools/bin/zensical build --clean --strict -f mkdocs.yml
	.venv-tools/bin/python docs/check_site.py

# The pictures of docs/gallery.md, from real runs; needs Chromium with chromedriver.
gallery: .venv/ready
	$(BIN)/python docs/gallery.py

# What would be published: built, checked, and used from an empty environment.
dist-check: .venv-tools/ready
	.venv-tools/bin/python .ci/dist_check.py

# What builds the site and releases, in an environment of its own.
.venv-tools/ready: requirements-tools.lock
	$(PYTHON) -m venv .venv-tools
	.venv-tools/bin/python -m pip install --quiet --disable-pip-version-check -r requirements-tools.lock
	@touch $@

.venv/ready: requirements.lock pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "cosmo needs Python 3.11 or newer; set PYTHON=/path/to/python3.11"; exit 2; }
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -r requirements.lock
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation -e .
	@touch $@

# The lock names versions only, no host, for every platform and Python that we support.
lock: .venv/ready
	$(BIN)/python -m pip install --quiet uv
	$(BIN)/uv pip compile pyproject.toml --extra lab --extra live --group dev --universal --upgrade \
	  --no-emit-index-url --no-header --quiet -o requirements.lock
	$(BIN)/uv pip compile --group docs --group release --universal --upgrade \
	  --no-emit-index-url --no-header --quiet -o requirements-tools.lock

clean:
	rm -rf .venv .venv-integrations .venv-tools .cache build dist site .mypy_cache .pytest_cache .ruff_cache .hypothesis cosmo-run
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
