// SPDX-License-Identifier: MIT
//
// The whole order of entries: by prefix, then by what the key has behind it, then by position. It
// knows where keys are, so it reads a record where two prefixes are equal and the keys are longer.
//
// All keys begin with `common`, as far as the sample says that it was taken from. Whoever makes
// entries checks that, and where it turns out to be less, the sort begins again with less.
#pragma once

#include "wiscsort/device/input.hpp"
#include "wiscsort/format/entry.hpp"
#include "wiscsort/format/key_spec.hpp"

#include <algorithm>
#include <string>
#include <string_view>

namespace wiscsort::order {

// Where records are: mapped or in files (`input`), or in a piece of memory that holds the positions
// from `begin` on.
struct record_source {
    const device::input_set* input = nullptr;
    const char* memory = nullptr;
    std::uint64_t begin = 0, end = 0;

    record_view record(std::uint64_t position, std::string& buffer) const {
        if (memory == nullptr) return input->record_at(position, buffer);
        record_view view;
        const std::uint64_t last =
            input->files().size() == 1 ? end : std::min(end, input->file_at(position).end());
        find_record(input->format(), memory + (position - begin), last - position, view);
        return view;
    }
};

// Thrown by whoever finds a key that does not begin with the assumed prefix.
struct shorter_prefix {
    std::size_t length;
};

// Thrown by whoever finds a record that is larger than the memory for copies of records allows.
struct record_too_large {
    std::uint64_t position;
    std::uint64_t size;
};

class key_order {
  public:
    // `largest_record`: that may be copied to compare keys, where keys are not in place or the input is
    // not mapped.
    key_order(const key_spec& keys, std::string common, std::uint64_t largest_record = UINT64_MAX)
        : keys_(keys), common_(std::move(common)), largest_record_(largest_record),
          prefix_decides_(keys.fixed_length() != 0 &&
                          keys.fixed_length() <= common_.size() + prefix_bytes) {}

    const key_spec& keys() const { return keys_; }
    const std::string& common() const { return common_; }
    std::uint64_t largest_record() const { return largest_record_; }
    bool reverse() const { return keys_.reverse(); }
    // True if equal prefixes are equal keys.
    bool prefix_decides() const { return prefix_decides_; }

    // Of the record's body. Throws shorter_prefix.
    entry make(std::string_view body, std::uint64_t position, std::string& buffer) const {
        const std::string_view key = keys_.key_of(body, buffer);
        if (!common_.empty() && key.substr(0, common_.size()) != common_)
            throw shorter_prefix{common_prefix(key, common_)};
        return make_entry(key, common_.size(), reverse(), position);
    }
    std::string_view key(const record_source& source, std::uint64_t position, std::string& record,
                         std::string& buffer) const {
        return keys_.key_of(source.record(position, record).body, buffer);
    }
    // Below 0, 0 or above 0, as the keys are ordered (positions aside).
    int compare_keys(const record_source& source, std::uint64_t a, std::uint64_t b) const;
    int compare_keys(std::string_view a, std::string_view b) const {
        const int compared = a.compare(b);
        return reverse() ? -compared : compared;
    }

  private:
    const key_spec& keys_;
    std::string common_;
    std::uint64_t largest_record_;
    bool prefix_decides_;
};

// less(a, b) of entries whose records are in one source.
struct entry_less {
    const key_order* order;
    record_source source;
    bool operator()(const entry& a, const entry& b) const {
        if (a.high != b.high) return a.high < b.high;
        if (order->prefix_decides() || !a.same_prefix(b)) [[likely]]
            return a.low < b.low;
        const int compared = order->compare_keys(source, a.position(), b.position());
        return compared != 0 ? compared < 0 : a.position() < b.position();
    }
    // True if the keys are equal.
    bool equal(const entry& a, const entry& b) const {
        return a.same_prefix(b) && (order->prefix_decides() ||
                                    order->compare_keys(source, a.position(), b.position()) == 0);
    }
};

} // namespace wiscsort::order
