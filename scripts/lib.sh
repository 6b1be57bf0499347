# Shared by the scripts of this directory and of checks/: where the checkout is, progress lines, a
# retry. Sourced, not run.
# shellcheck shell=bash

script=$(realpath "$0")
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
cd "$root" || exit 1

step() { printf '\033[1m%s\033[0m\n' "$*" >&2; }
if [[ ! -t 2 || -n ${NO_COLOR:-} ]]; then
  step() { printf '%s\n' "$*" >&2; }
fi

# With -h or --help a script prints the comment at its top.
if [[ ${1:-} == -h || ${1:-} == --help ]]; then
  sed -n '2,${/^#/!q;s/^# \{0,1\}//p}' "$script"
  exit 0
fi

# Prints an error in the program's format (error, where, what, fix) and exits with 4 (environment)
# or the given code.
fail() {
  printf 'error: %s\n  where: %s\n  what:  %s\n  fix:   %s\n' "$1" "$2" "$3" "$4" >&2
  exit "${5:-4}"
}

# Runs a command up to three times; for downloads.
retry() {
  local attempt
  for attempt in 1 2 3; do
    "$@" && return 0
    [[ $attempt == 3 ]] ||
      { echo "attempt $attempt of 3 failed: $*; trying again" >&2; sleep $((attempt * 3)); }
  done
  return 1
}

# The release of torch in .venv.
own_torch() {
  sed -n "s/^__version__ = '\([0-9.]*\).*'/\1/p" \
    .venv/lib/python3*/site-packages/torch/version.py
}

# Parallel jobs: one per core, but at most one per 1.5 GB of free memory (a torch file takes about 1
# GB to compile).
num_jobs() {
  local cores available_kb by_memory
  cores=$(nproc)
  available_kb=$(awk '/^MemAvailable:/ {print $2}' /proc/meminfo)
  by_memory=$((available_kb / 1572864))
  ((by_memory >= 1)) || by_memory=1
  echo $((cores < by_memory ? cores : by_memory))
}
