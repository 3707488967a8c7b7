// SPDX-License-Identifier: MIT
#include "wiscsort/schedule/scheduler.hpp"

#include <algorithm>

namespace wiscsort::schedule {

std::uint64_t even_piece(std::uint64_t total, std::uint64_t workers, std::uint64_t least,
                         std::uint64_t most, std::uint64_t unit) {
    workers = std::max<std::uint64_t>(1, workers);
    std::uint64_t rounds = std::clamp<std::uint64_t>(total / (workers * least), 1, 16);
    rounds = std::max(rounds, (total + workers * most - 1) / (workers * most));
    const std::uint64_t piece = (total + workers * rounds - 1) / (workers * rounds);
    return std::max((std::max(piece, std::min(least, total)) + unit - 1) / unit * unit, unit);
}

scheduler::scheduler(device::device& device, controller& controller, const model::profile& profile)
    : device_(device), controller_(controller),
      overlaps_(!controller.controlled() || model::pays_to_overlap(profile)) {}

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
