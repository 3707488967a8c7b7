// SPDX-License-Identifier: MIT
//
// The obligations of mobility/obligations_test.hpp for marked pointers, on both protocols: the fields
// of a program that the compiler passes rewrote. Slots come to life by a store and end with their
// memory; the text is that of the library (marked_pointers.hpp), in schedules and on threads.
#include "mobility/obligations_test.hpp"
#include "runtime/marked_kinds.hpp"
#include "runtime/marked_pointers.hpp"

#include <obase/allocation_options.hpp>

#include <cstddef>
#include <cstdint>

namespace obase::mobility {
namespace {

// The calling thread, to the functions of marked_pointers, which take no such argument; and the world
// they act on. One world at a time.
template <class Base>
struct current {
    static inline Base* world = nullptr;
    static inline typename Base::user* users[testing::max_threads + 1];
    static inline reclaimer<typename Base::P>* retired = nullptr;
};

// What marked_pointers asks of a protocol, of a thread of the world.
template <class Base, class E>
struct protocol_of_world {
    using here = current<Base>;
    using slot = typename Base::slot;
    using bits = word::bits;
    static Base& world() noexcept { return *here::world; }
    static typename Base::user& user() noexcept { return *here::users[E::thread_index()]; }
    static std::uint64_t bits_of(const void* p) noexcept { return reinterpret_cast<bits>(p); }

    static std::uint64_t enter() noexcept { return world().enter(user()); }
    static void leave(std::uint64_t outer) noexcept { world().leave(user(), outer); }
    class scope {
      public:
        scope() noexcept : outer_(enter()) {}
        ~scope() { leave(outer_); }
        scope(const scope&) = delete;
        scope& operator=(const scope&) = delete;

      private:
        std::uint64_t outer_;
    };
    static void* dereference(slot& s) noexcept {
        return reinterpret_cast<void*>(world().touch(user(), s));
    }
    static bits newborn(void* object) noexcept { return Base::owned(bits_of(object)); }
    static void* address(bits word) noexcept {
        return reinterpret_cast<void*>(Base::address(word));
    }
    static void construct(slot& s, bits word) noexcept { world().construct(user(), s, word); }
    static void forget_range(void* begin, void* end) noexcept {
        world().forget(user(), begin, end);
    }
    static bits exchange(slot& s, bits word) noexcept { return world().exchange(user(), s, word); }
    static bool compare_exchange(slot& s, void*& expected, bits word) noexcept {
        std::uint64_t seen = bits_of(expected);
        const bool done = world().compare_exchange(user(), s, seen, word);
        expected = reinterpret_cast<void*>(seen);
        return done;
    }
    static void retire(void* object, void (*destroy)(void*) noexcept, std::size_t bytes) noexcept {
        here::retired->retire(Base::record_of(user()),
                              *new retired_object{nullptr, object, destroy, bytes});
    }
    static std::size_t usable_size(const void* object) noexcept {
        return world().heap.info(object).size;
    }
};

// And of an engine.
template <class Base>
struct engine_of_world {
    static engine_of_world& instance() noexcept {
        static engine_of_world the_engine;
        return the_engine;
    }
    static Base& world() noexcept { return *current<Base>::world; }
    static bool manages(const void* p) noexcept { return world().heap.contains(p); }
    static std::size_t managed_size(const void* p) noexcept {
        return manages(p) ? static_cast<std::size_t>(world().heap.info(p).size) : 0;
    }
    static bool is_large(const void*) noexcept { return false; }
    static void deallocate(void* p) noexcept { world().heap.free(p); }
    static void* allocate_managed(std::size_t bytes, const allocation_options&) {
        return world().heap.allocate(bytes);
    }
    static auto& directory() noexcept { return world().slots; }
    static auto& threads() noexcept { return world().registry; }
};

template <class Base, class E, template <class> class On>
struct kind_of_world : On<protocol_of_world<Base, E>> {
    using engine = engine_of_world<Base>;
    using flag = typename Base::P::template atomic<bool>;
    static flag& short_of_memory() noexcept { return *flag_; }
    static inline flag* flag_ = nullptr;
};

// The protocol of a world whose slots are marked fields.
template <class E, template <class> class Protocol, template <class> class On>
class marked_protocol : public Protocol<E> {
  public:
    using beneath = Protocol<E>;
    using kind = kind_of_world<beneath, E, On>;
    using functions = runtime_internal::marked_pointers<kind>;
    using slot = typename beneath::slot;
    using user = typename beneath::user;

    marked_protocol() {
        current<beneath>::world = this;
        for (auto& u : current<beneath>::users) u = nullptr;
        current<beneath>::retired = &retired;
        kind::flag_ = &short_of_memory_;
    }
    ~marked_protocol() { current<beneath>::world = nullptr; }

    // The calling thread is this one, also in destructors that it runs.
    static void bind(user& u) noexcept { current<beneath>::users[E::thread_index()] = &u; }

