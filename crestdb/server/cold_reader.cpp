// SPDX-License-Identifier: MIT
#include "crestdb/server/cold_reader.hpp"

#include "crestdb/server/session.hpp"

#include <obase/runtime.hpp>

#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>

namespace crestdb::server {

namespace {

constexpr std::uintptr_t page = 4096;

std::size_t usable_size(const void* object) {
    return with_protocol([&]<class Protocol>() { return Protocol::usable_size(object); });
}

} // namespace

void cold_reader::start(unsigned threads) {
    refresh();
    for (unsigned i = 0; i < threads; ++i) threads_.emplace_back([this] { work(); });
}

void cold_reader::refresh() noexcept {
    if (tiers_ == 0) tiers_ = managing_runtime().statistics().reclaimable_tiers;
}

void cold_reader::stop() {
    {
        const std::lock_guard hold(lock_);
        stopping_ = true;
    }
    wake_.notify_all();
    for (std::thread& t : threads_) t.join();
    threads_.clear();
}

void cold_reader::look_at(managed_slot* slot, std::vector<range>& cold) {
    if (slot == nullptr) return;
    void* const object = const_cast<void*>(slot->peek());
    const int heap = managing_runtime().heap_of(object);
    if (heap < 0 || (tiers_ >> heap & 1) == 0) return;
    const auto begin = reinterpret_cast<std::uintptr_t>(object) & ~(page - 1);
    const auto end =
        (reinterpret_cast<std::uintptr_t>(object) + usable_size(object) + page - 1) & ~(page - 1);
    constexpr std::size_t looked_at = 64;
    unsigned char resident[looked_at];
    for (std::uintptr_t at = begin; at < end; at += looked_at * page) {
        const std::size_t pages = std::min(looked_at, (end - at) / page);
        if (::mincore(reinterpret_cast<void*>(at), pages * page, resident) != 0) return;
        for (std::size_t i = 0; i < pages; ++i)
            if ((resident[i] & 1) == 0) {
                cold.push_back({reinterpret_cast<void*>(begin), end - begin});
                return;
            }
    }
}

bool cold_reader::ask(const session& client, arguments args, std::function<void(bool)> done) {
    const command* what = find_command(args[0]);
    if (what == nullptr || what->first_key == 0 || client.in_multi || !what->takes(args.size()))
        return false;
    std::vector<range> cold;
    for (const std::size_t position : key_positions(*what, args.size())) {
        const keyspace::key_id id = keyspace::id_of(client.database, args[position]);
        const std::lock_guard hold(keys_.lock_of(id.part));
        managed_slot* slot = keys_.slot_of_hash(id);
        if (slot == nullptr) continue;
        const std::size_t before = cold.size();
        look_at(slot, cold);
        if (what->group != "hash" || cold.size() != before) continue;
        // The key's own record is there: so are the fields that are named?
        const managed_scope scope;
        auto* r = static_cast<record*>(slot->get());
        if (r->kind() != record_kind::hash) continue;
        auto* hash = static_cast<hash_value*>(r->collection());
        const bool pairs = what->name == "hset" || what->name == "hmset";
        for (std::size_t i = 2; i < args.size(); i += pairs ? 2 : 1)
            look_at(hash->slot_of_hash(args[i]), cold);
    }
    if (cold.empty()) return false;
    {
        const std::lock_guard hold(lock_);
        if (stopping_) return false;
        jobs_.push_back({std::move(cold), std::move(done)});
    }
    wake_.notify_one();
    return true;
}

void cold_reader::work() {
    for (;;) {
        job next;
        {
            std::unique_lock hold(lock_);
            wake_.wait(hold, [this] { return stopping_ || !jobs_.empty(); });
            if (jobs_.empty()) return;
            next = std::move(jobs_.front());
            jobs_.pop_front();
        }
        bool readable = true;
        for (const range& r : next.ranges) {
            // ENOMEM: it is not mapped any more, EINVAL: a kernel before 5.14; the request finds out.
            if (::madvise(r.begin, r.bytes, MADV_POPULATE_READ) != 0 &&
                (errno == EFAULT || errno == EHWPOISON || errno == EIO))
                readable = false;
        }
        next.done(readable);
    }
}

} // namespace crestdb::server
