# PnetCDF's source package and its test programs: obtained, built, listed and run. Sourced by the
# scripts beside this file; `mpi` is openmpi or mpich.
#
# Nothing of it is in this repository: it comes from Debian, through the sources that this machine
# has, into a cache outside of it. Exit code 77 says that something is missing here.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
root=$(cd "$here/../.." && pwd)
cache=${XDG_CACHE_HOME:-$HOME/.cache}/esker/pnetcdf-programs
version=1.12.3
limit=${ESKER_PNETCDF_LIMIT:-120}

say() { printf '%s\n' "$*" >&2; }
skip() { say "SKIPPED, PnetCDF's own programs were NOT run: $*"; exit 77; }

# How programs of an MPI are started, and where they were built.
with_mpi() {
  mpi=$1
  built=$cache/programs-$mpi
  case $mpi in
    openmpi)
      launch=(mpiexec.openmpi --allow-run-as-root --oversubscribe --bind-to none --mca mpi_yield_when_idle 1) ;;
    mpich) launch=(mpiexec.mpich); yielding ;;
    *) say "the MPIs are openmpi and mpich"; exit 2 ;;
  esac
  for tool in "mpicc.$mpi" "mpiexec.$mpi"; do
    command -v "$tool" >/dev/null || skip "$tool is not installed"
  done
}

# MPICH's ranks never give up a core while they wait, and with more ranks than cores a run takes many times as
# long: a small library that is loaded first makes them yield, as OpenMPI's do.
yielding() {
  local library source=$root/crates/esker-bench/peers/mpich-yield.c
  mkdir -p "$cache"
  # Its name has what it is made of: another checkout may have another one.
  library=$cache/mpich-yield-$(cksum <"$source" | cut -d" " -f1).so
  if [ ! -e "$library" ]; then
    mpicc.mpich -shared -fPIC -O1 -o "$library.$$" "$source" -ldl &&
      mv "$library.$$" "$library" || return 0
  fi
  launch+=(-genv LD_PRELOAD "$library")
}

# The package, without touching the machine's own list of sources.
obtain() {
  mkdir -p "$cache/apt/lists/partial" "$cache/apt/cache/archives/partial" "$cache/apt/parts"
  cd "$cache"
  # The machine's own sources, with source packages in place of binary ones.
  local list
  for list in /etc/apt/sources.list /etc/apt/sources.list.d/*.list; do
    [ ! -f "$list" ] || sed -n 's/^deb /deb-src /p' "$list"
  done >apt/sources.list
  for list in /etc/apt/sources.list.d/*.sources; do
    [ ! -f "$list" ] || sed 's/^Types:.*/Types: deb-src/' "$list" >"apt/parts/${list##*/}"
  done
  local options=(-o "Dir::Etc::sourcelist=$cache/apt/sources.list" -o "Dir::Etc::sourceparts=$cache/apt/parts"
    -o "Dir::State::lists=$cache/apt/lists" -o "Dir::Cache=$cache/apt/cache")
  timeout 180 apt-get "${options[@]}" update -qq &&
    timeout 120 apt-get "${options[@]}" source -qq --download-only pnetcdf &&
    tar xf pnetcdf_$version.orig.tar.xz
}

