// SPDX-License-Identifier: MIT
//
// obase::options: every setting of the runtime, one table row each.
//
// OBASE_OPTIONS below is the table. It generates the fields of `options`, the names and texts in
// option_rows(), the parser, the printout of OBASE_VERBOSE=1 and (compared by a test) the table in
// docs/options.md. A setting comes from the environment (`OBASE_` and the name in capitals), or
// from code by field or by set(); what is set later wins.
//
// Only settings of the runtime are here. Tools have command lines; tests use OBASE_TEST_*
// variables, which are ignored here.
//
// A malformed value in the environment never ends a host program: it gives one message and the
// previous value stays. A tool that parses a user's value calls set() and exits with status 2.
//
//     obase::options settings = obase::options::from_environment();
//     settings.window_seconds = 10;                                  // typed
//     std::string error = settings.set("cold_backing", "file:/mnt/nvme");  // as text, "" =
//     accepted
#pragma once

#include <obase/language.hpp>

#include <obase/export.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace obase {

// What the runtime may do. Each includes what the one before it does.
enum class run_mode : std::uint8_t {
    off,     // guides are plain unique pointers; nothing scans
    observe, // track temperature, move nothing, report what moving would save
    move,    // move objects between the heaps
    hint,    // and tell the kernel about the result
};

// How the cold threshold C_t answers a promotion rate above its target. All fall by one below it.
enum class controller_kind : std::uint8_t {
    additive,       // OBASE: one window more
    multiplicative, // HADES: controller_factor times as many windows
    fixed,          // never changes, for experiments
};

enum class option_origin : std::uint8_t { built_in, environment, code };

// The kinds of value a row may have: the type of its field, and how its text is read.
namespace option_kind {
struct mode {
    using type = run_mode;
};
struct controller {
    using type = controller_kind;
};
struct whole { // decimal integer
    using type = std::uint64_t;
};
struct real { // decimal, finite
    using type = double;
};
struct flag { // on|off, 1|0, true|false, yes|no
    using type = bool;
};
struct bytes { // integer with an optional suffix K, M, G or T (powers of 1024)
    using type = std::uint64_t;
};
struct backing { // anon | file:DIR
    using type = std::string;
};
struct memory { // none | BYTES | PERCENT% | cgroup
    using type = std::string;
};
struct name { // 1 to 32 of a-z, 0-9, - and _
    using type = std::string;
};
struct path { // of a file, or nothing
    using type = std::string;
};
} // namespace option_kind

