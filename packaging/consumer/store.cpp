// SPDX-License-Identifier: MIT
//
// A stranger's program with CrestDB: every index under every protocol keeps what it is given.
#include <crestdb/store.hpp>

#include <cstdio>
#include <string>

int main() {
    int kept = 0;
    for (const std::string& index : crestdb::store::indexes())
        for (const std::string& protocol : crestdb::store::protocols()) {
            const auto db =
                crestdb::store::open({.index = index, .protocol = protocol, .expected_keys = 100});
            for (int i = 0; i < 100; ++i) db->put("key" + std::to_string(i), std::to_string(i));
            for (int i = 0; i < 100; ++i)
                db->get("key" + std::to_string(i),
                        [&](std::string_view value) { kept += value == std::to_string(i); });
        }
    const int all =
        static_cast<int>(crestdb::store::indexes().size() * crestdb::store::protocols().size()) *
        100;
    std::printf("%d of %d values kept\n", kept, all);
    return kept == all ? 0 : 1;
}
