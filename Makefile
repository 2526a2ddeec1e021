# Everything a fresh Debian 12 machine needs is installed by these targets; nothing else has to be typed.
#   make demo           plan, check, render and cable xoc-256, then accept the lab site in the embedded lab
#   make demo LAB=no    without the lab, whose kernel is built once (8 minutes)
#   make test           style, types and every test, lab included
#   make test LAB=no    without booting the lab
#   make test-lab       of these tests those of the embedded lab itself: less than 6 minutes, 20 on a machine without its kernel
.DELETE_ON_ERROR:
SHELL := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c
.DEFAULT_GOAL := help
LAB ?= yes
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
PYTHON ?= python3
# real tools that check what we write and compute: FRR, nftables, YANG, SimGrid, and what makes the embedded lab
PACKAGES := python3-venv systemd frr frr-pythontools nftables conntrack iproute2 busybox iputils-ping openssh-client openssh-server python3-simgrid
SUDO := $(if $(filter 0,$(shell id -u)),,sudo)

PYTEST_LAB := KVFABRIC_REQUIRE_LAB=yes $(BIN)/python -m pytest -q -n 2 --dist loadfile -m lab

.PHONY: help
help:
	@sed -n '2,6s/^#   //p' Makefile

.PHONY: packages
packages:
	@if command -v apt-get >/dev/null && ! dpkg -s $(PACKAGES) >/dev/null 2>&1; then \
	  echo "installing: $(PACKAGES)" >&2; \
	  $(SUDO) apt-get -qq -o DPkg::Lock::Timeout=300 update >/dev/null; \
	  DEBIAN_FRONTEND=noninteractive $(SUDO) apt-get -qq -o DPkg::Lock::Timeout=300 install -y $(PACKAGES) >/dev/null; \
	fi

$(STAMP): pyproject.toml requirements.lock
	@$(MAKE) --no-print-directory packages
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@$(BIN)/python -m pip install -q --disable-pip-version-check -c requirements.lock -e '.[dev,external]'
	@touch $@

.PHONY: install
install: $(STAMP)

.PHONY: demo
demo: install
	@$(BIN)/kvfabric build xoc-256 --out out --external
ifneq ($(LAB),no)
	@echo "the lab site: every device for real, in one Linux kernel of its own; its acceptance without the checks that disturb traffic" >&2
	@$(SUDO) $(BIN)/kvfabric lab build >/dev/null
	@$(BIN)/kvfabric accept lab --engine uml
endif
	@echo "next: . $(VENV)/bin/activate && kvfabric new berlin --size xoc-256 (README.md, ten minutes)" >&2

.PHONY: lint
lint: install
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@$(BIN)/mypy

.PHONY: test
test: lint $(if $(filter no,$(LAB)),,lab)
	@$(BIN)/python -m pytest -q -n 2 --dist loadfile -m 'not lab and not hardware'
ifneq ($(LAB),no)
	@$(PYTEST_LAB)
endif

# start, status, tenants, NAT, RoCE, spine and gateway loss, life cycle, slices, the host's own kernel (docs/lab.md)
.PHONY: test-lab
test-lab: install
	@$(SUDO) $(BIN)/kvfabric lab build >/dev/null
	@$(PYTEST_LAB) $(wildcard tests/lab/test_lab*.py) $(patsubst %,tests/lab/test_%.py,lifecycle native slice rdma_exclusive)

# what labs boot (a kernel, a Debian root, Docker, containerlab and its image): about 16 minutes once, then cached
.PHONY: lab
lab: install
	@$(SUDO) $(BIN)/kvfabric lab build --engine containerlab >/dev/null

.PHONY: bench
bench: install
	@for file in tests/benchmarks/bench_*.py; do echo "== $$file"; $(BIN)/python "$$file"; done

.PHONY: lock
lock: install
	@$(BIN)/python -m pip freeze --exclude-editable > requirements.lock

.PHONY: clean
clean:
	rm -rf $(VENV) out dist build .mypy_cache .ruff_cache .pytest_cache .hypothesis
