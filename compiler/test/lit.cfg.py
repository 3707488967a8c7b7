# SPDX-License-Identifier: MIT
"""lit: how the programs of this folder are run.

Each is one construct. RUN lines use

    %obase-clang, %obase-clang++   the drivers, as a user would call them, warnings as errors
    %accept, %refuse               compile the file, which must succeed, or fail; FileCheck then
    %accept++, %refuse++           compares the messages with the file's CHECK lines
    %filecheck
    %library                       libobase.a, built without sanitizers
    %rewrite                       obase-rewrite
    %plain-clang, %plain-gcc       a compiler without plugins, and the ++ of each, for its results

REQUIRES: passes marks what only the passes over LLVM's code decide; rewrite/ needs obase-rewrite.
"""

import os

import lit.formats

config.name = "obase-compiler"
config.test_format = lit.formats.ShTest(execute_external=False)
config.suffixes = [".c", ".cpp"]
config.test_source_root = os.path.dirname(__file__)
config.test_exec_root = config.obase_work
config.excludes = ["inputs", "package", "document"]

if config.obase_has_passes:
    config.available_features.add("passes")

if not config.obase_has_rewrite:
    config.excludes.append("rewrite")

WARNINGS = " -Wall -Wextra -Werror -Wno-unused -Wno-array-bounds"
INPUTS = os.path.join(config.test_source_root, "inputs")
c = os.path.join(config.obase_bin, "obase-clang") + " -std=gnu11" + WARNINGS
cxx = os.path.join(config.obase_bin, "obase-clang++") + " -std=c++20" + WARNINGS
OBJECT = " -O1 -c -I " + INPUTS + " %s -o %t.o"

PLAIN = WARNINGS + " -I " + config.obase_include
config.substitutions += [
    ("%library", os.path.join(config.obase_bin, os.pardir, "lib", "libobase.a")),
    ("%rewrite", os.path.join(config.obase_bin, "obase-rewrite")),
    ("%plain-clang[+][+]", config.obase_clangxx + " -std=c++20" + PLAIN),
    ("%plain-clang(?![+])", config.obase_clang + " -std=gnu11" + PLAIN),
    ("%plain-gcc[+][+]", "g++ -std=c++20" + PLAIN),
    ("%plain-gcc(?![+])", "gcc -std=gnu11" + PLAIN),
    ("%obase-clang[+][+]", cxx + " -I " + INPUTS),
    ("%obase-clang(?![+])", c + " -I " + INPUTS),
    ("%accept[+][+]", cxx + OBJECT),
    ("%accept", c + OBJECT),
    ("%refuse[+][+]", "not " + cxx + OBJECT + " 2>&1 | %filecheck %s"),
    ("%refuse", "not " + c + OBJECT + " 2>&1 | %filecheck %s"),
    ("%filecheck", config.obase_filecheck + " --implicit-check-not=error:"),
]
config.environment["PATH"] = os.pathsep.join(
    [os.path.dirname(os.path.realpath(config.obase_filecheck)), os.environ.get("PATH", "")])
