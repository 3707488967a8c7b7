// SPDX-License-Identifier: MIT
//
// fault_counts: what major faults cost the clients of a measurement. Each client reads the counter of
// its own thread around an operation, so the faults of the collector, or of the thread that measures,
// are not among them.
//
//     fault_counts mine;
//     mine.note(faults_of_the_operation, nanoseconds_of_the_operation);
//     mine.share();     // of the operations, in how many one happened
//     mine.stall_ns();  // what they took longer than the others
//
// Reading the counter costs about as much as a fast operation, so a client at full speed looks at one
// operation in `of_every`; all numbers are then estimates for all of its operations.
#pragma once

#include <algorithm>
#include <cstdint>

namespace obase::tools {

struct fault_counts {
    std::uint64_t operations = 0;   // all
    std::uint64_t looked_at = 0;    // of them
    std::uint64_t faulting = 0;     // of those looked at: at least one major fault
    std::uint64_t major_faults = 0; // in those looked at
    double faulting_ns = 0;         // time of the faulting ones
    double quiet_ns = 0;            // time of the others that were looked at

    void note(std::uint64_t faults, double ns) noexcept {
        ++looked_at;
        if (faults == 0) {
            quiet_ns += ns;
            return;
        }
        ++faulting;
        major_faults += faults;
        faulting_ns += ns;
    }
    void add(const fault_counts& other) noexcept {
        operations += other.operations;
        looked_at += other.looked_at;
        faulting += other.faulting;
        major_faults += other.major_faults;
        faulting_ns += other.faulting_ns;
        quiet_ns += other.quiet_ns;
    }
    // What happened since `earlier`, a state of the same counts.
    fault_counts since(const fault_counts& earlier) const noexcept {
        return {operations - earlier.operations,   looked_at - earlier.looked_at,
                faulting - earlier.faulting,       major_faults - earlier.major_faults,
                faulting_ns - earlier.faulting_ns, quiet_ns - earlier.quiet_ns};
    }

    // All four: 0 where nothing was looked at.
    double share() const noexcept { return ratio(static_cast<double>(faulting)); }
    double major_faults_per_operation() const noexcept {
        return ratio(static_cast<double>(major_faults));
    }
    double major_faults_of_all() const noexcept {
        return major_faults_per_operation() * static_cast<double>(operations);
    }
    double stall_ns() const noexcept {
        const std::uint64_t quiet = looked_at - faulting;
        const double usual = quiet == 0 ? 0 : quiet_ns / static_cast<double>(quiet);
        const double longer = faulting_ns - usual * static_cast<double>(faulting);
        return ratio(std::max(0.0, longer)) * static_cast<double>(operations);
    }

  private:
    double ratio(double of) const noexcept {
        return looked_at == 0 ? 0 : of / static_cast<double>(looked_at);
    }
};

} // namespace obase::tools
