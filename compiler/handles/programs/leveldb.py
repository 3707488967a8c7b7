# SPDX-License-Identifier: MIT
"""leveldb 1.23 of Debian's source, C++, unchanged, with googletest and benchmark of Debian's sources, which its tests need and
which are compiled with handles, too: its own tests, plain, at home and in stress mode. Its tables, caches and versions are
objects, strings, sets and maps, which several threads use; its memory tables lie in arenas, small parts of which move."""

import sys

import handled
from handled import program

SOURCES = {
    ".": ("pool/main/l/leveldb/leveldb_1.23.orig.tar.gz", "9a37f8a6174f09bd622bc723b55881dc541cd50747cbd08831c2a82d620f6d76"),
    "third_party/googletest": ("pool/main/g/googletest/googletest_1.12.1.orig.tar.gz",
                               "81964fe578e9bd7c94dfdb09c8e4d6e6759e19967e397dbea48d1c10e45d0df2"),
    "third_party/benchmark": ("pool/main/b/benchmark/benchmark_1.7.1.orig.tar.gz",
                              "6430e4092653380d9dc4ccb45a1e2dc9259d581f4866dc0759713126056bc1d7"),
}
# Under stress without the one that fills databases of megabytes again and again.
UNDER_STRESS = ["-E", "^db_test$"]
# Fails now and then with clang alone, too: it expects that nothing is compacted meanwhile.
WITHOUT = {"GTEST_FILTER": "-DBTest.HiddenValuesAreRemoved"}


def main():
    options = handled.arguments(__doc__)
    source = options.out / "source"
    for folder, archive in SOURCES.items():
        program.unpack(program.source_package(options, *archive), source / folder)
    ways = {"plain": ("plain", {}, []), "home": ("handles", {}, []),
            "stress": ("handles", {"OBASE_HANDLES_STRESS": "2000"}, UNDER_STRESS)}
    folders = {name: handled.built_by_cmake(options, name, source, "-DLEVELDB_BUILD_BENCHMARKS=OFF")
               for name in handled.compilers(options)}
    passed = {}
    for way, (name, environment, chosen) in ways.items():
        # Databases have fixed names, and a lock.
        databases = options.out / "databases"
        databases.mkdir(exist_ok=True)
        passed[way] = handled.passed_by_ctest(folders[name], {**WITHOUT, "TEST_TMPDIR": str(databases), **environment}, *chosen)
        print(f"leveldb, {way}: {passed[way]} tests")
    if passed["home"] != passed["plain"] or min(passed.values()) == 0:
        sys.exit("with handles other tests than plain")


if __name__ == "__main__":
    main()
