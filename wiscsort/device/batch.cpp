// SPDX-License-Identifier: MIT
#include "wiscsort/device/batch.hpp"

#include "wiscsort/device/calls.hpp"

#if WISCSORT_URING
#include <liburing.h>
#endif

#include <algorithm>
#include <cerrno>

namespace wiscsort::device {

#if WISCSORT_URING

struct read_batch::ring {
    io_uring kernel = {};
    ~ring() { io_uring_queue_exit(&kernel); }
};

read_batch::read_batch() {
    io_uring kernel = {};
    if (before_call("io_uring_setup").error != 0 || io_uring_queue_init(most, &kernel, 0) != 0)
        return;
    ring_ = std::make_unique<ring>();
    ring_->kernel = kernel;
}

void read_batch::read(std::span<read_request> requests) {
    if (ring_ == nullptr) return;
    io_uring& kernel = ring_->kernel;
    std::size_t next = 0;
    unsigned queued = 0, in_flight = 0;
    bool refused = false; // the kernel takes no more of these
    while (in_flight > 0 || (next < requests.size() && !refused)) {
        while (next < requests.size() && !refused && in_flight < most) {
            const fault injected = before_call("io_uring_read");
            read_request& r = requests[next];
            if (injected.error != 0) {
                ++next; // it counts as one that came back with an error
                continue;
            }
            io_uring_sqe* const entry = io_uring_get_sqe(&kernel);
            if (entry == nullptr) break;
            const std::size_t size = std::min<std::size_t>(
                injected.shorten ? std::max<std::size_t>(1, r.size / 2) : r.size, 1U << 30);
            io_uring_prep_read(entry, r.fd, r.to, static_cast<unsigned>(size), r.offset);
            io_uring_sqe_set_data(entry, &r);
            ++next, ++queued, ++in_flight;
        }
        if (in_flight == 0) break;
        // Buffers belong to the kernel until the last of them has come back, whatever happens.
        io_uring_cqe* done = nullptr;
        if (refused) {
            io_uring_wait_cqe(&kernel, &done);
        } else {
            const int submitted = io_uring_submit_and_wait(&kernel, 1);
            if (submitted >= 0) {
                queued -= static_cast<unsigned>(submitted);
            } else if (submitted != -EINTR && (in_flight == queued || submitted != -EAGAIN) &&
                       submitted != -EBUSY) {
                // Those queued were not taken, and are not offered again.
                refused = true;
                in_flight -= queued;
            }
        }
        while (io_uring_peek_cqe(&kernel, &done) == 0) {
            auto& r = *static_cast<read_request*>(io_uring_cqe_get_data(done));
            if (done->res > 0) r.done = static_cast<std::size_t>(done->res);
            io_uring_cqe_seen(&kernel, done);
            --in_flight;
        }
    }
    if (refused) ring_.reset();
}

#else

struct read_batch::ring {};
read_batch::read_batch() = default;
void read_batch::read(std::span<read_request>) {}

#endif

read_batch::~read_batch() = default;

} // namespace wiscsort::device
