# SPDX-License-Identifier: MIT
#
# The commands of this repository. Everything is built by CMake with the presets of
# CMakePresets.json; this file only says which preset, which tests, in which order.
#
#   make               release build into build/ (build/bin/obase)
#   make demo          what obase does, on a million records and on this machine's package index: a
#                      table, and out/report.html
#   make install       the library, headers, obase command and plugins into PREFIX (/usr/local)
#   make test          builds with g++ and runs the suite at CI size: about 20 minutes on two cores
#   make check         the rest of what CI runs: sanitizers, models, clang's warnings, layers, format
#   make test-long     the long tier (hours)
#   make soak          the soak tier (until stopped or days have passed)
#   make fuzz          the fuzz targets under libFuzzer, some minutes each
#   make mutants       broken variants of the protocols; the suite must kill each
#   make models        the Promela models, with spin
#   make results       what docs/results/ has, measured anew: hours, on a quiet machine; one page:
#                      WHAT=guide (scripts/results.py --list has them)
#   make format, make check-format, make check-layers, make clean
SHELL := /bin/bash
.DELETE_ON_ERROR:

JOBS ?= $(shell nproc)
CLANG_FORMAT ?= clang-format-19
SOURCES = $(shell git ls-files --cached --others --exclude-standard -- '*.hpp' '*.cpp' '*.h' '*.c')

.PHONY: all configure install demo test check test-long soak fuzz mutants models results format check-format check-layers clean

all: configure
	cmake --build --preset release --parallel $(JOBS)

configure:
	@cmake --preset release >/dev/null

PREFIX ?= /usr/local
install: configure
	cmake --build --preset release --parallel $(JOBS) --target obase_installed
	cmake --install build --prefix $(PREFIX)

demo:
	JOBS=$(JOBS) demo/run

test check:
	scripts/test-all $@ --jobs $(JOBS)

test-long: all
	ctest --test-dir build -L '^long$$' --output-on-failure

soak: all
	ctest --test-dir build -L '^soak$$' --output-on-failure

fuzz:
	cmake --preset fuzz >/dev/null
	cmake --build --preset fuzz --parallel $(JOBS)
	ctest --preset fuzz -L '^fuzz$$' --verbose

mutants:
	scripts/run_mutants.py --jobs $(JOBS)

models:
	models/check.py

WHAT ?=
results: configure
	scripts/results.py $(WHAT)

format:
	@$(CLANG_FORMAT) -i $(SOURCES)

check-format:
	@$(CLANG_FORMAT) --dry-run --Werror $(SOURCES)

check-layers:
	scripts/check_layers.py

clean:
	rm -rf build out
