// SPDX-License-Identifier: MIT
//
// obase::runtime: the collector and its heaps, one per protocol and process.
//
// Starts by itself with the first managed object, configured by OBASE_* variables. A program may
// configure it before that, switch its mode while it runs, force a collection, and read statistics.
//
//     obase::options settings = obase::options::from_environment();
//     settings.window_seconds = 10;
//     obase::runtime::get().configure(settings);
//     ...
//     obase::runtime::get().set_mode(obase::run_mode::hint);
//     std::puts(obase::runtime::get().statistics().to_text().c_str());
//
// Guides work without any call of it.
//
// Threads: all functions by any thread.
#pragma once

#include <obase/language.hpp>

#include <obase/export.hpp>
#include <obase/mobility/drain.hpp>
#include <obase/options.hpp>
#include <obase/statistics.hpp>

#include <memory>
#include <string>
#include <vector>

namespace obase {

enum class collect_result {
    done,        // a whole window: every slot scanned, every candidate tried
    in_scope,    // the caller is inside a scope, which the collector would wait for (R14)
    not_running, // there is no collector thread: the mode is off, stop() was called, or no thread
                 // could be had
    abandoned, // a scope stayed open too long, or membarrier failed: scanned, but not all was moved
};

class OBASE_EXPORT runtime {
  public:
    // The runtime of the arming protocol, which is the default.
    static runtime& get() noexcept;
    // The runtime of `Protocol` (obase::arming or obase::atc).
    template <class Protocol>
    static runtime& of() noexcept {
        return Protocol::runtime_of();
    }

    // Sets the options. Returns "" or why not: a value out of range, or an option of the heaps
    // (heap_reserve, cold_backing, hot_backing, poison_freed, check_frees, history_windows) after the first object was made.
    [[nodiscard]] virtual std::string configure(const options& settings) = 0;
    // The environment's, until configure() is called.
    virtual options settings() = 0;

    // Starts the collector thread; configures from the environment unless configure() was called.
    // Happens by itself with the first object. Returns "" or why there is no migration.
    virtual std::string start() noexcept = 0;
    // Ends the collector thread; objects stay where they are and usable. start() may follow.
    virtual void stop() noexcept = 0;

    // Live. observe tracks and reports what moving would save; hint also advises the kernel.
    virtual void set_mode(run_mode mode) noexcept = 0;
    virtual run_mode mode() const noexcept = 0;

    // Runs one window now, unthrottled, and waits for its end.
    virtual collect_result collect_now() noexcept = 0;
    // Frees what was retired, as far as no scope or pin holds it, with what the destructors retire.
    // Returns how many objects this call freed. Does not wait for scopes. With a collector or without
    // one, in every mode. From a destructor of a retired object: does nothing.
    virtual std::uint64_t reclaim_now() noexcept = 0;

    // Frees everything that was retired before the call, by any thread, with what the destructors
    // retire, and waits for destructors that other threads are running. After `done` no code of a
    // destructor runs or will run for those objects, so the library that it belongs to may be
    // unloaded; docs/embedding.md has a plugin that does it when it is unloaded:
    //
    //     if (auto result = obase::runtime::get().drain(); result.why != obase::drain_end::done)
    //         report("not unloaded", result.left);
    //
    // `seconds`, at least 0: how long to wait for scopes, pins, destructors of other threads and
    // destructors that retire; with 0 it frees what it can at once. It may be exceeded by the time
    // that destructors take. Otherwise see drain_end for what is in the way. One protocol's objects
    // only: a program that uses both drains both.
    //
    // In a scope, and from a destructor of a retired object, whichever thread runs it: returns at
    // once, since it would wait for itself. Without a collector, with the mode off and in the child
    // of a fork it works as it does elsewhere; what other threads were destroying at the fork is lost
    // in the child, and not waited for. The caller must hold no lock that a destructor takes.
    virtual drain_result drain(double seconds = 10) noexcept = 0;

    // Of the last window that ended; see docs/statistics.md.
    virtual obase::statistics statistics() const = 0;
    virtual std::vector<window_record> history() const = 0;
    // Which heap the address lies in, as an index of statistics().heaps; -1 if in none. For
    // tools: the object may be elsewhere after the caller's scope. Cost: a subtraction and a shift.
    virtual int heap_of(const void* address) const noexcept = 0;

    // One sentence for each thing that cannot work on this machine; empty if there is none.
    virtual std::vector<std::string> self_check() = 0;

    // fork() in this process is safe at any time: the child has the objects as of the fork, wherever
    // they lie, and no collector until start(). With COLD in a file nothing is copied for that. If the
    // kernel has no mappings or no commit left, the child says so, start() refuses there, and objects
    // in COLD cannot be accessed in it (docs/protocol.md).

  protected:
    runtime() = default;
    ~runtime() = default;
    runtime(const runtime&) = delete;
    runtime& operator=(const runtime&) = delete;
};

} // namespace obase
