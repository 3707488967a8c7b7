// SPDX-License-Identifier: MIT
//
// biased_sections: sections of code over things that belong to one thread, which enters them with two plain stores,
// until another thread wants one of the things: then that thing is shared for good, and is guarded by a lock
// of the caller's (biased locking, with one change of mind).
//
//     if (sections.enter(thing.owner)) { change(thing); sections.leave(); }   // its thread: no lock
//     else { sections.share(thing.owner); lock.lock(); change(thing); lock.unlock(); }
//
// Cost: enter() and leave() are two loads and a store each; share() of a thing that is another thread's is a
// membarrier (a system call of some microseconds), and of a shared one a load. So what is owned should be large: a
// thousand groups, and not one.
//
// Why it is safe, with T the owner and R the thread that shares:
//   T   makes `inside` odd, compiler fence, then reads the owner word
//   R   sets the word's `leaving` bit (compare-exchange), then membarrier(), then reads `inside`
// Either T's store of `inside` came before its share of the barrier, and R sees it and waits until it changes; or
// T's read of the word comes after, and T does not go in. Every thread that finds the bit does all of R's steps
// itself: that another one has set the bit does not say that T has left. Only after them the word becomes 0.
//
// At hand. A thread that goes on with a thing that it found its own before need not read that thing's word again, nor
// ask whether a fork stops it: R sets `wanted` of T before its barrier, whatever the thing, and T, which makes `inside`
// odd and then finds `wanted`, gives way: it takes `wanted` back to 0 and then reads the word. The exchange that takes it
// reads R's store, and so sees R's bit; or R's store comes after, and the next one finds it. While a fork stops all
// threads `wanted` stays set.
//
// All zero bytes are sections over nothing, and threads that have been in none. Threads without a number own nothing. Where there is no membarrier nothing has an owner.
#pragma once

#include <array>
#include <cstdint>
#include <type_traits>

#include "heap/thread_number.hpp"
#include "os/waiting.hpp"

namespace obase::heap {

// For threads that have nothing of their own.
struct nothing_of_its_own {};

// `Own`: what each number has, beside what sections take, and is changed in the sections of the thread with the number.
template <class P, class Own = nothing_of_its_own>
class biased_sections {
  public:
    // On tests' platforms, and under debug checks.
#if defined(OBASE_DEBUG_CHECKS)
    static constexpr bool checks = true;
#else
    static constexpr bool checks = !std::is_same_v<P, os::native_platform>;
#endif

    // 0: shared, for good.
    using owner_word = typename P::template atomic<std::uint32_t>;

    // True: the calling thread owns the thing and is in the section; it calls leave(). False: it is not, and
    // share() is next. Sections do not nest (checked under debug checks, and on tests' platforms).
    bool enter(const owner_word& owner) noexcept {
        const unsigned me = thread_number<P>::of_caller();
        return me != no_thread_number && owner.load_relaxed() == me + 1 && enter(owner, me);
    }
    // The same, by a thread that has looked its number up, with what leave() is given.
    struct holder;
    struct section {
        holder* its; // null: the thread is in none
        std::uint32_t inside;
        explicit operator bool() const noexcept { return its != nullptr; }
    };
    section enter(const owner_word& owner, unsigned me) noexcept {
        const section in = go_in(me);
        if (owner.load_relaxed() == me + 1) [[likely]]
            return in;
        leave(in);
        return {};
    }
    // enter() in two halves, for a thread that need not wait for the end of a fork: it may leave at once, and must
    // where it is wanted, or where it has not been in a section over the thing before.
    section look_in(unsigned me) noexcept { return look_in(holders_[me]); }
    static section look_in(holder& mine) noexcept {
        const std::uint32_t inside = mine.inside.load_relaxed() + 1;
        if constexpr (checks) P::check((inside & 1) != 0, "sections nest");
        mine.inside.store_relaxed(inside);
        P::compiler_fence(); // pairs with share() and stop(), by their membarrier
        return {&mine, inside};
    }
    // False: all that was the thread's own when it last asked is its own until it leaves.
    static bool is_wanted(const section& in) noexcept {
        // Pairs with share() and stop(), by their membarrier.
        return in.its->wanted.load_relaxed() != 0;
    }
    // Of a thread that is wanted, in the section, before it leaves: whether the thing is still its own. Asked of one
    // thing only: afterwards the thread believes nothing of others.
    bool owns_after_all(holder& mine, const owner_word& owner) noexcept {
        take_wanted(mine);
        return owns(owner, number_of(mine));
    }
    // The same of a thread for which only a fork can ask.
    void take_wanted(holder& mine) noexcept {
        mine.wanted.exchange_acq_rel(0); // pairs with tell()
        if (stopped_.load_acquire() != 0) mine.wanted.store_relaxed(1);
    }
    // At hand, of a thread that is not wanted: whoever shares the thing waits until it has left.
    void check_own(const owner_word& owner, const holder& mine) const noexcept {
        if constexpr (checks)
            P::check((owner.load_relaxed() & ~leaving) == number_of(mine) + 1,
                     "what is at hand is another thread's");
    }
    // False: leave() is next, once more.
    static bool leave_unless_waited_for(const section& in) noexcept {
        in.its->inside.store_release(in.inside + 1);
        return !in.its->left.is_waited_for();
    }
    static void leave(const section& in) noexcept {
        in.its->inside.store_release(in.inside + 1);
        in.its->left.notify();
    }
    // A section over what the calling thread has of its own under its number. False: it has no number.
    bool enter() noexcept {
        const unsigned me = thread_number<P>::of_caller();
        if (me == no_thread_number) return false;
        go_in(me);
        return true;
    }
    // In a section: whether the thing, too, is the calling thread's. If so it stays it until leave().
    bool owns(const owner_word& owner) const noexcept {
        return owns(owner, thread_number<P>::of_caller());
    }
    bool owns(const owner_word& owner, unsigned me) const noexcept {
        return owner.load_relaxed() == me + 1;
    }
    // That the thread is in.
    static void leave(holder& mine) noexcept { leave({&mine, mine.inside.load_relaxed()}); }
    void leave() noexcept { leave(holders_[thread_number<P>::of_caller()]); }
    holder& of_number(unsigned number) noexcept { return holders_[number]; }
    unsigned number_of(const holder& one) const noexcept {
        return static_cast<unsigned>(&one - holders_.data());
    }
    const auto& all() const noexcept { return holders_; }