// ROW(kind, name, default, unit, lowest, highest, help). The range is meant for kinds with numbers.
#define OBASE_OPTIONS(ROW)                                                                         \
    ROW(mode, mode, run_mode::move, "", 0, 0,                                                      \
        "what the runtime may do: off, observe (track only, report what moving would save), "      \
        "move, hint (move and advise the kernel); can be switched while running")                  \
    ROW(real, window_seconds, 120, "seconds", 1e-3, 1e6,                                           \
        "time between two scans, before time_scale")                                               \
    ROW(real, window_cpu_share, 0.02, "cores", 0, 1,                                               \
        "policy graded: where nearly all objects are touched in a window, windows are shorter "    \
        "than window_seconds, as long as the collector takes no more of a core than this; 0 = "    \
        "never shorter")                                                                           \
    ROW(real, time_scale, 1, "", 1e-3, 1e6,                                                        \
        "divides every time constant: the window and the minute of the promotion rate")            \
    ROW(name, policy, "papers", "", 0, 0,                                                          \
        "which policy decides where objects live: papers (NEW, HOT and COLD), graded (eight "      \
        "classes by touch rate)")                                                                  \
    ROW(name, backend, "kernel", "", 0, 0,                                                         \
        "which backend gets the hints of mode hint: kernel (madvise)")                             \
    ROW(whole, cold_threshold, 3, "windows", 1, 32,                                                \
        "first value of C_t: an object is demoted when untouched for more windows than this")      \
    ROW(controller, controller, controller_kind::additive, "", 0, 0,                               \
        "how C_t rises above the target: additive (OBASE), multiplicative (HADES), fixed")         \
    ROW(real, controller_factor, 2, "", 1, 32,                                                     \
        "what C_t is multiplied by when controller is multiplicative")                             \
    ROW(real, promotion_target, 0.01, "fraction per minute", 0, 1,                                 \
        "promotion rate the controller steers to: share of the working set's pages that are "      \
        "touched in COLD")                                                                         \
    ROW(real, stall_target, 0.005, "fraction", 0, 10,                                              \
        "policy graded: how long threads may wait for pages that left memory, as a share of the "  \
        "time for which they run")                                                                 \
    ROW(memory, memory, "cgroup", "", 0, 0,                                                        \
        "how much memory the process may take: none, bytes, a percentage of the limit or "         \
        "of the machine, or cgroup, .9 of the limit of the control group where there is "          \
        "one; in mode hint what is over it leaves, whatever it costs, and nothing while "          \
        "there is room; in modes move and hint no more leaves a file for memory than "             \
        "there is room for")                                                                       \
    ROW(flag, hint_cold, true, "", 0, 0,                                                           \
        "in mode hint: MADV_COLD on what was newly put into COLD")                                 \
    ROW(flag, hint_pageout, true, "", 0, 0,                                                        \
        "in mode hint: page COLD out after two windows below the target, suspended above it")      \
    ROW(flag, hint_hugepage, false, "", 0, 0,                                                      \
        "in mode hint: huge pages for HOT, by MADV_HUGEPAGE and MADV_COLLAPSE")                    \
    ROW(backing, cold_backing, "anon", "", 0, 0,                                                   \
        "where COLD lies: anon, or file:DIR for an unnamed file in that directory")                \
    ROW(backing, hot_backing, "anon", "", 0, 0,                                                    \
        "where HOT lies, likewise: a file system of fast memory (DAX), say")                       \
    ROW(bytes, cold_write_limit, 0, "bytes per second", 0, 1125899906842624.0,                     \
        "most that moving objects writes into the file under COLD, for the sake of its device; "   \
        "0 = no limit")                                                                            \
    ROW(bytes, heap_reserve, 0, "bytes", 0, 70368744177664.0,                                      \
        "address space reserved per heap, rounded up to a power of two; 0 = from the size of "     \
        "memory")                                                                                  \
    ROW(real, collector_cpu_share, 0.25, "cores", 1e-3, 1,                                         \
        "most processor time the collector takes, as a share of one core")                         \
    ROW(real, compaction_live_fraction, 0.75, "fraction", 0, 1,                                    \
        "runs of HOT and COLD with less live data than this are evacuated, and of denser ones "    \
        "as many as it takes that a tier's holes stay below .02 of its live bytes; 0 = never")     \
    ROW(real, move_in_flight, 0.02, "fraction", 0, 1,                                              \
        "share of the heaps' resident memory that emptying runs may keep twice, at least 1 MiB")   \
    ROW(flag, defer_promotion, true, "", 0, 0,                                                     \
        "while what is promoted to HOT dies young, leave touched objects in NEW where NEW is "     \
        "dense")                                                                                   \
    ROW(whole, history_windows, 1024, "windows", 1, 1048576, "how many windows the history keeps") \
    ROW(whole, stuck_scope_windows, 1, "windows", 1, 1000000,                                      \
        "a scope open for this many windows is reported with its thread and age")                  \
    ROW(flag, debug_rearm, false, "", 0, 0,                                                        \
        "arm every guide again when the scope that touched it ends, so that a missed decode "      \
        "faults at once (slow)")                                                                   \
    ROW(flag, poison_freed, false, "", 0, 0, "overwrite freed objects with a pattern (slow)")      \
    ROW(flag, check_frees, false, "", 0, 0,                                                        \
        "end the program at the first invalid free, also by an owner (slow); in builds with "      \
        "OBASE_DEBUG_CHECKS on unless it is set")                                                  \
    ROW(flag, check_units, true, "", 0, 0,                                                         \
        "in a program with marked pointers: name on stderr, before the first object moves, code "  \
        "that was compiled without obase-clang and calls functions on marked fields, where the "   \
        "link did not (docs/audit.md)")                                                            \
    ROW(flag, audit, false, "", 0, 0,                                                              \
        "show in a program with marked pointers, while its tests run, addresses that outlive "     \
        "their operation and objects with two owners (docs/audit.md; slow)")                       \
    ROW(flag, audit_strict, false, "", 0, 0,                                                       \
        "with audit: what is only suspected is an error, too")                                     \
    ROW(path, audit_known, "", "", 0, 0,                                                           \
        "with audit: a file of findings that are known to be fine")                                \
    ROW(path, audit_report, "", "", 0, 0,                                                          \
        "with audit: the file into which the report goes, as JSON, %p in its name being the "      \
        "process's number; without, it is printed at exit")                                        \
    ROW(flag, verbose, false, "", 0, 0,                                                            \
        "print the effective options, the build and the self-check at start")                      \
    ROW(flag, show_stats, false, "", 0, 0, "print the statistics at exit")

