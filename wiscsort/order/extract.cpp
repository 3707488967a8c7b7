// SPDX-License-Identifier: MIT
#include "wiscsort/order/extract.hpp"

#include <algorithm>
#include <cstring>

namespace wiscsort::order {

namespace {

// Entries are made this many at a time between two looks at the room there is.
constexpr std::uint64_t batch = 4096;

std::uint64_t extract_fixed(const window& window, std::uint64_t from, std::uint64_t to,
                            const key_order& order, device::entry_array& out, device::stream* reads,
                            bool keys_only, std::uint64_t size) {
    const key_spec& keys = order.keys();
    const bool in_place = keys.in_place();
    const bool plain =
        in_place && order.common().empty() && !order.reverse() && keys.length() == prefix_bytes;
    std::string buffer;
    while (from < to) {
        const std::uint64_t count = std::min<std::uint64_t>(
            {batch, (to - from + size - 1) / size, (window.end - from) / size});
        const std::size_t room = out.reserve_more(count);
        if (room == 0) break;
        if (reads != nullptr) {
            if (keys_only && in_place)
                for (std::size_t i = 0; i < room; ++i)
                    reads->touch(from + i * size + keys.offset(), keys.length());
            else
                reads->sequential(from, room * size);
            reads->flush();
        }
        const char* at = window.memory + (from - window.begin);
        if (plain) {
            // Ten bytes, which need no masks and no checks.
            at += keys.offset();
            for (std::size_t i = 0; i < room; ++i, at += size) {
                std::uint64_t high;
                std::uint16_t rest;
                std::memcpy(&high, at, 8);
                std::memcpy(&rest, at + 8, 2);
                out.push(
                    {static_cast<std::uint64_t>(__builtin_bswap16(rest)) << entry::position_bits |
                         (from + i * size),
                     __builtin_bswap64(high)});
            }
        } else {
            for (std::size_t i = 0; i < room; ++i, at += size)
                out.push(order.make({at, size}, from + i * size, buffer));
        }
        from += room * size;
    }
    return from;
}

} // namespace

std::uint64_t next_line(const char* memory, std::uint64_t at, std::uint64_t end, char terminator) {
    const void* found = std::memchr(memory + at - 1, terminator, end - at + 1);
    if (found == nullptr) return end;
    return static_cast<std::uint64_t>(static_cast<const char*>(found) - memory) + 1;
}

std::uint64_t extract(const device::input_set& input, const window& window, std::uint64_t from,
                      std::uint64_t to, const key_order& order, device::entry_array& out,
                      device::stream* reads, bool keys_only) {
    const record_format& format = input.format();
    if (format.fixed())
        return extract_fixed(window, from, to, order, out, reads, keys_only, format.size);
    std::string buffer;
    std::uint64_t told = from;
    std::size_t room = 0;
    while (from < to) {
        record_view view;
        const char* at = window.memory + (from - window.begin);
        const found outcome = find_record(format, at, window.end - from, view);
        if (outcome == found::torn) {
            if (!window.whole) break;
            input.torn(from);
        }
        if (!window.whole && view.stored.size() != view.written_size) break;
        if (view.stored.size() > order.largest_record())
            throw record_too_large{from, view.stored.size()};
        if (room == 0) {
            room = out.reserve_more(batch);
            if (room == 0) break;
            if (reads != nullptr && from > told) {
                reads->sequential(told, from - told);
                reads->flush();
                told = from;
            }
        }
        out.push(order.make(view.body, from, buffer));
        --room;
        from += view.stored.size();
    }
    if (reads != nullptr && from > told) {
        reads->sequential(told, from - told);
        reads->flush();
    }
    return from;
}

} // namespace wiscsort::order
