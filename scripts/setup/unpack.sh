#!/usr/bin/env bash
# unpack.sh <folder> <package...>: fetches Debian's or Ubuntu's packages and unpacks them under <folder>. Nothing is installed, no
# root is needed, nothing of the system changes: `pip install .` gets with it what PyPI has not (cmake/TidelaneWheel.cmake).
#
# apt checks what it fetches against the distribution's signed lists: the system's own, or where it has none, or old ones
# (container images), fresh ones under <folder>.
set -euo pipefail
folder=$1
shift
mkdir -p "$folder/debs" "$folder/lists/partial" "$folder/cache/archives/partial"
cd "$folder/debs"

options=(-o Acquire::Retries=3)
[ "$(id -u)" -ne 0 ] || options+=(-o APT::Sandbox::User=root)  # _apt may not enter a user's folder
own_lists=(
  -o "Dir::State::lists=$folder/lists" -o "Dir::Cache=$folder/cache" -o Dir::Etc::preferences=/dev/null
  -o APT::Update::Error-Mode=any -o APT::Update::Post-Invoke-Success::= -o APT::Update::Post-Invoke::=
)
fetched() {  # all of them at once: `download` stops at the first that is not there
  apt-get "${options[@]}" download "$@" && [ "$(find . -name '*.deb' | wc -l)" -ge $# ]
}

if ! fetched "$@"; then
  options+=("${own_lists[@]}")
  apt-get "${options[@]}" update
  fetched "$@"
fi
for package in *.deb; do dpkg-deb -x "$package" ..; done
