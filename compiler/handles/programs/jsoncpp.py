# SPDX-License-Identifier: MIT
"""jsoncpp 1.9.5 of Debian's source, C++, unchanged: its shared library and its own tests, plain, at home and in stress mode.
A value holds its members in a std::map whose keys and texts are strings; errors are exceptions."""

import re
import sys

import handled
from handled import program

SOURCE = ("pool/main/libj/libjsoncpp/libjsoncpp_1.9.5.orig.tar.gz",
          "f409856e5920c18d0c2fb85276e24ee607d2a09b5e7d5f0a371368903c275da2")


def passed(folder, source, environment):
    own = program.run([folder / "bin/jsoncpp_test"], environment=environment).stdout
    documents = program.run([sys.executable, source / "test/runjsontests.py", folder / "bin/jsontestrunner_exe", source / "test/data"],
                            environment=environment).stdout
    return tuple(int(re.search(r"All (\d+) tests passed", said)[1]) for said in (own, documents))


def main():
    options = handled.arguments(__doc__)
    source = options.out / "source"
    program.unpack(program.source_package(options, *SOURCE), source)
    folders = {name: handled.built_by_cmake(options, name, source, "-DJSONCPP_WITH_POST_BUILD_UNITTEST=OFF")
               for name in handled.compilers(options)}
    ways = {"plain": ("plain", {}), "home": ("handles", {}), "stress": ("handles", {"OBASE_HANDLES_STRESS": "100"})}
    wanted = None
    for way, (name, environment) in ways.items():
        got = passed(folders[name], source, environment)
        print(f"jsoncpp, {way}: {got[0]} tests and {got[1]} documents")
        wanted = wanted or got
        if got != wanted:
            sys.exit("with handles other tests than plain")


if __name__ == "__main__":
    main()
