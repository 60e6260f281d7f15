#!/usr/bin/env bash
# Fetches the sources of the newest HDF5 1.14 that Debian or Ubuntu publish: build/hdf5/source/hdf5_<version>.orig.tar.gz,
# its name in build/hdf5/source/tarball.
#
# Uses a private apt state directory: its own list of sources, its own package lists and cache. The system's
# sources and lists stay as they are. apt checks signatures with the distribution's own keyring, and every file against
# the signed index. The archive's address is the one that the system itself is configured with.
#
# HDF5_TARBALL=<file> uses a tarball that you have instead (machines without a network).
set -euo pipefail
. "$(dirname "$0")/lib.sh"
dir="$build/hdf5/source"
mkdir -p "$dir"
keep() { printf '%s\n' "$1" >"$dir/tarball"; exit 0; }

if [ -n "${HDF5_TARBALL:-}" ]; then
  [ -r "$HDF5_TARBALL" ] || die "HDF5_TARBALL=$HDF5_TARBALL cannot be read"
  keep "$(realpath "$HDF5_TARBALL")"
fi
have=$(cat "$dir/tarball" 2>/dev/null || true)
if [ -n "$have" ] && [ -r "$have" ]; then exit 0; fi

how="Set HDF5_ROOT to an HDF5 >= 1.14.1, or HDF5_TARBALL to the source of one"
command -v apt-get >/dev/null 2>&1 || die "no HDF5 >= 1.14.1 found, and no apt to fetch its source with. $how."

. /etc/os-release
keys=/usr/share/keyrings
mkdir -p "$dir/apt/state/lists/partial" "$dir/apt/cache/archives/partial" "$dir/apt/other"
: >"$dir/apt/status"
private=(
  -o "Dir::State=$dir/apt/state" -o "Dir::State::lists=$dir/apt/state/lists" -o "Dir::State::status=$dir/apt/status"
  -o "Dir::Cache=$dir/apt/cache" -o "Dir::Etc::sourcelist=$dir/apt/sources.list" -o Dir::Etc::sourceparts=/dev/null
  -o Dir::Etc::preferencesparts=/dev/null -o Dir::Etc::preferences=/dev/null -o APT::Get::List-Cleanup=false
  -o Acquire::Retries=3 -o APT::Update::Post-Invoke-Success::= -o APT::Update::Post-Invoke::=
)
[ "$(id -u)" -ne 0 ] || private+=(-o APT::Sandbox::User=root)  # _apt may not enter a user's folder

# The archive that serves this release itself, not its security or third-party ones.
archive() {
  local codename=${UBUNTU_CODENAME:-${VERSION_CODENAME:-}} targets
  targets=$(apt-get indextargets --format '$(RELEASE)|$(COMPONENT)|$(REPO_URI)' 'Created-By: Packages')
  { grep -E "^$codename\|main\|" <<<"$targets" || grep -E '\|main\|' <<<"$targets" | grep -v security; } |
    head -n 1 | cut -d'|' -f3
}

# Debian's address and keys as Ubuntu itself vouches for them: both are files of packages in Ubuntu's archive, unpacked
# here and not installed. The keyring is the newest release's, because an old one does not know Debian's present keys.
debian_from_ubuntu() {
  cd "$dir/apt/other"
  printf 'deb [signed-by=%s] %s devel universe\n' "$keys/ubuntu-archive-keyring.gpg" "$(archive)" >"$dir/apt/sources.list"
  apt-get "${private[@]}" -o APT::Update::Error-Mode=any update || return 1
  apt-get "${private[@]}" download debian-archive-keyring && apt-get download python-apt-common || return 1
  local package
  for package in *.deb; do dpkg-deb -x "$package" . || return 1; done
  sed -nE 's/^BaseURI: *(.*)/\1/p' usr/share/python-apt/templates/Debian.info | head -n 1 >base
  [ -s base ] && [ -r ".$keys/debian-archive-keyring.gpg" ]
}

lists() {  # lists <keyring> <base> <components> <suites...>: one by one, one that is gone must not take the rest with it
  local keyring=$1 base=$2 components=$3 suite found=0
  shift 3
  [ -r "$keyring" ] && [ -n "$base" ] || { echo "keyring '$keyring' or archive '$base' is missing"; return 1; }
  rm -rf "$dir/apt/state/lists" && mkdir -p "$dir/apt/state/lists/partial"
  : >"$dir/apt/all.list"
  for suite in "$@"; do
    printf 'deb-src [signed-by=%s] %s %s %s\n' "$keyring" "$base" "$suite" "$components" >"$dir/apt/sources.list"
    if apt-get "${private[@]}" -o APT::Update::Error-Mode=any update; then
      cat "$dir/apt/sources.list" >>"$dir/apt/all.list"
      found=1
    fi
  done
  mv "$dir/apt/all.list" "$dir/apt/sources.list"
  [ "$found" = 1 ]
}

download() {  # the newest 1.14 that can be had
  local version tarball
  cd "$dir"
  for version in $(apt-cache "${private[@]}" showsrc hdf5 | sed -nE 's/^Version: (1\.14\.[1-9].*)/\1/p' | sort -ruV); do
    rm -rf fetch && mkdir fetch
    if (cd fetch && apt-get "${private[@]}" source --download-only "hdf5=$version"); then
      tarball=$(ls fetch/hdf5_*.orig.tar.* | grep -v '\.asc$' | head -n 1)
      mv -f "$tarball" .
      rm -rf fetch
      printf '%s\n' "$dir/$(basename "$tarball")" >tarball
      return 0
    fi
    echo "hdf5 $version could not be fetched: trying the next older"
  done
  return 1
}

attempt() { lists "$@" && download; }
what="source of HDF5 1.14 (a private apt state; the system's stays as it is)"

# Only suites that may have a 1.14; those that do not exist (yet, or any more) are passed over.
case " ${ID:-} ${ID_LIKE:-} " in
  *" ubuntu "*)
    if step hdf5-source "$what" attempt $keys/ubuntu-archive-keyring.gpg "$(archive)" "main universe" devel resolute questing plucky 2>/dev/null; then
      exit 0
    fi
    step hdf5-debian "Ubuntu's archive has none to offer: asking it for Debian's address and keys" debian_from_ubuntu &&
      step hdf5-source "$what" attempt "$dir/apt/other$keys/debian-archive-keyring.gpg" "$(cat "$dir/apt/other/base")" main sid forky trixie ||
      die "no source of HDF5 1.14 could be fetched. $how."
    ;;
  *" debian "*)
    step hdf5-source "$what" attempt $keys/debian-archive-keyring.gpg "$(archive)" main sid forky trixie ||
      die "no source of HDF5 1.14 could be fetched. $how."
    ;;
  *) die "no HDF5 >= 1.14.1 found, and this is neither Debian nor Ubuntu. $how." ;;
esac
