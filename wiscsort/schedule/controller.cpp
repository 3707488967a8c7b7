// SPDX-License-Identifier: MIT
#include "wiscsort/schedule/controller.hpp"

#include <algorithm>

namespace wiscsort::schedule {

controller::controller(const model::profile& profile, unsigned most, bool controlled,
                       const own_seconds& own)
    : most_(std::max(1U, most)), controlled_(controlled) {
    for (const operation op : {operation::scan, operation::load, operation::gather,
                               operation::write, operation::compute}) {
        state& s = at(op);
        s.threads = s.best = most_;
        if (!controlled || op == operation::compute) continue;
        const model::direction_profile& d = op == operation::write ? profile.write : profile.read;
        // Where more threads cost the device nothing they share the processor's part of the work.
        const double beside = op == operation::scan     ? own.scan
                              : op == operation::load   ? own.load
                              : op == operation::gather ? own.gather
                                                        : own.write;
        s.threads = s.best =
            d.decline > 0 ? model::profile::best_pool(d, most_, beside).threads : most_;
        s.correctable = d.decline > 0;
    }
}

void controller::observed(operation op, std::uint64_t bytes, double seconds) {
    state& s = at(op);
    // Short rounds tell nothing.
    if (!s.correctable || seconds <= 0 || bytes < (1U << 20)) return;
    const double rate = static_cast<double>(bytes) / seconds;
    if (s.threads != s.best) {
        // The end of a trial.
        if (rate > s.best_rate * 1.03) {
            s.best = s.threads;
            s.best_rate = rate;
            s.pause = 4;
        } else {
            s.step = -s.step;
            s.pause = std::min(64, s.pause * 2);
        }
        s.threads = s.best;
        s.rounds = 0;
        return;
    }
    s.best_rate = s.best_rate == 0 ? rate : .75 * s.best_rate + .25 * rate;
    if (++s.rounds < s.pause) return;
    const int next = static_cast<int>(s.best) + s.step;
    if (next < 1 || next > static_cast<int>(most_)) {
        s.step = -s.step;
        s.rounds = 0;
        return;
    }
    s.threads = static_cast<unsigned>(next);
}

} // namespace wiscsort::schedule
