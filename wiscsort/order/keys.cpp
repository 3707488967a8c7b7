// SPDX-License-Identifier: MIT
#include "wiscsort/order/keys.hpp"

namespace wiscsort::order {

int key_order::compare_keys(const record_source& source, std::uint64_t a, std::uint64_t b) const {
    thread_local std::string records[2], buffers[2];
    return compare_keys(key(source, a, records[0], buffers[0]),
                        key(source, b, records[1], buffers[1]));
}

} // namespace wiscsort::order