    epoch_number enter(user& u) {
        bind(u);
        return functions::enter();
    }
    void leave(user& u, epoch_number outer) {
        bind(u);
        functions::leave(outer);
    }
    std::uint64_t touch(user& u, slot& s) {
        bind(u);
        return number(functions::load(field(s)));
    }
    // Memory that was never written is given a value. Only managed addresses make it a slot.
    bool construct(user& u, slot& s, std::uint64_t address) {
        bind(u);
        functions::store(field(s), pointer(address));
        return !beneath::heap.contains(pointer(address)) || registered(u, s);
    }
    // What a program does: it takes the address out, and the memory ends.
    std::uint64_t end(user& u, slot& s) {
        bind(u);
        const std::uint64_t address = number(functions::exchange(field(s), nullptr));
        functions::forget(&s, sizeof s);
        return address;
    }
    void forget(user& u, void* begin, void* end) {
        bind(u);
        functions::forget(
            begin, static_cast<std::size_t>(static_cast<char*>(end) - static_cast<char*>(begin)));
    }
    std::uint64_t exchange(user& u, slot& s, std::uint64_t address) {
        bind(u);
        return number(functions::exchange(field(s), pointer(address)));
    }
    bool compare_exchange(user& u, slot& s, std::uint64_t& expected, std::uint64_t address) {
        bind(u);
        void* seen = pointer(expected);
        const bool done = functions::compare_exchange(field(s), &seen, pointer(address)) != 0;
        expected = number(seen);
        return done;
    }
    // The functions say so themselves.
    static void expect_addresses_in_two_slots() noexcept {}
    // Frees as the program's `delete` does.
    void release(user& u, void* object) {
        bind(u);
        functions::release(object, 0, &runtime_internal::free_plain);
    }
    // A program has addresses, no words.
    static std::uint64_t address(std::uint64_t a) { return a; }
    static std::uint64_t owned(std::uint64_t a) { return a; }

    reclaimer<typename beneath::P> retired{beneath::registry};

  private:
    static void** field(slot& s) noexcept { return reinterpret_cast<void**>(&s); }
    static void* pointer(std::uint64_t a) noexcept { return reinterpret_cast<void*>(a); }
    static std::uint64_t number(const void* p) noexcept {
        return reinterpret_cast<std::uint64_t>(p);
    }
    bool registered(user& u, const slot& s) {
        const epoch_number outer = beneath::enter(u);
        const bool is = beneath::slots.test(&s);
        beneath::leave(u, outer);
        return is;
    }

    typename kind::flag short_of_memory_{false};
};

template <class E>
using marked_arming = marked_protocol<E, arming_protocol, runtime_internal::marked_on_arming>;
template <class E>
using marked_atc = marked_protocol<E, atc_protocol, runtime_internal::marked_on_atc>;

// O1, O2, O4: a list whose readers take no lock. A writer puts a node in, unlinks one by giving its
// successor to the field before it, so that the successor is in two fields for a moment, and frees it
// as `delete` does; its field ends with it. No reader meets a freed node.
template <class E, template <class> class Protocol>
void lists_are_read_while_nodes_go() {
    using world_type = shared_world<E, Protocol>;
    world_type w;
    auto& self = w.attach();
    auto* head = w.make_holder(self, nullptr);
    const auto push = [&w, head](auto& u, std::uint64_t id) {
        const typename world_type::scope in(w, u);
        auto* fresh = w.make(id, 1);
        w.give(u, fresh->nested, w.dereference(u, head->guide));
        w.exchange(u, head->guide, fresh);
    };
    const auto pop = [&w, head](auto& u) {
        const typename world_type::scope in(w, u);
        auto* first = w.dereference(u, head->guide);
        w.exchange(u, head->guide, w.dereference(u, first->nested));
        w.release(u, first);
    };
    push(self, 1);
    push(self, 2);
    w.thread("writer", [&](auto& u) {
        for (unsigned i = 0; i < E::rounds(2, 2000); ++i) {
            pop(u);
            push(u, 3 + i);
        }
    });
    w.thread("reader", [&](auto& u) {
        for (unsigned i = 0; i < E::rounds(2, 2000); ++i) {
            const typename world_type::scope in(w, u);
            for (auto* at = w.dereference(u, head->guide); at != nullptr;
                 at = w.dereference(u, at->nested))
                E::require(at->version.load_relaxed() == 1, "the node is alive");
        }
    });
    auto& own = w.attach();
    w.collector(2, [&](std::uint64_t window) {
        w.bind(own);
        w.moves.fetch_add_relaxed(w.collect(window));
        w.retired.reclaim([](retired_object* node) { delete node; });
    });
    E::run();
    pop(self);
    pop(self);
    E::require(w.end_slot(self, head->guide) == nullptr, "the list is empty");
    w.heap.free(head);
    for (int i = 0; i < 3; ++i) w.retired.reclaim([](retired_object* node) { delete node; });
    E::require(w.heap.live_blocks() == 0, "every node was freed once");
    E::require(w.registered() == 0, "no slot is registered that does not exist");
    w.detach(own);
    w.detach(self);
}

using scheduled = in_schedule<testing::deterministic_platform>;
using native = on_threads<os::native_platform>;

// Each body under its own name: two tests for each protocol.
#define OBASE_OBLIGATION_TEST(body, ci_seeds)                                                      \
    TEST(marked_obligations, body##_scheduled) {                                                   \
        explore_schedules(#body, ci_seeds / 2, body<scheduled, marked_arming>);                    \
    }                                                                                              \
    TEST(marked_obligations, body##_on_threads) {                                                  \
        explore_threads(#body, body<native, marked_arming>);                                       \
    }                                                                                              \
    TEST(marked_atc_obligations, body##_scheduled) {                                               \
        explore_schedules(#body, ci_seeds / 2, body<scheduled, marked_atc>);                       \
    }                                                                                              \
    TEST(marked_atc_obligations, body##_on_threads) {                                              \
        explore_threads(#body, body<native, marked_atc>);                                          \
    }
OBASE_OBLIGATIONS(OBASE_OBLIGATION_TEST)
OBASE_OBLIGATION_TEST(lists_are_read_while_nodes_go, 4000)

} // namespace
} // namespace obase::mobility
