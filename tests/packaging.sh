#!/bin/sh
# packaging.sh
#
# What the recipes of package managers name is what there is: this version, and
# options of CMake that the build knows; and what it breaks is told.
set -eu

cd "$(dirname "$0")/.."
part() {
    sed -n "s/^#define RLOCK_VERSION_$1 //p" include/rlock/base.h
}
version=$(part MAJOR).$(part MINOR).$(part PATCH)
status=0
complain() {
    echo "packaging.sh: $1"
    status=1
}

grep -q "\"version\": \"$version\"" src/packaging/vcpkg/rlock/vcpkg.json ||
    complain "vcpkg.json is not of $version"
grep -qx "Version: *$version" src/packaging/rpm/rlock.spec ||
    complain "rlock.spec is not of $version"
grep -qx "pkgver=$version" src/packaging/alpine/APKBUILD ||
    complain "APKBUILD is not of $version"
grep -qx "## $version" CHANGELOG.md || complain "CHANGELOG.md has no $version"
grep -qx "### Upgrading to $(part MAJOR).$(part MINOR)" CHANGELOG.md ||
    complain "CHANGELOG.md does not say what breaks"
grep -q "rlock $(part MAJOR)\.$(part MINOR) REQUIRED" src/doc/building.md ||
    complain "building.md is of another version"
grep -q "librlock\.so\.$(part MAJOR)\.$(part MINOR)\`" README.md ||
    complain "README.md has another soname"

options=$(grep -oh 'RLOCK_[A-Z]*[A-Z]_*[A-Z]*' src/packaging/vcpkg/rlock/portfile.cmake \
    src/packaging/conan/conanfile.py src/packaging/rpm/rlock.spec \
    src/packaging/alpine/APKBUILD | grep -v TARBALL | sort -u)
[ -n "$options" ] || complain "no recipe names an option"
for option in $options; do
    grep -rq "\(option(\|set(\|find_program(\)$option " CMakeLists.txt src/cmake ||
        complain "there is no option $option"
done
exit $status
