// SPDX-License-Identifier: MIT
//
// The interference-aware scheduler (the paper's I): buffers are the barrier between operations of
// different kinds. Where reads and writes hamper each other on a device, a buffer is filled by all
// readers and then written by all writers; where they do not, one buffer is written while the next is
// filled.
#pragma once

#include "wiscsort/device/device.hpp"
#include "wiscsort/schedule/controller.hpp"

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <string>

namespace wiscsort::schedule {

// Tasks 0 ... count - 1 of one kind, taken by threads as they come. `bytes` is what the device moves
// for all of them. run(worker, task): workers of a phase are numbered from 0.
struct phase {
    operation op = operation::compute;
    const char* name = "";
    std::uint64_t tasks = 0;
    std::uint64_t bytes = 0;
    std::function<void(unsigned, std::uint64_t)> run;
};

class scheduler {
  public:
    scheduler(device::device& device, controller& controller, const model::profile& profile);

    void run(const phase& one);
    // Both at once if overlaps(), otherwise one after the other. No worker of one takes tasks of the
    // other.
    void run(const phase& first, const phase& second);
    // True if it pays to read and write at the same time.
    bool overlaps() const { return overlaps_; }
    device::device& device() { return device_; }
    controller& threads() { return controller_; }
    // Seconds by the name of the phase. Phases that ran at once share their time.
    const std::map<std::string, double>& seconds() const { return seconds_; }

  private:
    static void work(const phase& p, unsigned worker, std::atomic<std::uint64_t>& next);
    device::device& device_;
    controller& controller_;
    bool overlaps_;
    std::map<std::string, double> seconds_;
};

// Into pieces of what size `total` is cut for `workers` that take them as they come: of least to most,
// and so that all end together, in as many pieces for each as there is room for, up to 16. A multiple
// of `unit`.
std::uint64_t even_piece(std::uint64_t total, std::uint64_t workers, std::uint64_t least,
                         std::uint64_t most, std::uint64_t unit);

} // namespace wiscsort::schedule
