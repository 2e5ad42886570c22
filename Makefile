# The task runner of the project: `make` lists the targets.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip install --quiet --compile --no-input --disable-pip-version-check
# pip does not compile an editable install, so the first command would have to.
BYTECODE := $(BIN)/python -m compileall -q webhook certs
PYTEST := $(BIN)/python -m pytest

# Stamps: an install is repeated only when the files that it installs from have changed.
RUNTIME := $(VENV)/.runtime
DEV := $(VENV)/.dev

# The rings of tests that exist, cheapest first; `test` fails if there are none.
FAST_TESTS := $(wildcard tests/unit tests/property tests/golden)
ALL_TESTS := $(strip $(FAST_TESTS) $(wildcard tests/integration tests/browser))
# The last rings have one cluster for all tests of a run, so they run without workers. Where a cluster
# cannot run, they are skipped with a line that says why; in CI that is a failure.
END_TO_END = K8S=$(K8S) $(PYTEST) tests/e2e
FAULTS = K8S=$(K8S) $(PYTEST) tests/faults
# `make test` splits these rings into two runs side by side, each on its own cluster. Both runs take
# about the same time.
BESIDE_FAULTS := tests/e2e/certs tests/e2e/discover tests/e2e/installed/test_arbitrary_user.py \
	tests/e2e/live/test_called.py tests/e2e/live/test_configuration.py tests/e2e/live/test_lease.py \
	tests/e2e/test_chart.py