    // What a new thing's owner word is set to, by the thread that makes it.
    std::uint32_t owner_for_caller() noexcept {
        const unsigned me = thread_number<P>::of_caller();
        if (me == no_thread_number || !P::has_membarrier()) return 0;
        if (owned_.load_acquire() == 0) owned_.store_seq_cst(1); // pairs with stop()
        return stopped_.load_seq_cst() == 0 ? me + 1 : 0;
    }

    // Afterwards the thing is shared and no thread is in a section over it. Precondition: the caller is in none,
    // and holds no lock that one in a section may wait for.
    void share(owner_word& owner) noexcept {
        std::uint32_t seen = owner.load_acquire(); // pairs with the last step
        while (seen != 0 && (seen & leaving) == 0)
            if (owner.cas_acq_rel(seen, seen | leaving)) seen |= leaving;
        if (seen == 0) return;
        const unsigned its = (seen & ~leaving) - 1;
        tell(its);
        if (its != thread_number<P>::of_caller()) {
            order_all_threads(); // pairs with go_in()
            wait_until_left(its);
        }
        owner.cas_acq_rel(seen, 0); // or another thread did
    }

    // Fork. Afterwards no thread is in a section, and none goes in before let_go().
    void stop() noexcept {
        stopped_.store_seq_cst(1);
        // Nothing has an owner, nor will before let_go(). Not a question of has_membarrier(): it may have worked before.
        if (owned_.load_seq_cst() == 0) return; // pairs with owner_for_caller()
        for (unsigned number = 0; number < thread_number<P>::at_once; ++number) tell(number);
        order_all_threads();
        const unsigned me = thread_number<P>::of_caller();
        for (unsigned number = 0; number < thread_number<P>::at_once; ++number)
            if (number != me) wait_until_left(number);
    }
    void let_go() noexcept {
        stopped_.store_release(0);
        going_.notify();
    }
    // Before let_go() in the child of a fork: a thread that is not there any more may have looked in.
    void only_caller_is_left() noexcept {
        for (holder& one : holders_) {
            one.inside.store_relaxed(one.inside.load_relaxed() & ~1U);
            one.left.forget_waiters();
        }
        going_.forget_waiters();
        thread_number<P>::only_caller_is_left();
    }

    struct alignas(64) holder {
        typename P::template atomic<std::uint32_t> inside; // odd: in a section
        os::wait_point<P> left;
        typename P::template atomic<std::uint32_t> wanted; // 1: what is at hand may be another's
        [[no_unique_address]] Own own;
    };

  private:
    static constexpr std::uint32_t leaving = std::uint32_t{1} << 31;
    static constexpr unsigned barrier_tries = 20;
    section go_in(unsigned me) noexcept {
        for (;;) {
            const section in = look_in(me);
            if (stopped_.load_relaxed() == 0) [[likely]]
                return in;
            wait_to_go(in);
        }
    }
    [[gnu::noinline]] void wait_to_go(const section& in) noexcept {
        leave(in);
        going_.wait([this] { return stopped_.load_acquire() == 0; });
    }
    // After the word, or `stopped_`, has been set, and before the barrier.
    void tell(unsigned number) noexcept {
        holders_[number].wanted.store_release(1); // pairs with take_wanted()
    }
    void wait_until_left(unsigned number) noexcept {
        holder& its = holders_[number];
        const std::uint32_t seen = its.inside.load_acquire();
        if ((seen & 1) != 0) its.left.wait([&] { return its.inside.load_acquire() != seen; });
    }
    // The kernel may have had no memory for it. Where it fails for good, which takes a filter of system calls
    // that is set while the program runs, 20 ms stand for it: no processor keeps a store to itself for so long.
    static void order_all_threads() noexcept {
        for (unsigned i = 0; i < barrier_tries && !P::membarrier(); ++i) P::sleep_ns(1'000'000);
    }

    typename P::template atomic<std::uint32_t> stopped_;
    typename P::template atomic<std::uint32_t> owned_; // something had an owner, ever
    os::wait_point<P> going_;
    std::array<holder, thread_number<P>::at_once> holders_;
};

} // namespace obase::heap
