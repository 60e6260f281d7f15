# The front door. Each target sets up what it needs on a fresh Debian or Ubuntu machine: packages (as root; otherwise it
# prints the one command to run), HDF5, Python packages. A second run finds everything done. `make help` lists them.

SHELL := /bin/bash
.DEFAULT_GOAL := help
.NOTPARALLEL:

export JOBS ?= $(shell nproc 2>/dev/null || echo 2)
export WERROR ?= OFF
# `make test` needs a thread-safe HDF5 with its API test program: it builds its own even where an HDF5 is installed.
# TIDELANE_TEST_HDF5=found tests with the one that `make build` would take.
export TIDELANE_TEST_HDF5 ?= own

# Whose CuPy, PyTorch, JAX and numba `make test-gpu` runs.
PYTHON ?= python3

setup := scripts/setup
# Silent unless on a terminal; ninja before 1.11 cannot be. Expanded late: ninja may yet have to be installed.
ninja = ninja -j $(JOBS) $(shell test -t 1 || ninja --help 2>&1 | grep -o -e --quiet)

.PHONY: help build install wheel demo demo-mpi test test-long test-gpu bench bench-gpu bench-micro bench-mpi bench-papers bench-python bench-query check tidy format clean distclean setup-build setup-test setup-mpi setup-python

help:  ## show this
	@sed -nE 's/^([a-z-]+):.*## (.*)/  make \1\t\2/p' Makefile | expand -t 20

# Packages are asked for all at once, so that who may not install them is shown one command and not several.
packages := build hdf5 test
packages += $(if $(filter demo demo-mpi bench bench-gpu bench-mpi bench-papers bench-python bench-query wheel test test-gpu test-long check format setup-python,$(MAKECMDGOALS)),python)
packages += $(if $(filter test-long,$(MAKECMDGOALS)),netcdf)
packages += $(if $(WITH_LINT),lint)
packages += $(foreach goal,demo bench bench-micro,$(filter $(goal),$(subst demo-mpi,demo,$(subst bench-mpi,bench,$(subst bench-papers,bench,$(subst bench-gpu,bench,$(MAKECMDGOALS)))))))
packages += $(if $(filter demo-mpi bench-mpi bench-papers test test-long,$(MAKECMDGOALS)),mpi)

build: setup-build  ## build the plugin; then `. build/env.sh` turns it on in your shell
	@$(setup)/configure.sh release
	@$(ninja) -C build/release plugins
	@$(setup)/env.sh

# The library of GNU's layout (lib or lib64) is CMake's to choose; DESTDIR is honoured.
PREFIX ?= /usr/local
install: build  ## install under PREFIX (/usr/local): plugins, library, headers, CMake and pkg-config files, docs
	@cmake --install build/release --prefix "$(PREFIX)"

setup-build:
	@$(setup)/packages.sh $(packages)
	@$(setup)/hdf5.sh found

setup-test:
	@$(setup)/packages.sh $(packages)
	@$(setup)/hdf5.sh $(TIDELANE_TEST_HDF5)
	@$(setup)/hdf5-tests.sh few
	@$(setup)/env.sh

# MPI programs are tested with both MPIs of the distribution, each with a parallel HDF5 of its own.
setup-mpi:
	@$(setup)/hdf5-parallel.sh mpich
	@$(setup)/hdf5-parallel.sh openmpi
	@$(setup)/env.sh mpich
	@$(setup)/env.sh openmpi

setup-python:
	@$(setup)/python.sh

wheel: setup-python  ## the Python package as a manylinux wheel, from sources, in build/wheel
	@$(setup)/packages.sh build
	@$(setup)/wheel.sh

demo: build setup-python  ## native HDF5 and Tidelane side by side on slow storage: table, timeline, real programs
	@$(ninja) -C build/release tidelane_demo
	@. build/env.sh && unset HDF5_VOL_CONNECTOR && build/venv/bin/python bench/demo.py

demo-mpi: build setup-mpi setup-python  ## ranks that write one file together, native HDF5 and Tidelane side by side: MPICH, Open MPI
	@$(setup)/configure.sh release
	@$(ninja) -C build/release tidelane_demo_mpi
	@. build/env.sh && unset HDF5_VOL_CONNECTOR && build/venv/bin/python bench/demo_mpi.py