# These packages do no I/O, so every branch of them is tested (the contract "Pure" in pyproject.toml).
PURE := admission decide diagnose/tools model
comma := ,
PURE_PACKAGES := $(subst $() ,$(comma),$(subst /,.,$(PURE:%=webhook.%)))
PURE_FILES := $(subst $() ,$(comma),$(PURE:%=webhook/%/*))

# Shell scripts, checked by `make lint`.
SCRIPTS := .ci/run $(shell find webhook certs images tests -name '*.sh')

SCHEMA := webhook/config/fabrics.schema.json
DEFINITION := manifests/crd/fabricconfigurations.yaml
SCHEMA_COMMAND = $(BIN)/rdma-webhook schema

# `make lock` resolves with this version of uv; it is installed into its own venv.
UV_VERSION := 0.13.8
LOCK_VENV := .cache/lock
COMPILE := $(LOCK_VENV)/bin/uv pip compile pyproject.toml --quiet --universal --python-version 3.11 \
	--generate-hashes --no-header --no-emit-index-url --no-emit-find-links

# `make audit` uses these tools, also in their own venv.
PIP_AUDIT_VERSION := 2.10.1
BANDIT_VERSION := 1.9.4
AUDIT_VENV := .cache/audit
AUDIT := $(AUDIT_VENV)/.tools-$(PIP_AUDIT_VERSION)-$(BANDIT_VERSION)

# `make release` lists the Python packages with this tool, in its own venv as well.
CYCLONEDX_VERSION := 7.5.0
RELEASE_VENV := .cache/release
CYCLONEDX := $(RELEASE_VENV)/.cyclonedx-$(CYCLONEDX_VERSION)

# `make mutants` runs the tests with mutmut in the same process. It has its own venv, so that nobody
# else installs mutmut and the dozen packages that come with it, a terminal interface among them.
MUTMUT_VERSION := 3.8.1
MUTANTS_VENV := .cache/mutants
MUTMUT := $(MUTANTS_VENV)/.mutmut-$(MUTMUT_VERSION)

MAKEFLAGS += --no-print-directory
.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.PHONY: help install dev run lint type fmt test-fast test test-deps promtool helm cluster-deps cluster cluster-down test-e2e test-faults test-soak without-cluster on-one-cluster on-another image image-twice fuzz fuzz-short mutants golden experiments experiments-deps test-gpu cov bench bench-cluster schema lock audit release screenshots test-release clean distclean

help:  ## list the targets
	@awk -F ':.*## ' '/^[a-z0-9-]+:.*## / { printf "  make %-13s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

install: $(RUNTIME)  ## set up .venv with what the webhook needs to run
	@:

dev: $(DEV)  ## set up .venv with the development tools as well
	@:

run: $(RUNTIME)  ## serve on 127.0.0.1 with certificates of its own; Ctrl-C stops (ARGS='--health-port 0 -c fabrics.yaml')
	@exec $(BIN)/rdma-webhook serve --dev $(ARGS)

# The types of the page's script. Without the compiler, they are not checked, and a line says so; in CI
# that is a failure.
SCRIPTS_OF_PAGE := $(wildcard webhook/serve/http/page/*.js)
TSC := tsc --noEmit --allowJs --checkJs --strict --noUnusedLocals --target es2022 --module es2022 \
	--lib es2022,dom,dom.iterable
NO_TSC = echo "no tsc here (on Debian: apt-get install node-typescript): the page's types are not checked"

lint: $(DEV)  ## check style, formatting, who imports whom, and the types of the page's script
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/lint-imports --no-logo
	$(BIN)/shellcheck -x -P SCRIPTDIR $(SCRIPTS)
	@if command -v tsc >/dev/null; then $(TSC) $(SCRIPTS_OF_PAGE); else $(NO_TSC); [ -z "$$CI" ]; fi

type: $(DEV)  ## check types
	$(BIN)/mypy

fmt: $(DEV)  ## format the code and repair what ruff can
	$(BIN)/ruff check --fix-only --quiet .
	$(BIN)/ruff format .

test-fast: $(DEV)  ## unit, property and golden tests: no network, no cluster, under a minute (TESTS=tests/unit/pod)
	$(if $(FAST_TESTS),,$(error there is no test to run))
	$(PYTEST) -n 2 $(or $(TESTS),$(FAST_TESTS))

test: $(DEV)  ## everything: lint, type, all tests; end to end where a cluster can stand (K8S=1.34)
	$(if $(ALL_TESTS),,$(error there is no test to run))
	@$(MAKE) --jobs --keep-going --output-sync=target on-one-cluster on-another lint type without-cluster fuzz-short

# What needs no cluster uses the processors while the tests on the clusters wait for events. Coverage
# costs half as much again, so only the unit tests of the pure packages run under it: they alone reach
# every branch of those packages, and this fails if one is missed.
PURE_TESTS := $(PURE:%=tests/unit/%)

without-cluster:
	$(BIN)/coverage erase
	nice $(BIN)/coverage run --source=$(PURE_PACKAGES) -m pytest -n 2 $(PURE_TESTS)
	$(BIN)/coverage combine --quiet
	$(BIN)/coverage report --fail-under=100
	nice $(PYTEST) -n 4 $(ALL_TESTS) $(addprefix --ignore=,$(PURE_TESTS))

on-one-cluster:
	$(END_TO_END) $(addprefix --ignore=,$(BESIDE_FAULTS))

on-another:
	$(FAULTS) $(BESIDE_FAULTS)

fuzz-short:
	$(FUZZ) $(SHORT)

# images/build.sh lists the variables: BASE, BUILDER, PLATFORM, REVISION, VERSION and others.

image:  ## build the image of a commit with buildah, always with the same digest (BASE=… PLATFORM=linux/arm64 REVISION=…)
	@images/build.sh

image-twice:  ## the same twice, and a failure if the digests differ
	@mkdir -p .cache
	images/build.sh >.cache/image.txt
	images/build.sh >.cache/image-again.txt
	diff .cache/image.txt .cache/image-again.txt && cat .cache/image.txt

# A seed and a number identify a case: SEED=… CASE=… runs a case again and shrinks it.
FUZZ = nice $(BIN)/python -m tests.fuzz
CASES := 100000
JOBS := 2
# In `make test`: the same cases each time, so that no change fails by chance, and a fixed number of
# cases, so that the machine's speed does not decide what is tested. It runs while the clusters start.
SHORT := --seed 1 --cases 4000 --jobs 2

fuzz: $(DEV)  ## break laws with made-up reviews, files and scripts (CASES=1000000 JOBS=2 SEED=… FIRST=… CASE=… TARGET=…)
	$(FUZZ) --cases $(CASES) --jobs $(JOBS) $(if $(SEED),--seed $(SEED)) $(if $(CASE),--case $(CASE)) \
		$(if $(FIRST),--first $(FIRST)) $(if $(TARGET),--target $(TARGET))

mutants: $(MUTMUT)  ## change code in small ways and list what no test notices (MUTATE='webhook.decide.draft*')
	nice $(MUTANTS_VENV)/bin/mutmut run --max-children $(JOBS) $(foreach name,$(MUTATE),'$(name)')
	@$(MUTANTS_VENV)/bin/mutmut results | grep -v ': not checked$$' || echo "mutants: all were noticed"

golden: $(DEV) schema  ## rewrite what tests expect and what docs quote; look at the diff before you commit
	UPDATE_GOLDEN=1 $(PYTEST) tests/golden tests/unit/test_docs.py tests/unit/config tests/unit/diagnose \
		tests/unit/test_architecture_page.py \
		tests/unit/test_chart.py \
		tests/unit/serve/test_operation_page.py \
		tests/unit/serve/test_metrics_text.py \
		tests/unit/serve/test_alert_rules.py

# Real MPI launchers; shells: busybox for scripts in pods, fish and zsh for completion; and UCX's
# perftest, which tells whether processes connect with the interfaces that we write, over iproute2's
# namespaces; and sudo and gosu, which change the user; and a browser and a TypeScript compiler, unless
# there are. If one is missing, its tests are skipped, each with a line that says so; in CI a skipped
# test is a failure.
DEBIAN := openmpi-bin mpich busybox-static curl fish zsh ucx-utils iproute2 sudo gosu \
	$(if $(shell command -v chromium google-chrome),,chromium) \
	$(if $(shell command -v tsc),,node-typescript)

test-deps:  ## install the Debian packages that the integration and browser tests and `make lint` run (root)
	@dpkg -s $(DEBIAN) >/dev/null 2>&1 || { apt-get update -qq && \
		DEBIAN_FRONTEND=noninteractive apt-get install -qq -y --no-install-recommends $(DEBIAN); }

promtool: $(DEV)  ## build Prometheus' promtool, which evaluates the alert rules in integration tests (Go 1.26)
	@$(BIN)/python -m tests.cluster build promtool

screenshots: $(DEV)  ## write the pictures of the page to docs/images, and its states to .cache/screenshots
	@$(BIN)/python -m tests.browser.screenshots

# They render the manifests and the chart, which must be the same.
helm: $(DEV)  ## build Helm 3, Helm 4 and kubectl, with which integration tests render the manifests (Go 1.26)
	@$(BIN)/python -m tests.cluster build helm-3 helm-4 kubectl

# The packages that a cluster needs besides Go 1.26, which builds Kubernetes itself.
# tests/cluster/missing.py lists which package has which program.
CLUSTER_DEBIAN := buildah containerd containernetworking-plugins iproute2 mmdebstrap nftables runc \
	util-linux

cluster-deps:  ## install the Debian packages that a cluster runs (root)
	@dpkg -s $(CLUSTER_DEBIAN) >/dev/null 2>&1 || { apt-get update -qq && \
		DEBIAN_FRONTEND=noninteractive apt-get install -qq -y --no-install-recommends $(CLUSTER_DEBIAN); }

# The Kubernetes version of the cluster: tests/cluster/versions.py lists the minor versions.
K8S ?= 1.36

cluster: $(DEV)  ## start a Kubernetes cluster with the webhook and leave it running (root; K8S=1.34)
	@$(BIN)/python -m tests.cluster up --kubernetes $(K8S)
	@$(BIN)/python -m tests.cluster install

cluster-down: $(DEV)  ## end it
	@$(BIN)/python -m tests.cluster down

test-e2e: $(DEV)  ## end-to-end tests, on a cluster of their own (root; K8S=1.34) or on E2E_KUBECONFIG
	$(END_TO_END)

test-faults: $(DEV)  ## what pods notice of restarts, faults and abuse, in minutes (root; K8S=1.34)
	$(FAULTS)

test-soak: $(DEV)  ## the same, each fault for long, and a table of what was measured (root)
	SOAK=1 $(FAULTS) $(BESIDE_FAULTS)

# An emulated machine with a real RDMA device: QEMU, and what makes its disk.
EMULATION_DEBIAN := e2fsprogs mmdebstrap qemu-system-x86

experiments-deps:  ## install the Debian packages that an emulated machine needs (root)
	@dpkg -s $(EMULATION_DEBIAN) >/dev/null 2>&1 || { apt-get update -qq && \
		DEBIAN_FRONTEND=noninteractive apt-get install -qq -y --no-install-recommends $(EMULATION_DEBIAN); }

experiments: $(DEV)  ## real RDMA without a card, in an emulated machine, in minutes (root)
	$(PYTEST) -v tests/softroce

test-gpu: $(DEV)  ## the parts that need a GPU, on a machine with the driver and NCCL, in a minute (root)
	$(PYTEST) tests/gpu

cov: $(DEV)  ## branch coverage, end to end left out: 95% of everything, 100% of the pure floors
	$(if $(ALL_TESTS),,$(error there is no test to run))
	$(BIN)/coverage erase
	$(BIN)/coverage run -m pytest $(ALL_TESTS)
	$(BIN)/coverage combine --quiet
	$(BIN)/coverage report --fail-under=95
	$(BIN)/coverage report --fail-under=100 --include='$(PURE_FILES)'

bench: $(DEV)  ## print the table of ratios
	$(BIN)/python -m tests.benchmarks

bench-cluster: $(DEV)  ## print what admission costs through an API server, and a large cluster a replica (root)
	$(BIN)/python -m tests.benchmarks.cluster

schema: $(RUNTIME)  ## rewrite the JSON Schema of the configuration, and its CustomResourceDefinition
	@mkdir -p .cache
	$(SCHEMA_COMMAND) > .cache/schema.json
	mv .cache/schema.json $(SCHEMA)
	$(SCHEMA_COMMAND) crd > .cache/definition.yaml
	mv .cache/definition.yaml $(DEFINITION)

lock: $(LOCK_VENV)/.uv-$(UV_VERSION)  ## resolve both locks again (UPGRADE=--upgrade also raises indirect ones)
	$(COMPILE) $(UPGRADE) --group build --output-file requirements.lock
	$(COMPILE) $(UPGRADE) --group dev --constraint requirements.lock --output-file requirements-dev.lock

audit: $(AUDIT)  ## look for known vulnerabilities of what is installed (network), and weak spots of the code
	$(AUDIT_VENV)/bin/bandit --quiet --recursive --configfile pyproject.toml webhook certs
	$(AUDIT_VENV)/bin/pip-audit --strict --requirement requirements.lock --require-hashes --disable-pip

release: $(DEV) $(CYCLONEDX)  ## make the files of a release, in dist/ (VERSION=0.1.0 IMAGE=registry/name BASE=… PLATFORMS=…)
	$(BIN)/python -m release $(or $(VERSION),$(error VERSION is not set; for example, make release VERSION=0.1.0)) \
		--cyclonedx $(RELEASE_VENV)/bin/cyclonedx-py $(if $(IMAGE),--image $(IMAGE)) \
		$(if $(PLATFORMS),--platforms $(PLATFORMS))

# It needs the index of Python packages; everything else is on this machine.
test-release: $(DEV) $(CYCLONEDX)  ## make a release twice, compare, sign and verify it, in minutes (root)
	$(PYTEST) tests/release

clean:  ## remove caches and build products
	rm -rf .cache .coverage .coverage.* .hypothesis .import_linter_cache .mypy_cache .pytest_cache \
		.ruff_cache build dist htmlcov mutants
	find . -name __pycache__ -not -path './$(VENV)/*' -prune -exec rm -rf {} +

distclean: clean  ## the same, and .venv
	rm -rf $(VENV) *.egg-info

# The dev lock contains all of the runtime lock, so installing it stamps both.
$(DEV): requirements-dev.lock pyproject.toml | $(BIN)/python
	@echo "Setting up $(VENV) from requirements-dev.lock"
	@$(PIP) --require-hashes -r requirements-dev.lock
	@$(PIP) --no-deps --no-build-isolation --editable .
	@$(BYTECODE)
	@touch $(RUNTIME) $@

$(RUNTIME): requirements.lock pyproject.toml | $(BIN)/python
	@echo "Setting up $(VENV) from requirements.lock"
	@$(PIP) --require-hashes -r requirements.lock
	@$(PIP) --no-deps --no-build-isolation --editable .
	@$(BYTECODE)
	@touch $@

$(BIN)/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null || { \
		echo "Python 3.11 or newer is needed, and '$(PYTHON)' is not: try make PYTHON=python3.13" >&2; exit 1; }
	@$(PYTHON) -c 'import ensurepip, venv' 2>/dev/null || { \
		echo "'$(PYTHON)' has no venv module: install it (on Debian: apt-get install python3-venv)" >&2; exit 1; }
	@$(PYTHON) -m venv --clear $(VENV)

$(LOCK_VENV)/.uv-$(UV_VERSION): | $(BIN)/python
	@$(BIN)/python -m venv --clear $(LOCK_VENV)
	@$(LOCK_VENV)/bin/python -m pip install --quiet --disable-pip-version-check uv==$(UV_VERSION)
	@touch $@

$(AUDIT): | $(BIN)/python
	@$(BIN)/python -m venv --clear $(AUDIT_VENV)
	@$(AUDIT_VENV)/bin/python -m pip install --quiet --disable-pip-version-check \
		pip-audit==$(PIP_AUDIT_VERSION) 'bandit[toml]==$(BANDIT_VERSION)'
	@touch $@

$(CYCLONEDX): | $(BIN)/python
	@$(BIN)/python -m venv --clear $(RELEASE_VENV)
	@$(RELEASE_VENV)/bin/python -m pip install --quiet --disable-pip-version-check \
		cyclonedx-bom==$(CYCLONEDX_VERSION)
	@touch $@

$(MUTMUT): requirements-dev.lock | $(BIN)/python
	@echo "Setting up $(MUTANTS_VENV) from requirements-dev.lock, and mutmut"
	@$(BIN)/python -m venv --clear $(MUTANTS_VENV)
	@$(MUTANTS_VENV)/bin/python -m pip install --quiet --disable-pip-version-check \
		--require-hashes -r requirements-dev.lock
	@$(MUTANTS_VENV)/bin/python -m pip install --quiet --disable-pip-version-check \
		mutmut==$(MUTMUT_VERSION)
	@$(MUTANTS_VENV)/bin/python -m pip install --quiet --disable-pip-version-check \
		--no-deps --no-build-isolation --editable .
	@touch $@
