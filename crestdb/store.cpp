// SPDX-License-Identifier: MIT
#include "crestdb/store.hpp"

#include "crestdb/store_of.hpp"

#include <obase/atc.hpp>
#include <obase/runtime.hpp>

#include <stdexcept>

namespace crestdb {
namespace {

std::string unknown(const char* what, std::string_view name,
                    const std::vector<std::string>& known) {
    std::string text = std::string("unknown ") + what + " '" + std::string(name) + "'; there are:";
    for (const std::string& one : known) text += " " + one;
    return text;
}

} // namespace

std::vector<std::string> store::indexes() {
    std::vector<std::string> names;
    for (const store_kinds* kinds : all_store_kinds()) names.emplace_back(kinds->front().index);
    return names;
}

std::vector<std::string> store::protocols() {
    std::vector<std::string> names;
    for (const store_kind& kind : *all_store_kinds().front()) names.emplace_back(kind.protocol);
    return names;
}

std::string store::usual_index(std::size_t value_bytes) {
    return value_bytes < small_value_bytes ? "movable-segmented-hash-table" : "pugh-hash-table";
}

bool store::ordered(std::string_view index) {
    for (const store_kinds* kinds : all_store_kinds())
        if (index == kinds->front().index) return kinds->front().ordered;
    return false;
}

obase::runtime& store::runtime_of(std::string_view protocol) {
    if (protocol == "atc") return obase::runtime::of<obase::atc>();
    if (protocol == "none" || protocol == "arming") return obase::runtime::get();
    throw std::invalid_argument(unknown("protocol", protocol, protocols()));
}

std::unique_ptr<store> store::open(const store_options& options) {
    const std::string index =
        options.index.empty() ? usual_index(options.value_bytes) : options.index;
    bool known_index = false;
    for (const store_kinds* kinds : all_store_kinds())
        for (const store_kind& kind : *kinds) {
            if (index != kind.index) continue;
            known_index = true;
            if (options.protocol == kind.protocol) return kind.open(options.expected_keys);
        }
    throw std::invalid_argument(known_index ? unknown("protocol", options.protocol, protocols())
                                            : unknown("index", index, indexes()));
}

} // namespace crestdb
