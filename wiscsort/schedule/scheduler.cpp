// SPDX-License-Identifier: MIT
#include "wiscsort/schedule/scheduler.hpp"

#include <algorithm>

namespace wiscsort::schedule {

bool pays_to_overlap(const model::profile& profile) {
    // At once, the shorter transfer takes 1/share of its time, and the longer one loses the rest.
    const double read = 1 / profile.read.bytes_per_second;
    const double write = 1 / profile.write.bytes_per_second;
    const double read_share = profile.read.overlap_share;
    const double write_share = profile.write.overlap_share;
    const double both = std::min(read / read_share, write / write_share);
    const double rest = read / read_share < write / write_share ? write - both * write_share
                                                                : read - both * read_share;
    return both + rest < (read + write) * .98;
}

scheduler::scheduler(device::device& device, controller& controller, const model::profile& profile)
    : device_(device), controller_(controller),
      overlaps_(!controller.controlled() || pays_to_overlap(profile)) {}

void scheduler::work(const phase& p, unsigned worker, std::atomic<std::uint64_t>& next) {
    for (std::uint64_t task; (task = next++) < p.tasks;) p.run(worker, task);
}

void scheduler::run(const phase& one) {
    if (one.tasks == 0) return;
    const double begin = device_.now();
    const auto threads =
        static_cast<unsigned>(std::min<std::uint64_t>(controller_.threads(one.op), one.tasks));
    std::atomic<std::uint64_t> next{0};
    device_.parallel(threads, [&](unsigned worker) { work(one, worker, next); });
    const double took = device_.now() - begin;
    controller_.observed(one.op, one.bytes, took);
    seconds_[one.name] += took;
}

void scheduler::run(const phase& first, const phase& second) {
    if (!overlaps_ || first.tasks == 0 || second.tasks == 0) {
        run(first);
        run(second);
        return;
    }
    const double begin = device_.now();
    const auto some = [&](const phase& p) {
        return static_cast<unsigned>(std::min<std::uint64_t>(controller_.threads(p.op), p.tasks));
    };
    const unsigned of_first = some(first), of_second = some(second);
    std::atomic<std::uint64_t> next_first{0}, next_second{0};
    device_.parallel(of_first + of_second, [&](unsigned worker) {
        if (worker < of_first)
            work(first, worker, next_first);
        else
            work(second, worker - of_first, next_second);
    });
    const double took = device_.now() - begin;
    seconds_[first.name] += took / 2;
    seconds_[second.name] += took / 2;
}

} // namespace wiscsort::schedule
