"""Conan 2 recipe: the libraries of kolo, from the source tree that contains this file.

    conan create cmake -s compiler.cppstd=20                                # fmt from Conan
    conan create cmake -s compiler.cppstd=20 -o "kolo/*:system_fmt=True"    # fmt's headers of the system

kolo uses fmt's headers only, and only while it is built: a user of the package needs no fmt. The package contains kolo's own
CMake files, so find_package(kolo) defines the same targets as in any other installation.
"""

import re
from pathlib import Path

from conan import ConanFile
from conan.tools.build import check_min_cppstd
from conan.tools.cmake import CMake, CMakeToolchain, cmake_layout
from conan.tools.files import copy

SOURCES = ("CMakeLists.txt", "README.md", "LICENSE", "cmake/*", "collectives/*", "transports/*")
DOCUMENTS = ("bench/README.md", "tensor/README.md", "test/README.md", "train/*.md")  # installed with the libraries


class Kolo(ConanFile):
    name = "kolo"
    description = "Collectives over swappable transports"
    license = "BSD-3-Clause"
    settings = "os", "arch", "compiler", "build_type"
    options = {"system_fmt": [True, False]}
    default_options = {"system_fmt": False, "fmt/*:header_only": True}
    test_package_folder = "../test/packaging/consumer"

    def set_version(self):
        text = (Path(self.recipe_folder).parent / "CMakeLists.txt").read_text(encoding="utf-8")
        self.version = re.search(r"project\(kolo VERSION ([0-9.]+)", text)[1]

    def export_sources(self):
        for pattern in SOURCES + DOCUMENTS:
            copy(self, pattern, Path(self.recipe_folder).parent, self.export_sources_folder)

    def layout(self):
        self.folders.root = ".."
        cmake_layout(self)

    def validate(self):
        check_min_cppstd(self, 20)

    def requirements(self):
        if not self.options.system_fmt:
            self.requires("fmt/[>=9 <12]", visible=False, libs=False)

    def generate(self):
        toolchain = CMakeToolchain(self)
        toolchain.user_presets_path = False
        for part in ("BUILD_TESTS", "BUILD_BENCH", "BUILD_TRAIN", "CUDA"):
            toolchain.cache_variables[f"KOLO_{part}"] = False
        # Conan passes the folder of its fmt's headers; a package of the system must not come before them.
        toolchain.cache_variables["CMAKE_DISABLE_FIND_PACKAGE_fmt"] = not self.options.system_fmt
        toolchain.generate()

    def build(self):
        cmake = CMake(self)
        cmake.configure()
        cmake.build()

    def package(self):
        CMake(self).install()
        copy(self, "LICENSE", self.source_folder, Path(self.package_folder) / "licenses")

    def package_info(self):
        self.cpp_info.set_property("cmake_find_mode", "none")
        self.cpp_info.builddirs = ["lib/cmake/kolo"]
        self.cpp_info.includedirs = ["include/kolo"]
        self.cpp_info.libs = ["kolo"]  # libkolo.so; CMake projects link any target of the package
