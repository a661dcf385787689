#!/bin/sh
# Builds ADIOS2 with MPI, which neither Debian 12 nor the wheel on PyPI has, from PyPI's source
# package: C library and BP5 alone, for OpenMPI.
#
#   sh adios2.sh CACHE     makes CACHE/adios2/include and CACHE/adios2/lib; a quarter of an hour
set -eu
cache=$1
for tool in mpicc.openmpi mpicxx.openmpi python3; do
  command -v $tool >/dev/null || { echo "$tool is needed to build ADIOS2" >&2; exit 1; }
done
work=$cache/adios2.$$
trap 'rm -rf "$work"' EXIT
mkdir -p "$work/build"
cd "$work"
# CMake of a version that ADIOS2 accepts, and the source. Built on the disk, not in memory.
TMPDIR=$work
export TMPDIR
python3 -m venv tools
tools/bin/pip install -q cmake ninja
PATH=$work/tools/bin:$PATH
pip download -q --no-deps --no-binary adios2 "adios2>=2.9,<3" -d .
tar xzf adios2-*.tar.gz
cd build
cmake -G Ninja ../adios2-*/ -DCMAKE_BUILD_TYPE=Release \
  -DCMAKE_INSTALL_PREFIX="$cache/adios2" -DCMAKE_INSTALL_LIBDIR=lib \
  -DMPI_C_COMPILER=mpicc.openmpi -DMPI_CXX_COMPILER=mpicxx.openmpi -DADIOS2_USE_MPI=ON \
  -DADIOS2_USE_Fortran=OFF -DADIOS2_USE_Python=OFF -DADIOS2_USE_SST=OFF -DADIOS2_USE_HDF5=OFF \
  -DADIOS2_USE_ZeroMQ=OFF -DADIOS2_USE_Campaign=OFF -DADIOS2_USE_DataMan=OFF \
  -DADIOS2_USE_Profiling=OFF -DADIOS2_BUILD_EXAMPLES=OFF -DBUILD_TESTING=OFF
ninja
DESTDIR=$work/installed ninja install
rm -rf "$cache/adios2"
mv "$work/installed$cache/adios2" "$cache/adios2"
