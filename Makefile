# metal.nodenet: what a checkout can do. The logic is in tests/tools/, this file only names it.
#
#   VENV    where the virtual environment is (made on first use; default .venv)
#   PYTHON  the Python to make it with (3.11 or newer; default python3)
#   EXAMPLES  how many examples per property "make fuzz" runs
#   SCENARIO, RELEASE, BACKEND    what "make molecule" runs; several words are several runs
#   BENCH   what "make bench" runs

SHELL := /bin/sh
TOP := $(patsubst %/,%,$(dir $(abspath $(lastword $(MAKEFILE_LIST)))))
PYTHON ?= python3
VENV ?= .venv
EXAMPLES ?= 5000
SCENARIO ?=
RELEASE ?= bookworm
BACKEND ?= nft
BENCH ?=
# a relative VENV is relative to the checkout
override VENV := $(if $(filter /%,$(VENV)),$(VENV),$(TOP)/$(VENV))

export PYTHON VENV
# Debian keeps iptables and ipset where a plain user's PATH does not look
export PATH := $(VENV)/bin:$(PATH):/usr/local/sbin:/usr/sbin:/sbin
# a symlink in there makes this checkout the collection metal.nodenet, wherever it is
export ANSIBLE_COLLECTIONS_PATH := $(VENV)/collections
# molecule keeps its state there, by the name of the checkout's folder: of two checkouts, each needs its own
export ANSIBLE_HOME := $(TOP)/.ansible
# Ansible refuses to run in a locale that is not UTF-8, and a minimal system has none set
export LC_ALL := C.UTF-8

.DEFAULT_GOAL := help
.PHONY: help demo test molecule matrix versions mutations fuzz lint bench setup clean

help:
	@echo "make demo        build a small world of network namespaces, show what the collection does there, take it down (root)"
	@echo "make test        every check, the demo, one scenario, all tests (root)"
	@echo "make molecule    all scenarios on containers, or some: SCENARIO=kube_nat RELEASE=trixie BACKEND=legacy (root, podman)"
	@echo "make matrix      the same on every Debian release and both backends; hours if SCENARIO names none"
	@echo "make versions    the newest ansible-core and Python on the controller, the oldest Python on a node (root, podman)"
	@echo "make mutations   break the collection in each way of molecule/mutations.yml: scenarios must notice (root, podman)"
	@echo "make fuzz        hostile input of every kind, for as long as EXAMPLES (per property) takes (root)"
	@echo "make lint        only the checks that need no root: style, types, documentation, build"
	@echo "make bench       measure: twenty minutes; or some of it: BENCH=\"kernel fleet\", files of tests/bench (root)"
	@echo "make setup       only install what the others need"
	@echo "make clean       remove what make made in this checkout"
	@echo
	@echo "All of them install what they need: Debian packages, if any is missing, and Python packages in $(VENV)"

demo:
	@$(TOP)/tests/tools/setup.sh demo
	@$(TOP)/tests/tools/check.sh demo

test:
	@$(TOP)/tests/tools/setup.sh test
	@$(TOP)/tests/tools/check.sh test

molecule:
	@$(TOP)/tests/tools/setup.sh test
	@NODENET_DEBIAN_RELEASE="$(RELEASE)" NODENET_BACKEND="$(BACKEND)" $(TOP)/tests/tools/molecule.sh $(SCENARIO)

matrix: RELEASE := bullseye bookworm trixie
matrix: BACKEND := nft legacy
matrix: molecule

versions:
	@$(TOP)/tests/tools/setup.sh test
	@$(TOP)/tests/tools/versions.sh

mutations:
	@$(TOP)/tests/tools/setup.sh test
	@python $(TOP)/tests/tools/mutate.py $(SCENARIO)

fuzz:
	@$(TOP)/tests/tools/setup.sh test
	@FUZZ_EXAMPLES="$(EXAMPLES)" pytest -q $(TOP)/tests/fuzz

lint:
	@$(TOP)/tests/tools/setup.sh lint
	@$(TOP)/tests/tools/check.sh lint

bench:
	@$(TOP)/tests/tools/setup.sh bench
	@$(TOP)/tests/tools/bench.sh $(BENCH)

setup:
	@$(TOP)/tests/tools/setup.sh test

clean:
	@$(TOP)/tests/tools/setup.sh clean
