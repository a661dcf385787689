#!/bin/sh
# Builds PnetCDF with its burst buffer, which Debian's package leaves out, from Debian's source
# package and for OpenMPI, like the package.
#
#   sh pnetcdf-bb.sh CACHE     makes CACHE/pnetcdf-bb/include and CACHE/pnetcdf-bb/lib
#
# tests/pnetcdf/run keeps the source in the same place.
set -eu
cache=$1
version=1.12.3
source=$cache/pnetcdf-src
for tool in mpicc.openmpi autoreconf m4 make; do
  command -v $tool >/dev/null || { echo "$tool is needed to build PnetCDF" >&2; exit 1; }
done

# The package, without touching the machine's own list of sources.
if [ ! -d "$source/pnetcdf-$version" ]; then
  mkdir -p "$source/apt/lists/partial" "$source/apt/cache/archives/partial" "$source/apt/parts"
  cd "$source"
  for list in /etc/apt/sources.list /etc/apt/sources.list.d/*.list; do
    if [ -f "$list" ]; then sed -n 's/^deb /deb-src /p' "$list"; fi
  done >apt/sources.list
  for list in /etc/apt/sources.list.d/*.sources; do
    if [ -f "$list" ]; then sed 's/^Types:.*/Types: deb-src/' "$list" >"apt/parts/${list##*/}"; fi
  done
  set -- -o "Dir::Etc::sourcelist=$source/apt/sources.list" \
    -o "Dir::Etc::sourceparts=$source/apt/parts" -o "Dir::State::lists=$source/apt/lists" \
    -o "Dir::Cache=$source/apt/cache"
  apt-get "$@" update -qq
  apt-get "$@" source -qq --download-only pnetcdf
  tar xf pnetcdf_$version.orig.tar.xz
fi
cd "$source/pnetcdf-$version"
[ -x configure ] || autoreconf -i

# Built beside, and moved in place when it is whole.
build=$cache/pnetcdf-bb.$$
trap 'rm -rf "$build"' EXIT
mkdir -p "$build/make"
cd "$build/make"
"$source/pnetcdf-$version/configure" --prefix="$cache/pnetcdf-bb" --enable-burst-buffering \
  --enable-shared --disable-static --disable-fortran --disable-cxx MPICC=mpicc.openmpi CFLAGS=-O2
make -j2 -C src
make -C src install DESTDIR="$build/installed"
rm -rf "$cache/pnetcdf-bb"
mv "$build/installed$cache/pnetcdf-bb" "$cache/pnetcdf-bb"
