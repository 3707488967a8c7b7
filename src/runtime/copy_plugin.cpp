// SPDX-License-Identifier: MIT
//
// A library for copies_test.cpp, with the whole of libobase.a in it.
#include <obase/obase.hpp>

extern "C" __attribute__((visibility("default"))) int copy_plugin_use() {
    const obase::guide<int> object = obase::make_managed<int>(5);
    const obase::scope s;
    return *object;
}

extern "C" __attribute__((visibility("default"))) int copy_plugin_moves() {
    return obase::runtime::get().start().empty() &&
                   obase::runtime::get().collect_now() == obase::collect_result::done
               ? 1
               : 0;
}
