// SPDX-License-Identifier: MIT
//
// A plugin with managed objects of types of its own. Before it is unloaded two things have to end: its
// guides, which lie in its memory, and the destructors of what it retired, which are its code and run
// later.
#include "plugin.hpp"

#include <obase/obase.hpp>

#include <memory>
#include <vector>

namespace {

struct item {
    obase::guide<obase::bytes> name;
    int number = 0;
    ~item() { number = -1; } // code of this plugin
};

} // namespace

template <>
struct obase::is_relocatable<item> : std::true_type {};

namespace {

std::unique_ptr<std::vector<obase::guide<item>>> items;

} // namespace

extern "C" __attribute__((visibility("default"))) int plugin_work() {
    items = std::make_unique<std::vector<obase::guide<item>>>(1000);
    for (int i = 0; i < 1000; ++i) {
        auto made = obase::make_managed<item>();
        made->number = i;
        made->name = obase::make_bytes("an item");
        (*items)[static_cast<std::size_t>(i)] = std::move(made);
    }
    int wrong = 0;
    for (int i = 0; i < 1000; ++i) {
        const obase::scope s;
        const auto& g = (*items)[static_cast<std::size_t>(i)];
        wrong += g->number != i || *g->name != "an item";
    }
    for (int i = 0; i < 1000; i += 2)
        obase::retire((*items)[static_cast<std::size_t>(i)].release());
    return wrong;
}

extern "C" __attribute__((visibility("default"))) int plugin_stop() {
    items.reset();
    // Waits for scopes of other threads, and for destructors that they are running.
    return obase::runtime::get().drain().why == obase::drain_end::done;
}
