// SPDX-License-Identifier: MIT
#include "tools/ycsb/verification.hpp"

#include "tools/ycsb/in_parallel.hpp"

#include <mutex>
#include <vector>

namespace obase::tools {

client_counts verify_all(const crestdb::store& store, const record_set& records,
                         const value_ledger& ledger, std::uint64_t count, unsigned threads,
                         bool in_place) {
    client_counts all;
    std::mutex mutex;
    in_parallel(threads, count, [&](std::uint64_t first, std::uint64_t last) {
        std::vector<char> key(records.largest_key());
        client_counts found;
        for (std::uint64_t record = first; record < last; ++record) {
            const value_ledger::entry expected = ledger.look(record);
            if (expected == 0) continue; // never written
            const bool present = (expected & value_ledger::present) != 0;
            bool right = false;
            const bool there = store.get(records.key(record, key), [&](std::string_view value) {
                const auto version = records.check(record, value);
                right = version && (*version == record_set::any_version ||
                                    *version == (expected & value_ledger::version_bits));
            });
            if (there != present)
                ++found.lost_writes;
            else if (there && !right && !in_place)
                ++found.corrupt;
        }
        const std::lock_guard guard(mutex);
        all.add(found);
    });
    return all;
}

} // namespace obase::tools