# Makes the programs of each folder that is named; what is built stays in the cache.
build() {
  local tool folder
  mkdir -p "$cache"
  exec 9>"$cache/lock"
  flock 9
  for tool in autoreconf libtoolize m4 make; do
    command -v $tool >/dev/null || skip "$tool is needed to build them"
  done
  if [ ! -d "$cache/pnetcdf-$version" ]; then
    say "== obtaining PnetCDF $version"
    command -v apt-get >/dev/null || skip "there is no apt-get to obtain PnetCDF's source package with"
    (obtain) >"$cache/obtain.log" 2>&1 ||
      skip "PnetCDF's source package cannot be obtained: $(tail -1 "$cache/obtain.log")"
  fi
  if [ ! -e "$built/library-done" ]; then
    say "== building PnetCDF $version with $mpi (half a minute)"
    (
      cd "$cache/pnetcdf-$version"
      [ -x configure ] || autoreconf -i
      mkdir -p "$built"
      cd "$built"
      "../pnetcdf-$version/configure" --enable-shared --disable-static --disable-fortran --disable-cxx \
        --disable-dependency-tracking "MPICC=mpicc.$mpi" CFLAGS="-O0 -g"
      make -j2 -C src
      make -j2 -C test/common check TESTS=
      touch library-done
    ) >"$built.log" 2>&1 || { tail -5 "$built.log" >&2; say "PnetCDF cannot be built (see $built.log)"; exit 1; }
  fi
  for folder in "$@"; do
    [ ! -e "$built/$folder-done" ] || continue
    say "== building PnetCDF's programs: $folder"
    # What cannot be built is missed later, when it is looked for in the table.
    case $folder in
      largefile) make -j2 -C "$built/test/$folder" -k large_files high_dim_var large_var large_coalesce \
        large_dims_vars_attrs tst_cdf5_begin ;;
      examples | benchmarks) make -j2 -C "$built/$folder/C" -k check TESTS= ;;
      *) make -j2 -C "$built/test/$folder" -k check TESTS= ;;
    esac >>"$built.log" 2>&1 || true
    touch "$built/$folder-done"
  done
  exec 9>&-
}

# Our library under every name that a program may look for, in a folder of its own, so that a
# build in the meantime does not change it. ESKER_PNETCDF_PROFILE chooses cargo's profile.
library() {
  local lib profile=${ESKER_PNETCDF_PROFILE:-test} folder
  # Said here: where this is called, the shell goes on after a failure, with the library of before.
  (cd "$root" && cargo build -q --profile "$profile" -p esker-capi) ||
    { say "our library cannot be built"; exit 1; }
  folder=$profile
  case $profile in dev | test) folder=debug ;; esac
  lib=$(mktemp -d "$cache/ours.XXXXXX")
  cp "${CARGO_TARGET_DIR:-$root/target}/$folder/libpnetcdf.so" "$lib/libpnetcdf.so"
  for name in libpnetcdf.so.0d libpnetcdf.so.4 libpnetcdf.so.7 libpnetcdf.so.8; do
    ln -s libpnetcdf.so "$lib/$name"
  done
  printf '%s' "$lib"
}

# Where the programs of a folder are.
folder_of() {
  case $1 in
    examples | benchmarks) echo "$built/$1/C/.libs" ;;
    *) echo "$built/test/$1/.libs" ;;
  esac
}

