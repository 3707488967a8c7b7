# SPDX-License-Identifier: MIT
"""What the scripts of the programs share: building plain and with handles, running three ways, ratios.

A script is called as those of compiler/programs are, and takes from there what it needs of Debian's sources. With
--measure it prints time and instructions of the program with handles at home over those of clang -O3. With --describe
it writes how its programs are compiled, linked and run, which `obase bench handles` does (tools/handles/).
"""

import hashlib
import json
import os
import pathlib
import re
import shutil
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "programs"))
import program  # noqa: E402

# A move of everything costs as much as there are objects: not at every poll.
WAYS = {"home": {}, "stress": {"OBASE_HANDLES_STRESS": "2000"}, "stress, rarer": {"OBASE_HANDLES_STRESS": "100000"}}


# Of programs with OpenMP that are timed: what threads wait for each other is processor time, too.
ONE_THREAD = ["OMP_NUM_THREADS=1"]


# What instrumented code calls in their place. C++'s operators new are not here: with the allocator alone they give blocks of
# the size asked for.
MOVABLE = {name: f"obase_handles_{name}" for name in ("malloc", "calloc", "realloc", "reallocarray", "aligned_alloc", "posix_memalign",
                                                      "memalign", "strdup", "strndup", "malloc_usable_size", "free")}


def arguments(description):
    return program.arguments(description, lambda parser: parser.add_argument(
        "--describe", type=pathlib.Path, metavar="FILE",
        help="test nothing; write how the programs are compiled, linked and run, as JSON"))


def figures_object(options):
    """What writes the runtime's figures when the process ends; compiled without handles."""
    made = options.out / "figures.o"
    source = pathlib.Path(__file__).resolve().parent / "figures.c"
    program.run([options.clang, "-O2", f"-I{options.source / 'include'}", "-c", source, "-o", made])
    return made


def built(options, name, units, link, figures, figures_of_both=False):
    """How a program is compiled and linked: {"builds", "links", "linked"} of --describe's file. Of C++ if the first unit is."""
    for_language = compilers(options, pathlib.Path(units[0][0]).suffix in (".cc", ".cpp"))
    builds = {}
    for way, compiler in for_language.items():
        folder = options.out / f"objects-{way}" / name
        folder.mkdir(parents=True, exist_ok=True)
        objects = [folder / f"{pathlib.Path(source).stem}.o" for source, _ in units]
        builds[way] = {"objects": objects, "compile": [
            [*compiler, *flags, "-c", source, "-o", to] for (source, flags), to in zip(units, objects)]}
    linked = {build: options.out / f"{name}-{build}" for build in ("glibc", "same", "handles")}
    plain, handles = for_language.values()
    # The same objects with the allocator of handles, and with the functions of it that instrumented code calls, whose
    # blocks have room for the byte behind the end: what is left is what the pass made of the code. Nothing may move there.
    folder = options.out / "objects-same" / name
    folder.mkdir(parents=True, exist_ok=True)
    same = [folder / path.name for path in builds["plain"]["objects"]]
    links = [[*plain, *builds["plain"]["objects"], *link, "-o", linked["glibc"]],
             *(["objcopy", *(f"--redefine-sym={old}={new}" for old, new in MOVABLE.items()), path, to]
               for path, to in zip(builds["plain"]["objects"], same)),
             [*handles, *same, *([figures] if figures_of_both else []), *link, "-o", linked["same"]],
             [*handles, *builds["handles"]["objects"], figures, *link, "-o", linked["handles"]]]
    return {"builds": builds, "links": links, "linked": linked}


def describe(options, units, link, programs):
    """Writes --describe's file. `units`: (source, flags) of each; `link`: what follows the objects. `programs`: name, and
    lists of arguments: `time` is a run that takes about a second, `count` a shorter one (None: there is none), each of `checks`
    must print the same in all ways. Of what they print, the lines that begin with `answer` count."""
    write(options, {**built(options, options.out.name, units, link, figures_object(options)), "programs": programs})


def describe_each(options, programs, environment=(), figures_of_both=False):
    """As describe(), of programs that have `units` and a `link` of their own. `environment`: NAME=VALUE, of all of them.
    `figures_of_both`: what is linked with the allocator alone writes figures, too."""
    made = {way: {"objects": [], "compile": []} for way in ("plain", "handles")}
    links = []
    described = []
    figures = figures_object(options)
    for one in programs:
        its = dict(one)
        parts = built(options, its["name"], its.pop("units"), its.pop("link"), figures, figures_of_both)
        for way, build in parts["builds"].items():
            for what, values in build.items():
                made[way][what] += values
        links += parts["links"]
        described.append({**its, "linked": parts["linked"], "environment": list(environment)})
    write(options, {"builds": made, "links": links, "programs": described})