#define OBASE_COUNT_ROW(...) +1
inline constexpr std::size_t option_count = 0 OBASE_OPTIONS(OBASE_COUNT_ROW);
#undef OBASE_COUNT_ROW

// One row of the table as text, for printouts and documents.
struct option_row {
    std::string_view name;        // "window_seconds"
    std::string_view environment; // "OBASE_WINDOW_SECONDS"
    std::string_view expected;    // "a number from 0.001 to 1000000"
    std::string_view built_in;    // "120"
    std::string_view unit;
    std::string_view help;
};

// All rows, in the order of the table.
OBASE_EXPORT std::span<const option_row> option_rows();

struct OBASE_EXPORT options {
#define OBASE_DECLARE_FIELD(kind, name, built_in, unit, low, high, help)                           \
    option_kind::kind::type name = built_in;
    OBASE_OPTIONS(OBASE_DECLARE_FIELD)
#undef OBASE_DECLARE_FIELD

    // Sets one option from text. Returns "" or why not, naming the option, the value and what was
    // expected; then nothing has changed. `name` is the row's name or its environment variable.
    [[nodiscard]] std::string set(std::string_view name, std::string_view value);

    // Takes the OBASE_* entries of a null-terminated "NAME=value" array such as environ. Returns
    // one message for each malformed value and each unknown name; OBASE_TEST_* is skipped.
    std::vector<std::string> apply_environment(const char* const* environment);

    // Built-in values, then the process's environment; messages go to stderr. A program that runs
    // with raised privileges (AT_SECURE) ignores its environment.
    static options from_environment();

    // The value as text that set() would accept; "" for an unknown name.
    std::string get(std::string_view name) const;
    option_origin origin(std::string_view name) const;

    // Fields that are out of range because code assigned them directly: one message each.
    std::vector<std::string> out_of_range() const;

    // The build, then all effective options, one per line: variable, value, unit, origin, help.
    std::string text() const;

    // Derived values, so that the scale is applied in one place.
    double scaled_window_seconds() const { return window_seconds / time_scale; }
    double scaled_minute_seconds() const { return 60.0 / time_scale; }
    // The directory of a file-backed COLD, "" for anonymous memory.
    std::string_view cold_directory() const { return directory_of(cold_backing); }
    std::string_view hot_directory() const { return directory_of(hot_backing); }

  private:
    static std::string_view directory_of(std::string_view backing) {
        return backing.starts_with("file:") ? backing.substr(5) : std::string_view();
    }
    std::string assign(std::size_t row, std::string_view value, option_origin from);
    std::array<option_origin, option_count> origins_{};
};

OBASE_EXPORT const char* to_string(run_mode mode) noexcept;
OBASE_EXPORT const char* to_string(controller_kind controller) noexcept;
OBASE_EXPORT const char* to_string(option_origin origin) noexcept;

} // namespace obase
