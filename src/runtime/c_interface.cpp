// SPDX-License-Identifier: MIT
//
// The C interface: each function is the C++ one under another name, with exceptions turned into
// NULL.
#include <obase/obase.h>

#include <obase/arming.hpp>
#include <obase/runtime.hpp>

#include "runtime/arming_engine.hpp"

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <new>
#include <string>

using obase::arming;

namespace {

static_assert(sizeof(obase_guide) == sizeof(arming::slot) &&
              alignof(obase_guide) == alignof(arming::slot));

arming::slot& slot_of(const obase_guide* guide) noexcept {
    return *reinterpret_cast<arming::slot*>(const_cast<obase_guide*>(guide));
}

char* copy_of(const std::string& text) noexcept { return strdup(text.c_str()); }

// A text the caller frees, or NULL for "" (success).
char* message(const std::string& text) noexcept { return text.empty() ? nullptr : copy_of(text); }

// The C interface throws nothing; what std::string needs and does not get is "no memory".
template <class F>
char* text_of(F&& make) noexcept {
    try {
        return make();
    } catch (const std::bad_alloc&) {
        return nullptr;
    }
}

void free_object(void* object) noexcept {
    obase::runtime_internal::arming_engine::instance().deallocate_checked(object);
}

} // namespace

uint64_t obase_scope_enter(void) { return arming::enter(); }
void obase_scope_exit(uint64_t outer) { arming::leave(outer); }

void* obase_alloc(size_t bytes, const obase_allocation_options* how) {
    obase::allocation_options wish;
    wish.alignment = 16;
    if (how != nullptr) {
        wish.alignment = how->alignment == 0 ? 1 : how->alignment;
        wish.never_cold = how->never_cold != 0;
        wish.near = how->near;
        wish.in = reinterpret_cast<obase::group*>(how->in);
        if (how->expect > 0 && how->expect <= OBASE_EXPECT_ONCE)
            wish.expect = static_cast<obase::expectation>(how->expect);
        wish.guided = how->guided != 0;
    }
    return arming::allocate(bytes, wish);
}
void obase_free(void* object) {
    if (object != nullptr) free_object(object);
}
size_t obase_usable_size(const void* object) { return arming::usable_size(object); }

void obase_guide_init(obase_guide* guide) {
    ::new (static_cast<void*>(guide)) arming::slot{};
    arming::construct(slot_of(guide), 0);
}
void obase_guide_destroy(obase_guide* guide) { obase_free(arming::destroy(slot_of(guide))); }
void* obase_guide_get(obase_guide* guide) {
#if defined(OBASE_DEBUG_CHECKS)
    if (!arming::in_scope()) {
        std::fputs("obase: obase_guide_get was called outside of a scope\n", stderr);
        std::abort();
    }
#endif
    return arming::dereference(slot_of(guide));
}
int obase_guide_is_null(const obase_guide* guide) {
    return arming::peek(slot_of(guide)) == nullptr;
}
void* obase_guide_exchange(obase_guide* guide, void* object) {
    return arming::address(arming::exchange(slot_of(guide), arming::newborn(object)));
}
int obase_guide_compare_exchange(obase_guide* guide, void** expected, void* desired) {
    return arming::compare_exchange(slot_of(guide), *expected, arming::newborn(desired));
}
void obase_guide_move(obase_guide* to, obase_guide* from) {
    if (to == from) return;
    const arming::scope one_operation;
    const obase::word::bits object = arming::exchange(slot_of(from), 0);
    obase_free(arming::address(arming::exchange(slot_of(to), object)));
}
void obase_forget_guides(void* begin, size_t bytes) {
    arming::forget_range(begin, static_cast<char*>(begin) + bytes);
}

obase_pin* obase_pin_object(void* object) {
    return object == nullptr ? nullptr : reinterpret_cast<obase_pin*>(arming::pin(object));
}
void obase_unpin(obase_pin* pin) {
    if (pin != nullptr) arming::unpin(reinterpret_cast<arming::pin_entry*>(pin));
}

void obase_retire(void* object, void (*destroy)(void* object)) {
    if (object == nullptr) return;
    // A C function may not be marked noexcept, but it cannot throw either.
    using destroyer = void (*)(void*) noexcept;
    if (destroy == nullptr &&
        !obase::runtime_internal::arming_engine::instance().expect_object(object))
        return;
    arming::retire(object, destroy != nullptr ? reinterpret_cast<destroyer>(destroy) : &free_object,
                   arming::usable_size(object));
}

char* obase_configure(const char* name, const char* value) {
    return text_of([&] {
        obase::options settings = obase::runtime::get().settings();
        std::string error = settings.set(name, value);
        if (error.empty()) error = obase::runtime::get().configure(settings);
        return message(error);
    });
}
char* obase_start(void) {
    return text_of([] { return message(obase::runtime::get().start()); });
}
void obase_stop(void) { obase::runtime::get().stop(); }
void obase_set_mode(enum obase_mode mode) {
    obase::runtime::get().set_mode(static_cast<obase::run_mode>(mode));
}
int obase_collect_now(void) { return static_cast<int>(obase::runtime::get().collect_now()); }
uint64_t obase_reclaim_now(void) { return obase::runtime::get().reclaim_now(); }
int obase_drain(double seconds, uint64_t* left) {
    const obase::drain_result result = obase::runtime::get().drain(seconds);
    if (left != nullptr) *left = result.left;
    return static_cast<int>(result.why);
}

char* obase_statistics_json(void) {
    return text_of([] { return copy_of(obase::runtime::get().statistics().to_json()); });
}
char* obase_statistics_prometheus(void) {
    return text_of([] { return copy_of(obase::runtime::get().statistics().to_prometheus()); });
}
char* obase_self_check(void) {
    return text_of([] {
        std::string text;
        for (const std::string& line : obase::runtime::get().self_check()) text += line + '\n';
        return copy_of(text);
    });
}
