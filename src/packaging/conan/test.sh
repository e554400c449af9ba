#!/usr/bin/env bash
# test.sh TARBALL
#
# Builds the package of a release's tarball with Conan from PyPI, shared and static,
# against the libraries of this machine, and a program with it. ConanCenter is not
# asked: with its libraries the recipe has not been tried.
set -eu -o pipefail

tarball=$(realpath "$1")
here=$(cd "$(dirname "$0")" && pwd)
work=$(mktemp -d "${TMPDIR:-/tmp}/rlock.XXXXXX")
trap 'rm -rf "$work"' EXIT
trap 'exit 143' HUP INT TERM

"$here/../../../tests/deps.sh" build
"$here/../../../tests/deps.sh" python
python3 -m venv "$work/venv"
"$work/venv/bin/pip" install --quiet --disable-pip-version-check 'conan>=2.4,<3'
export CONAN_HOME=$work/home
conan() {
    "$work/venv/bin/conan" "$@" 2>>"$work/log" || {
        tail -n 40 "$work/log" >&2
        exit 1
    }
}
conan profile detect >/dev/null

version=$(basename "$tarball" .tar.gz)
version=${version#rlock-}
cp -R "$here" "$work/recipe"
cat >"$work/recipe/conandata.yml" <<END
sources:
  "$version":
    url: "file://$tarball"
    sha256: "$(sha256sum "$tarball" | cut -d ' ' -f 1)"
END
for shared in True False; do
    conan create "$work/recipe" --version="$version" --no-remote \
        -o 'rlock/*:dependencies=system' -o "rlock/*:shared=$shared" \
        -c tools.build:jobs="$(nproc)"
    echo "ok - shared=$shared"
done
