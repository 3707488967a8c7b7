// SPDX-License-Identifier: MIT
//
// Which index a store has: the one that is named, or the one for the size of its values.
#include "crestdb/store.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <stdexcept>
#include <string>

namespace {

using crestdb::store;

TEST(store, nodes_of_small_values_move) {
    const auto managed_nodes_with = [](const crestdb::store_options& options) {
        const auto db = store::open(options);
        for (int i = 0; i < 100; ++i) db->put("key " + std::to_string(i), "value");
        EXPECT_EQ(db->size(), 100u);
        return db->managed_nodes();
    };
    EXPECT_GT(managed_nodes_with({.value_bytes = store::small_value_bytes - 1}), 0u);
    EXPECT_EQ(managed_nodes_with({.value_bytes = store::small_value_bytes}), 0u);
    EXPECT_EQ(managed_nodes_with({}), 0u);
    EXPECT_EQ(managed_nodes_with({.index = "pugh-hash-table", .value_bytes = 1}), 0u)
        << "what is named is what it is";
}

TEST(store, usual_indexes_are_there) {
    const auto all = store::indexes();
    for (const std::size_t bytes : {std::size_t{0}, store::small_value_bytes, std::size_t{1} << 20})
        EXPECT_NE(std::find(all.begin(), all.end(), store::usual_index(bytes)), all.end()) << bytes;
}

TEST(store, names_what_there_is_instead_of_what_is_not) {
    const auto said = [](const crestdb::store_options& options) -> std::string {
        try {
            store::open(options);
        } catch (const std::invalid_argument& error) {
            return error.what();
        }
        return "";
    };
    EXPECT_NE(said({.index = "magic"}).find("unknown index 'magic'"), std::string::npos);
    EXPECT_NE(said({.index = "magic"}).find("pugh-hash-table"), std::string::npos);
    EXPECT_NE(said({.protocol = "magic"}).find("unknown protocol 'magic'"), std::string::npos);
    EXPECT_NE(said({.protocol = "magic"}).find("arming"), std::string::npos);
}

} // namespace