test: setup-test setup-mpi setup-python  ## every check and test of a change: aims at 40 minutes on two cores
	@scripts/test.sh

test-long: setup-test setup-mpi setup-python  ## repeats, long stress runs, sanitizers over the clients: hours
	@scripts/test-long.sh

test-gpu: build setup-test setup-python  ## on a machine with an NVIDIA GPU: every kind of its memory; the CuPy, PyTorch, JAX, numba that PYTHON=python3 has
	@$(setup)/configure.sh release
	@$(ninja) -C build/release gpu_real
	@. build/env.sh && build/release/bin/gpu_real
	@TIDELANE_TEST_PLUGIN_DIR=$(CURDIR)/build/release/lib/tidelane build/venv/bin/python tests/python/install.py build/gpu-site
	@PYTHONPATH=build/gpu-site $(PYTHON) tests/gpu/real/frameworks.py || [ $$? = 77 ]

bench: build setup-python  ## native HDF5 and Tidelane measured: tables and build/bench/results.json; BENCH="walk --rounds 9" chooses
	@$(ninja) -C build/release bench/all
	@. build/env.sh && unset HDF5_VOL_CONNECTOR && build/venv/bin/python bench/bench.py $(BENCH)

bench-papers: build setup-mpi setup-python  ## the figures of the papers on asynchronous HDF5, here; PAPERS="--quick" chooses
	@$(setup)/configure.sh release
	@$(ninja) -C build/release bench/all
	@. build/env.sh && unset HDF5_VOL_CONNECTOR && build/venv/bin/python bench/reproduce.py $(PAPERS)

bench-mpi: build setup-mpi setup-python  ## ranks of an MPI program: time series, interleaved pieces, small writes, cold opens; BENCH="--rounds 3"
	@$(setup)/configure.sh release
	@$(ninja) -C build/release bench/all
	@. build/env.sh && unset HDF5_VOL_CONNECTOR && build/venv/bin/python bench/bench.py ranks pieces ranks_writes ranks_filtered ranks_reads ranks_opening $(BENCH)

bench-python: build setup-python  ## h5py, xarray, pandas with and without Tidelane; zarr 3 and TensorStore; BENCH="--rounds 3"
	@build/venv/bin/python -m pip install -q --disable-pip-version-check --only-binary=:all: zarr tensorstore
	@build/venv/bin/python bench/python/compare.py $(BENCH)

bench-query: build setup-python  ## queries: h5py, NumPy, PyTables, DuckDB, zarr and Tidelane; BENCH="--data gzip --rounds 9"
	@python3 -m venv build/bench-query-venv
	@build/bench-query-venv/bin/python -m pip install -q --disable-pip-version-check --only-binary=:all: duckdb pyarrow zarr
	@. build/env.sh && unset HDF5_VOL_CONNECTOR && build/venv/bin/python bench/bench.py query $(BENCH)

bench-gpu: build setup-python  ## on a machine with an NVIDIA GPU: what writing from its memory costs; BENCH="--rounds 9"
	@$(ninja) -C build/release gpu
	@. build/env.sh && unset HDF5_VOL_CONNECTOR && build/venv/bin/python bench/gpu.py $(BENCH)

bench-micro: build  ## micro-benchmarks of the rooms
	@$(ninja) -C build/release tidelane_benches
	@for b in build/release/bin/*_bench; do [ -x "$$b" ] || continue; echo "== $$(basename $$b)"; timeout 600 "$$b" || exit 1; done

check: setup-test setup-python  ## ranks, self-contained headers, sizes, docs/settings.md, formatting
	@$(setup)/configure.sh release
	@scripts/check/all.sh

tidy: setup-build  ## clang-tidy over the plugin's sources: minutes
	@$(setup)/packages.sh tidy
	@$(setup)/configure.sh release
	@scripts/check/tidy.sh

format: setup-python  ## format the C++ sources in place
	@scripts/check/format.sh --fix

clean:  ## remove what was compiled; HDF5 and the Python environment stay
	rm -rf build/release build/debug build/asan build/tsan build/tsan-hdf5

distclean:  ## remove build/ altogether
	rm -rf build