def given_folder(variable, holds):
    """The folder that an environment variable names; else the script ends as skipped."""
    named = os.environ.get(variable)
    if named is None:
        print(f"skipped: {variable} names no folder")
        sys.exit(program.SKIPPED)
    folder = pathlib.Path(named).resolve()
    if not (folder / holds).is_file():
        sys.exit(f"{variable}={named}: expected a folder with {holds}")
    return folder


def write(options, described):
    options.describe.write_text(json.dumps(described, indent=1, default=str) + "\n")


def fingerprint(options):
    """Changes with what obase-clang makes of a program, and links into it."""
    parts = [path for path in sorted((options.bin.parent / "lib").rglob("*"))
             if path.name in ("obase_handles_pass.so", "obase_handles_libc.o", "libobase_handles_cxx.a", "libobase_handles.a", "libobase.a")]
    return hashlib.sha256(b"".join(hashlib.sha256(path.read_bytes()).digest() for path in parts)).hexdigest()


def compilers(options, of_cxx=False):
    if not of_cxx:
        return {"plain": [options.clang], "handles": [options.bin / "obase-clang", "--handles"]}
    plain = re.sub(r"clang(?!.*clang)", "clang++", str(options.clang))
    if shutil.which(plain) is None:
        # LLVM's own folder has it without the version in its name.
        plain = str(pathlib.Path(plain).with_name("clang++"))
    return {"plain": [plain], "handles": [options.bin / "obase-clang++", "--handles"]}


def built_by_cmake(options, name, source, *definitions):
    """The program in `source`, unchanged, by clang or with handles; returns the folder of what was built."""
    compiler, *flags = compilers(options)[name]
    cxx = compilers(options, True)[name][0]
    folder = options.out / name
    shutil.rmtree(folder, ignore_errors=True)
    program.run(["cmake", "-S", source, "-B", folder, "-DCMAKE_BUILD_TYPE=Release", f"-DCMAKE_C_COMPILER={compiler}",
                 f"-DCMAKE_CXX_COMPILER={cxx}", *(f"-DCMAKE_{of}_FLAGS={' '.join(flags)}" for of in ("C", "CXX")),
                 *definitions])
    program.run(["cmake", "--build", folder, f"-j{os.cpu_count()}"])
    return folder


def passed_by_ctest(folder, environment, *chosen):
    """How many tests have passed; ends the script if one fails."""
    said = program.run(["ctest", "--output-on-failure", *chosen], where=folder, environment=environment, limit=7200).stdout
    return int(re.search(r"0 tests failed out of (\d+)", said)[1])


def compare(name, commands, filtered=lambda text: text):
    """Runs {way: (command, environment)}; ends the script if one prints something else than the first."""
    wanted = None
    for way, (command, environment) in commands.items():
        said = filtered(program.run(command, environment=environment).stdout)
        if wanted is None:
            wanted = said
        if said != wanted:
            sys.exit(f"{name}, {way}: printed\n{said[-2000:]}\nand not\n{wanted[-2000:]}")
        print(f"{name}, {way}: as clang's")


def instructions(command):
    valgrind = shutil.which("valgrind")
    if valgrind is None:
        return None
    said = program.run([valgrind, "--tool=callgrind", "--callgrind-out-file=/dev/null", *command]).stdout
    return int(re.search(r"Collected : (\d+)", said)[1])


def measure(name, plain, handles, counted_plain, counted_handles, pairs=9):
    """Time of interleaved pairs (median of ratios), and instructions of a smaller run."""
    ratios = []
    for _ in range(pairs):
        spent = []
        for command in (plain, handles):
            program.run(command)  # the file is warm
            begin = os.times()
            program.run(command)
            end = os.times()
            spent.append(end.children_user - begin.children_user)
        ratios.append(spent[1] / spent[0])
    ratios.sort()
    one, other = instructions(counted_plain), instructions(counted_handles)
    counted = "no valgrind here" if one is None else f"{other / one:.3f}"
    print(f"{name}: processor time {ratios[len(ratios) // 2]:.3f} ({ratios[0]:.3f} to {ratios[-1]:.3f}), instructions {counted}")