# The programs of these folders, with the arguments that their own scripts give. FILE is an output
# file, DIR a folder for output, IN/ the folder of the sources.
programs() {
  local folder program
  for folder in "$@"; do
    for program in "$(folder_of "$folder")"/*; do
      [ -f "$program" ] && [ -x "$program" ] || continue
      program=$(basename "$program")
      case $folder/$program in
        *.so* | */lt-*) ;;
        C/pres_temp_4D_rd) ;; # runs after the one that writes
        C/pres_temp_4D_wr) echo "C/pres_temp_4D FILE" ;;
        nc_test/nc_test)
          echo "$folder/nc_test:1 -d DIR"
          echo "$folder/nc_test:2 -2 -d DIR"
          echo "$folder/nc_test:5 -5 -d DIR"
          ;;
        cdf_format/test_inq_format) echo "$folder/$program IN/test/cdf_format" ;;
        cdf_format/tst_open_cdf5) echo "$folder/$program IN/test/cdf_format/bad_begin.nc5" ;;
        cdf_format/tst_corrupt) echo "$folder/$program IN/test/cdf_format" ;;
        examples/get_vara) ;; # runs after put_vara
        examples/* | benchmarks/*) echo "$folder/$program -q FILE" ;;
        *) echo "$folder/$program FILE" ;;
      esac
    done
  done
}

# Whether a program is meant for so many ranks.
meant_for() {
  # It wants NC_ERANGE late, from the flush; ours comes from the put.
  [ -n "$burst" ] && [ "$1" = testcases/test_erange ] && return 1
  case $2/$1 in
    # It refuses one rank.
    1/header/*) return 1 ;;
    # On several ranks these do not end on PnetCDF's own library either (measured: 4 ranks, 60 s);
    # its makefiles run them on one.
    [2-9]*/nc_test/nc_test:* | [2-9]*/nc_test/tst_misc) return 1 ;;
    # Its makefiles run these on 1 and 4 ranks: gigabytes for each rank.
    [235-9]*/largefile/*) return 1 ;;
  esac
}

# One program on so many ranks with the library in that folder; prints pass, or fail and why.
# `wrapper` is what stands before the program, as valgrind. With `burst` it has a burst buffer, by the
# environment alone; PnetCDF's own scripts run the programs of burst_buffer so. `keep` is a folder that gets what
# the program has made, `with_hints` more hints for PNETCDF_HINTS.
wrapper=()
burst=
keep=
with_hints=
one() {
  local name=$1 n=$2 lib=$3
  shift 3
  local folder=${name%%/*} program=${name#*/} out work
  program=${program%%:*}
  work=$(mktemp -d "$cache/work.XXXXXX")
  local arguments=() word
  for word in "$@"; do
    word=${word/#FILE/$work/out.nc}
    word=${word/#DIR/$work}
    arguments+=("${word/#IN\//$cache/pnetcdf-$version/}")
  done
  local hints=() text=$with_hints
  if [ -n "$burst" ] || [ "$folder" = burst_buffer ]; then
    text="nc_burst_buf=enable;nc_burst_buf_dirname=$work/bb;nc_burst_buf_overwrite=enable${text:+;$text}"
  fi
  [ -z "$text" ] || hints=("PNETCDF_HINTS=$text")
  local start=(timeout -k 5 "$limit" "${launch[@]}" -n "$n" env "LD_LIBRARY_PATH=$lib"
    PNETCDF_SAFE_MODE="${PNETCDF_SAFE_MODE:-0}" "${hints[@]}" "${wrapper[@]}")
  local binary code=0
  binary=$(folder_of "$folder")/$program
  if [ "$program" = pres_temp_4D ]; then
    out=$(cd "$work" && "${start[@]}" "${binary}_wr" "${arguments[@]}" 2>&1 &&
      "${start[@]}" "${binary}_rd" "${arguments[@]}" 2>&1) || code=$?
  elif [ "$program" = put_vara ]; then
    out=$(cd "$work" && "${start[@]}" "$binary" "${arguments[@]}" 2>&1 &&
      "${start[@]}" "${binary/put_vara/get_vara}" "${arguments[@]}" 2>&1) || code=$?
  else
    out=$(cd "$work" && "${start[@]}" "$binary" "${arguments[@]}" 2>&1) || code=$?
  fi
  local verdict=pass
  if [ $code = 124 ] || [ $code = 137 ]; then
    verdict="fail: no end after $limit s"
  elif [ $code != 0 ]; then
    verdict="fail: exit $code: $(printf '%s' "$out" | tr -d '\000' | grep -aiE 'error|fail|expect|panicked|assert' | head -1 | cut -c1-150)"
  elif printf '%s' "$out" | grep -qa 'fail with\|FAIL'; then
    verdict="fail: $(printf '%s' "$out" | grep -a -m1 'rror' | cut -c1-150)"
  else
    local file
    for file in "$work"/out.nc*; do
      [ -f "$file" ] || continue
      ncvalidator -q "$file" >/dev/null 2>&1 || verdict="fail: ncvalidator: $(basename "$file")"
    done
  fi
  [ -z "${ESKER_PNETCDF_SHOW:-}" ] || printf '%s\n' "$out" >&2
  [ -z "$keep" ] || cp -r "$work/." "$keep"
  rm -rf "$work"
  printf '%s' "$verdict"
}
