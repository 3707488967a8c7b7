// SPDX-License-Identifier: MIT
//
// store_of: an index class as a crestdb::store, and the table row from which store::open() makes it.
//
// The type-erased adapter through which an index is chosen at run time. Each index class is
// compiled in a source of its own (stores_of_class.cpp.in), so that changing one compiles one.
//
//     const crestdb::store_kinds kinds = crestdb::kinds_of<crestdb::occ_btree>();
//     std::unique_ptr<crestdb::store> db = kinds[1].open(1000); // under arming
//
// Internal: users call store::open(), which finds an index by its name.
#pragma once

#include "crestdb/index.hpp"
#include "crestdb/store.hpp"

#include <obase/atc.hpp>
#include <obase/plain.hpp>
#include <obase/runtime.hpp>

#include <array>
#include <cstddef>
#include <memory>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>

namespace crestdb {

template <index Index>
class store_of final : public store {
  public:
    // `how`: what the index is made with.
    template <class... How>
    explicit store_of(std::size_t expected_keys, const How&... how)
        : index_(expected_keys, how...) {}

    Index& index() noexcept { return index_; }

    bool get(std::string_view key, callback<void(std::string_view)> use) const override {
        return index_.get(key, use);
    }
    bool contains(std::string_view key) const override { return index_.contains(key); }
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
    std::size_t managed_nodes() const noexcept override {
        if constexpr (requires { index_.managed_nodes(); })
            return index_.managed_nodes();
        else
            return 0;
    }
    obase::runtime* runtime() const noexcept override {
        if constexpr (Index::protocol::moves_objects)
            return &obase::runtime::of<typename Index::protocol>();
        else
            return nullptr;
    }

  private:
    Index index_;
};

// An index under a protocol.
struct store_kind {
    const char* index;
    const char* protocol; // as in store_options
    bool ordered;
    bool keys_inline; // index.hpp
    std::unique_ptr<store> (*open)(std::size_t expected_keys);
};

// An index under "none", "arming" and "atc", in this order.
using store_kinds = std::array<store_kind, 3>;

template <class Index>
constexpr store_kind kind_of(const char* protocol) {
    return {Index::name, protocol, Index::ordered, requires {Index::keys_inline;
}
, [](std::size_t expected_keys) -> std::unique_ptr<store> {
    return std::make_unique<store_of<Index>>(expected_keys);
}
}; // namespace crestdb
}

template <template <class> class Index>
constexpr store_kinds kinds_of() {
    return {kind_of<Index<obase::plain>>("none"), kind_of<Index<obase::arming>>("arming"),
            kind_of<Index<obase::atc>>("atc")};
}

// Of all indexes, in the order of crestdb/CMakeLists.txt.
std::span<const store_kinds* const> all_store_kinds() noexcept;

} // namespace crestdb
