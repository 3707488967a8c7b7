#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Makes the samples with obase, by the plugins or the rewriter, and runs them while the collector is forced.

Each with each compiler, and each --variant, which is the flags separated by commas: a level, link-time
optimization, instructions of this machine, sanitizers. What a sample prints must be what the same source
prints as a plain program, and objects must have moved (differential.py).

With --mixed also whether a program whose translation units are of two protocols is refused: when it
starts, and with -flto when it is linked.

Prints a line per sample and run, and exits with 1 if one is wrong.
"""

import pathlib
import re
import sys

sys.dont_write_bytecode = True
import differential  # noqa: E402

# What a sanitizer finds ends the program. ASan: the runtime's mappings are not leaks.
SANITIZERS = {"ASAN_OPTIONS": "detect_leaks=0", "UBSAN_OPTIONS": "halt_on_error=1",
              "TSAN_OPTIONS": "halt_on_error=1"}


def mixing_is_refused(options):
    """Makes a program of two translation units of different protocols, without and with -flto."""
    refused = True
    clang = options.compiler[0]
    for way, lto in [("at the start", []), ("by the linker", ["-flto"])]:
        objects = []
        for protocol, code in [("arming", "#include <stdlib.h>\nvoid drop(void* p) { free(p); }\n"),
                               ("atc", "#include <stdlib.h>\nvoid drop(void*);\n"
                                       "int main(void) { drop(0); free(0); return 0; }\n")]:
            source = options.out / f"unit_of_{protocol}.c"
            source.write_text(code)
            objects.append(str(source.with_suffix(".o")))
            differential.made([clang, "-xc", "-O1", *lto, *differential.instrumented(options, protocol),
                               "-c", str(source), "-o", objects[-1]])
        program = str(options.out / "mixed")
        linked = differential.run([clang, *lto, *objects, options.runtime, "-o", program])
        refusal = linked
        expected = r"'obase.protocol': IDs have conflicting values"
        if not lto and linked.returncode == 0:
            refusal = differential.run([program])
            expected = r"compiled with --obase-protocol=(arming|atc), and '.*unit_of_"
        right = refusal.returncode == 1 and re.search(expected, refusal.stderr)
        refused = refused and bool(right)
        said = f"{refusal.returncode}: {linked.stderr}{refusal.stderr}"
        print(f"two protocols in one program, refused {way}: {'yes' if right else said}", flush=True)
    return refused


def main():
    parser = differential.parser("Runs the samples of the compiler.")
    parser.add_argument("--variant", action="append", required=True, metavar="FLAG,FLAG...",
                        help="may be given more than once")
    parser.add_argument("--mixed", action="store_true", help="needs --plugin")
    parser.add_argument("samples", nargs="*", help="names of samples; without, all")
    options = parser.parse_args()
    if options.mixed and not options.plugin:
        parser.error("--mixed needs --plugin")
    sources = {s.stem: s for s in sorted(differential.SAMPLES.iterdir())
               if s.suffix in [".c", ".cpp"] and s.stem != "forcing"}
    for name in options.samples:
        if name not in sources:
            parser.error(f"there is no sample '{name}', only {', '.join(sources)}")
    at = differential.workplace(options)
    at.rewrite([sources[name] for name in options.samples or sources])
    good = not options.mixed or mixing_is_refused(options)
    for name in options.samples or sources:
        for compiler in options.compiler:
            for flags in [variant.split(",") for variant in options.variant]:
                program = ".".join([name, pathlib.Path(compiler).name, *flags]).replace("=", "_")
                good &= differential.report(
                    f"{name}, {pathlib.Path(compiler).name} {' '.join(flags)},",
                    at.differs(sources[name], program, flags, SANITIZERS, compiler))
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
