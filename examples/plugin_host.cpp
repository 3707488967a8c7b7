// SPDX-License-Identifier: MIT
//
// A program that loads a plugin, lets it work, and unloads it, again and again, while the runtime goes
// on.
#include "plugin.hpp"

#include <obase/runtime.hpp>

#include <cstdio>
#include <dlfcn.h>

int main(int count, char** arguments) {
    if (count != 2) {
        std::fprintf(stderr, "usage: %s PLUGIN\n", arguments[0]);
        return 2;
    }
    for (int round = 0; round < 3; ++round) {
        void* plugin = dlopen(arguments[1], RTLD_NOW | RTLD_LOCAL);
        if (plugin == nullptr) {
            std::fprintf(stderr, "%s\n", dlerror());
            return 1;
        }
        const auto work = reinterpret_cast<plugin_work_function*>(dlsym(plugin, "plugin_work"));
        const auto stop = reinterpret_cast<plugin_stop_function*>(dlsym(plugin, "plugin_stop"));
        if (work == nullptr || stop == nullptr || work() != 0) return 1;
        if (obase::runtime::get().collect_now() != obase::collect_result::done) return 1;
        if (!stop() || dlclose(plugin) != 0) return 1;
        // What the plugin left behind would be called here.
        obase::runtime::get().reclaim_now();
    }
    std::puts("the plugin came and went three times");
    return 0;
}
