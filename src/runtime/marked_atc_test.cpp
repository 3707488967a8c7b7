// SPDX-License-Identifier: MIT
//
// Marked pointers on the ATC protocol, and what only this protocol has: counts in the words, which no
// store may take away.
#include "runtime/atc_engine.hpp"

#include <obase/atc.hpp>
#include <obase/word/atc.hpp>

#include <cstdint>
#include <pthread.h>

namespace {

struct kind {
    using protocol = obase::atc;
    using engine = obase::runtime_internal::atc_engine;
    static bool waits_at(std::uint64_t word) {
        return protocol::layout::is_visited(word) &&
               obase::runtime_internal::core().state.phase.load_seq_cst() ==
                   obase::mobility::atc_phase::prepare;
    }
};

} // namespace

#define OBASE_MARKED(name) obase_marked_atc_##name
#include "runtime/marked_test.hpp"

namespace {

// A reader is counted in a field when another operation, which counts as well, puts another object
// there. The reader's next look is a plain load: it relies on the count that it has, so the other object
// must not move either, while both are open.
TEST(marked, an_object_stored_where_a_reader_is_counted_does_not_move) {
    quiet_runtime<protocol>();
    marked<node> slot{};
    slot.set(make_node(1));
    std::atomic<int> step{0};
    std::thread window;
    std::thread reader;
    std::thread writer;
    const auto until = [&step](int now) {
        while (step < now) std::this_thread::yield();
    };
    {
        const operation holds_up_the_window;
        (void)slot.get(); // touched in NEW: it is to move to HOT
        window = std::thread([] { EXPECT_EQ(runtime().collect_now(), collect_result::done); });
        wait_until_visited(slot);
        reader = std::thread([&] {
            const operation one;
            EXPECT_EQ(slot.get()->key, 1u);
            step = 1;
            until(2);
            const node* held = slot.get();
            step = 3;
            until(4);
            EXPECT_TRUE(held->right() && held->key == 2);
            EXPECT_EQ(slot.get(), held);
        });
        writer = std::thread([&] {
            const operation one;
            until(1);
            const auto still_counted = [&] { return protocol::layout::count(slot.word()) != 0; };
            node* first = slot.exchange(nullptr);
            EXPECT_TRUE(still_counted());
            slot.set(nullptr);
            EXPECT_TRUE(still_counted());
            slot.set(make_node(2));
            EXPECT_TRUE(still_counted());
            OBASE_MARKED(delete)(first, sizeof *first, 0);
            step = 2;
            until(4);
        });
        until(3);
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(50)); // time to move it
    step = 4;
    reader.join();
    writer.join();
    window.join();
    const operation one;
    OBASE_MARKED(delete)(slot.exchange(nullptr), sizeof(node), 0);
    OBASE_MARKED(forget)(&slot, sizeof slot);
}

// A thread may end in an operation that does not count. Destructors that run after it was told to
// forget its record are outside of operations, where a load has to be a call.
TEST(marked, a_thread_that_ended_in_an_operation_is_outside_of_any) {
    quiet_runtime<protocol>();
    static std::atomic<std::uint64_t> seen;
    seen = ~std::uint64_t{0};
    pthread_key_t key{}; // made after the runtime's: destructors run in the order of the keys
    ASSERT_EQ(pthread_key_create(&key, [](void*) { seen = obase_marked_atc_direct; }), 0);
    std::thread([key] {
        pthread_setspecific(key, &seen);
        (void)OBASE_MARKED(enter)();
        EXPECT_EQ(obase_marked_atc_direct, obase::word::atc::access_bit);
    }).join();
    EXPECT_EQ(seen, 0u);
    pthread_key_delete(key);
}

} // namespace
