#!/usr/bin/env bash
# source.sh <package> <versions> <folder>: fetches the newest source of a package, of a version that the pattern describes, that
# Debian or Ubuntu publish: <folder>/<package>_<version>.orig.tar.*, its name in <folder>/tarball.
#
# Uses a private apt state directory: its own list of sources, its own package lists and cache. The system's
# sources and lists stay as they are. apt checks signatures with the distribution's own keyring, and every file against
# the signed index. The archive's address is the one that the system itself is configured with.
set -euo pipefail
. "$(dirname "$0")/lib.sh"
package=$1
versions=$2
dir=$3
mkdir -p "$dir"
have=$(cat "$dir/tarball" 2>/dev/null || true)
if [ -n "$have" ] && [ -r "$have" ]; then exit 0; fi
command -v apt-get >/dev/null 2>&1 || die "there is no apt to fetch the source of $package with"

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

download() {  # the newest that can be had
  local version tarball
  cd "$dir"
  for version in $(apt-cache "${private[@]}" showsrc "$package" | sed -nE "s/^Version: ($versions)\$/\1/p" | sort -ruV); do
    rm -rf fetch && mkdir fetch
    if (cd fetch && apt-get "${private[@]}" source --download-only "$package=$version"); then
      tarball=$(ls fetch/"$package"_*.orig.tar.* | grep -v '\.asc$' | head -n 1)
      mv -f "$tarball" .
      rm -rf fetch
      printf '%s\n' "$dir/$(basename "$tarball")" >tarball
      return 0
    fi
    echo "$package $version could not be fetched: trying the next older"
  done
  return 1
}

attempt() { lists "$@" && download; }
what="source of $package (a private apt state; the system's stays as it is)"

# Only suites that may have one; those that do not exist (yet, or any more) are passed over.
case " ${ID:-} ${ID_LIKE:-} " in
  *" ubuntu "*)
    if step "$package-source" "$what" attempt $keys/ubuntu-archive-keyring.gpg "$(archive)" "main universe" devel resolute questing plucky 2>/dev/null; then
      exit 0
    fi
    step "$package-debian" "Ubuntu's archive has none to offer: asking it for Debian's address and keys" debian_from_ubuntu &&
      step "$package-source" "$what" attempt "$dir/apt/other$keys/debian-archive-keyring.gpg" "$(cat "$dir/apt/other/base")" main sid forky trixie ||
      die "no source of $package could be fetched"
    ;;
  *" debian "*)
    step "$package-source" "$what" attempt $keys/debian-archive-keyring.gpg "$(archive)" main sid forky trixie ||
      die "no source of $package could be fetched"
    ;;
  *) die "the source of $package is fetched on Debian and Ubuntu only" ;;
esac
