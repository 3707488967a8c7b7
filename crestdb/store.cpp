// SPDX-License-Identifier: MIT
#include "crestdb/store.hpp"

#include "crestdb/adaptive_radix_tree.hpp"
#include "crestdb/coarse_btree.hpp"
#include "crestdb/coarse_skip_list.hpp"
#include "crestdb/fraser_skip_list.hpp"
#include "crestdb/harris_hash_table.hpp"
#include "crestdb/herlihy_skip_list.hpp"
#include "crestdb/masstree.hpp"
#include "crestdb/movable_adaptive_radix_tree.hpp"
#include "crestdb/movable_segmented_hash_table.hpp"
#include "crestdb/occ_btree.hpp"
#include "crestdb/pugh_hash_table.hpp"
#include "crestdb/segmented_hash_table.hpp"

#include <obase/atc.hpp>
#include <obase/plain.hpp>
#include <obase/runtime.hpp>

#include <array>
#include <stdexcept>

namespace crestdb {
namespace {

template <class Index>
class store_of final : public store {
  public:
    explicit store_of(std::size_t expected_keys) : index_(expected_keys) {}

    bool get(std::string_view key, callback<void(std::string_view)> use) const override {
        return index_.get(key, use);
    }
    bool put(std::string_view key, std::string_view value) override {
        return index_.put(key, value);
    }
    bool update(std::string_view key, std::string_view value) override {
        return index_.update(key, value);
    }
    bool modify(std::string_view key, callback<std::string_view(std::string_view)> make) override {
        return index_.modify(key, make);
    }
    bool edit_in_place(std::string_view key, callback<void(std::span<char>)> edit) override {
        return index_.edit_in_place(key, edit);
    }
    bool erase(std::string_view key) override { return index_.erase(key); }
    std::size_t scan(std::string_view from, std::size_t limit,
                     callback<void(std::string_view, std::string_view)> use) const override {
        if constexpr (Index::ordered)
            return index_.scan(from, limit, use);
        else
            throw std::logic_error(std::string("the index ") + Index::name +
                                   " has no order to scan in");
    }
    void visit_path(std::string_view key,
                    callback<void(const void*, std::size_t)> visit) const override {
        index_.visit_path(key, visit);
    }
    std::size_t size() const noexcept override { return index_.size(); }
    std::size_t index_bytes() const noexcept override { return index_.index_bytes(); }
    obase::runtime* runtime() const noexcept override {
        if constexpr (Index::protocol::moves_objects)
            return &obase::runtime::of<typename Index::protocol>();
        else
            return nullptr;
    }

  private:
    Index index_;
};

struct entry {
    const char* index;
    const char* protocol;
    bool ordered;
    std::unique_ptr<store> (*open)(std::size_t expected_keys);
};

template <class Index>
constexpr entry entry_of(const char* protocol) {
    return {Index::name, protocol, Index::ordered,
            [](std::size_t expected_keys) -> std::unique_ptr<store> {
                return std::make_unique<store_of<Index>>(expected_keys);
            }};
}

constexpr const char* protocol_names[] = {"none", "arming", "atc"};

// All protocols of an index.
template <template <class> class Index>
constexpr std::array<entry, 3> entries_of() {
    return {entry_of<Index<obase::plain>>(protocol_names[0]),
            entry_of<Index<obase::arming>>(protocol_names[1]),
            entry_of<Index<obase::atc>>(protocol_names[2])};
}

constexpr std::array<entry, 3> table[] = {
    entries_of<harris_hash_table>(),
    entries_of<pugh_hash_table>(),
    entries_of<segmented_hash_table>(),
    entries_of<movable_segmented_hash_table>(),
    entries_of<coarse_skip_list>(),
    entries_of<fraser_skip_list>(),
    entries_of<herlihy_skip_list>(),
    entries_of<coarse_btree>(),
    entries_of<occ_btree>(),
    entries_of<masstree>(),
    entries_of<adaptive_radix_tree>(),
    entries_of<movable_adaptive_radix_tree>(),
};

std::string unknown(const char* what, std::string_view name,
                    const std::vector<std::string>& known) {
    std::string text = std::string("unknown ") + what + " '" + std::string(name) + "'; there are:";
    for (const std::string& one : known) text += " " + one;
    return text;
}

} // namespace

std::vector<std::string> store::indexes() {
    std::vector<std::string> names;
    for (const auto& row : table) names.emplace_back(row[0].index);
    return names;
}

std::vector<std::string> store::protocols() {
    return {std::begin(protocol_names), std::end(protocol_names)};
}

bool store::ordered(std::string_view index) {
    for (const auto& row : table)
        if (index == row[0].index) return row[0].ordered;
    return false;
}

obase::runtime& store::runtime_of(std::string_view protocol) {
    if (protocol == protocol_names[2]) return obase::runtime::of<obase::atc>();
    if (protocol == protocol_names[0] || protocol == protocol_names[1])
        return obase::runtime::get();
    throw std::invalid_argument(unknown("protocol", protocol, protocols()));
}

std::unique_ptr<store> store::open(const store_options& options) {
    bool known_index = false;
    for (const auto& row : table) {
        known_index = known_index || options.index == row[0].index;
        for (const entry& e : row)
            if (options.index == e.index && options.protocol == e.protocol)
                return e.open(options.expected_keys);
    }
    throw std::invalid_argument(known_index ? unknown("protocol", options.protocol, protocols())
                                            : unknown("index", options.index, indexes()));
}

} // namespace crestdb
