"""rlock for Conan 2.

By default hiredis, libuuid and OpenSSL come from ConanCenter; with the option
dependencies=system those of the machine are used. conandata.yml says where the
tarball of a version is (src/packaging/release.sh makes it); test.sh writes one.
"""

import os

from conan import ConanFile
from conan.tools.cmake import CMake, CMakeDeps, CMakeToolchain, cmake_layout
from conan.tools.files import copy, get, rmdir
from conan.tools.system.package_manager import Apk, Apt, Dnf


class Rlock(ConanFile):
    name = "rlock"
    description = "A distributed, re-entrant lock on Redis"
    license = "MIT"
    topics = ("redis", "lock", "mutex", "distributed")
    package_type = "library"
    settings = "os", "arch", "compiler", "build_type"
    options = {
        "shared": [True, False],
        "fPIC": [True, False],
        "tls": [True, False],
        "dependencies": ["conan", "system"],
    }
    default_options = {
        "shared": True,
        "fPIC": True,
        "tls": True,
        "dependencies": "conan",
    }
    implements = ["auto_shared_fpic"]
    languages = "C"

    def layout(self):
        cmake_layout(self, src_folder="src")

    def requirements(self):
        if self.options.dependencies == "conan":
            self.requires("hiredis/1.2.0")
            self.requires("util-linux-libuuid/2.39.2")
            if self.options.tls:
                self.requires("openssl/[>=1.1.1 <4]")

    def system_requirements(self):
        if self.options.dependencies == "system":
            Apt(self).install(["libhiredis-dev", "uuid-dev", "libssl-dev"])
            Dnf(self).install(["hiredis-devel", "libuuid-devel", "openssl-devel"])
            Apk(self).install(["hiredis-dev", "util-linux-dev", "openssl-dev"])

    def source(self):
        get(self, **self.conan_data["sources"][self.version], strip_root=True)

    def generate(self):
        toolchain = CMakeToolchain(self)
        toolchain.variables["RLOCK_TLS"] = "ON" if self.options.tls else "OFF"
        toolchain.generate()
        CMakeDeps(self).generate()

    def build(self):
        cmake = CMake(self)
        cmake.configure()
        cmake.build()

    def package(self):
        copy(self, "LICENSE", self.source_folder, os.path.join(self.package_folder, "licenses"))
        CMake(self).install()
        # Conan writes files of its own for CMake and pkg-config.
        for folder in ("lib/cmake", "lib/pkgconfig", "share/doc"):
            rmdir(self, os.path.join(self.package_folder, folder))

    def package_info(self):
        self.cpp_info.libs = ["rlock"]
        self.cpp_info.set_property("cmake_file_name", "rlock")
        self.cpp_info.set_property("cmake_target_name", "rlock::rlock")
        self.cpp_info.set_property("pkg_config_name", "rlock")
        self.cpp_info.system_libs = ["pthread"]
        if self.options.dependencies == "system":
            self.cpp_info.system_libs += ["hiredis", "uuid"]
            if self.options.tls:
                self.cpp_info.system_libs += ["ssl", "crypto"]
