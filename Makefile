# `make run` and `make test` set everything up by themselves: Python 3.11+ is all they need.
PYTHON ?= python3
BIN := .venv/bin
QUIETLY := --quiet --disable-pip-version-check
# Installed without bytecode: what is imported must be able to keep its own.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: run test test-integrations ns3 lint bench bench-small fuzz chaos live-faults mutants audit docs site gallery notebooks
.PHONY: proto dist-check container-check lock clean

run: .venv/run-ready
	$(BIN)/cosmo run

test: .venv/ready
	$(BIN)/python -m pytest

# Libraries that bring torch along, in an environment of their own; programs of others (Envoy, k6, buf,
# Prometheus) in .cache/outsiders, axe-core in .cache/axe-core.
test-integrations: .venv-integrations/ready
	.venv-integrations/bin/python -m pytest -p no:cacheprovider -o addopts="-ra -n 2 --dist loadfile" integrations

.venv-integrations/ready: integrations/requirements.txt pyproject.toml
	$(PYTHON) -m venv .venv-integrations
	.venv-integrations/bin/python -m pip install $(QUIETLY) torch==2.13.0
	.venv-integrations/bin/python -m pip install $(QUIETLY) \
	  -r integrations/requirements.txt -e '.[envs,live,play]'
	@touch $@

# The libraries of the engine ns3.
ns3: .venv/ready
	$(BIN)/cosmo ns3 install

lint: .venv/ready
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy

BENCHMARKS := world gpu decisions training scheduler envs engines live faults picker picker_faults picker_targets report map_frames live_watch

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

# Work killed at random moments and files damaged: make chaos KILLS=300 FLIPS=5000
KILLS ?= 50
FLIPS ?= 1000
chaos: .venv/ready
	$(BIN)/python campaigns/chaos.py --kills $(KILLS) --flips $(FLIPS) --seed $(SEED)

# Live tasks while nodes, networks and peers fail: make live-faults TASKS=100000 FAULTS=200
TASKS ?= 10000
FAULTS ?= 40
live-faults: .venv/ready
	PYTHONPATH=benchmarks $(BIN)/python campaigns/live_faults.py --tasks $(TASKS) --faults $(FAULTS) --seed $(SEED)

# Mistakes made on purpose, and whether a test notices: make mutants MUTANTS=140 MINUTES=40
MUTANTS ?= 60
MINUTES ?= 15
mutants: .venv/ready
	$(BIN)/python campaigns/mutants/score.py --mutants $(MUTANTS) --seed $(SEED) --minutes $(MINUTES)

# Known weaknesses of what we depend on (needs PyPI itself, a mirror does not tell; strict: what could
# not be looked up is a failure), and its licences.
audit: .venv/ready
	$(BIN)/python campaigns/licences.py
	$(BIN)/python -m pip install $(QUIETLY) pip-audit
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

# The example notebooks, executed, with their outputs kept in them.
notebooks: .venv/ready
	$(BIN)/python docs/notebooks.py

# The descriptor sets of messages, after a .proto file has changed: our own protocol, and Envoy's as far as it is used.
PROTOC := $(BIN)/python -m grpc_tools.protoc
LIVE := src/cosmo/live
proto: .venv/ready
	$(PROTOC) -I $(LIVE) --descriptor_set_out $(LIVE)/cosmo_live.binpb cosmo_live.proto
	$(PROTOC) -I $(LIVE)/protos --include_imports --descriptor_set_out $(LIVE)/protos.binpb \
	  $(sort $(shell find $(LIVE)/protos -name '*.proto'))

# What would be published: built, checked, and used from an empty environment.
dist-check: .venv-tools/ready
	.venv-tools/bin/python .ci/dist_check.py

# The container file, step by step, without a container engine.
container-check: .venv/ready
	$(BIN)/python .ci/container_check.py

# What builds the site and releases, in an environment of its own.
.venv-tools/ready: requirements-tools.lock
	$(PYTHON) -m venv .venv-tools
	.venv-tools/bin/python -m pip install $(QUIETLY) -r requirements-tools.lock
	@touch $@

# What running needs. Bytecode is left to the first import: most of what is installed is never imported.
.venv/run-ready: requirements-run.lock pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "cosmo needs Python 3.11 or newer; set PYTHON=/path/to/python3.11"; exit 2; }
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install $(QUIETLY) --no-compile -r requirements-run.lock
	$(BIN)/python -m pip install $(QUIETLY) --no-deps --no-build-isolation -e .
	@touch $@

# What tests, checks and measurements need, beside that.
.venv/ready: requirements.lock .venv/run-ready
	$(BIN)/python -m pip install $(QUIETLY) --no-compile -r requirements.lock
	@touch $@

# Locks name versions and hashes, no host, for every platform and Python that we support. The lock for
# running is a part of the other: the same versions.
COMPILE = $(BIN)/uv pip compile --universal --generate-hashes --no-emit-index-url --no-header --quiet
lock: .venv/ready
	$(BIN)/python -m pip install $(QUIETLY) uv
	$(COMPILE) --upgrade pyproject.toml --extra lab --extra live --group dev -o requirements.lock
	$(COMPILE) --upgrade pyproject.toml --extra lab --group build -c requirements.lock -o requirements-run.lock
	$(COMPILE) --upgrade --group docs --group release -o requirements-tools.lock

clean:
	rm -rf .venv .venv-integrations .venv-tools .cache build dist site .mypy_cache .pytest_cache .ruff_cache .hypothesis cosmo-run
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
