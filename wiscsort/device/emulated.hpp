// SPDX-License-Identifier: MIT
//
// A device of a BRAID profile in virtual time. One thread runs at a time; the others wait for their
// turn, for a transfer, or for processor time to pass. When all wait, the clock advances to the next
// moment at which one of them goes on. Threads that can go on do so in the order of their numbers, so
// the same work always takes the same virtual time, to the last bit, on any machine.
//
// Transfers of a direction share its capacity (model/profile.hpp) equally. A transfer of k requests
// first waits for its latency, ceil(k / requests in flight per thread) times, and then transfers.
#pragma once

#include "wiscsort/device/device.hpp"
#include "wiscsort/model/profile.hpp"

#include <condition_variable>
#include <exception>
#include <mutex>
#include <vector>

namespace wiscsort::device {

class emulated_device : public device {
  public:
    explicit emulated_device(model::profile profile) : profile_(std::move(profile)) {}
    void parallel(unsigned threads, const std::function<void(unsigned)>& body) override;
    void charge(const access& access) override;
    void work(double seconds) override;
    double now() const override { return now_; }
    bool emulated() const override { return true; }
    std::uint64_t granule() const override { return profile_.granule; }
    double random_share() const override { return profile_.random_share; }

  private:
    enum class states { ready, sleeping, transferring, done };
    struct waiting {
        states state = states::ready;
        direction dir = direction::read;
        double seconds = 0; // until it wakes, or until its transfer begins
        double bytes = 0;   // left to transfer
    };
    struct participant : waiting {
        std::condition_variable turn;
    };
    static constexpr unsigned nobody = ~0U;

    void wait(waiting what);
    void hand_over();
    void advance();

    model::profile profile_;
    // Guarded by the mutex; who has the turn reads now_ without it.
    std::mutex lock_;
    std::condition_variable all_done_;
    std::vector<participant*> participants_;
    unsigned turn_ = nobody;
    double now_ = 0;
};

} // namespace wiscsort::device
