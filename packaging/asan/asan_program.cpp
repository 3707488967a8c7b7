// SPDX-License-Identifier: MIT
//
// A user's program, built with AddressSanitizer, which asan_test runs: each mistake is a function that
// returns if nothing stops it. `clean` makes none.
//
// usage: asan_program PROTOCOL CASE
#include <obase/lru_cache.hpp>
#include <obase/obase.hpp>

#include <array>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>
#include <utility>
#include <vector>

namespace {

template <std::size_t Bytes>
struct text {
    std::array<char, Bytes> bytes{};
};
using small = text<64>;     // the block has no other bytes
using medium = text<264>;   // a block of 272 bytes
using large = text<20'096>; // a multiple of 128

// Owns memory that malloc knows. Relocatable: a std::unique_ptr is.
using holder = std::unique_ptr<std::string>;

int use(const void* address) { return *static_cast<const volatile char*>(address); }

[[noreturn]] void give_up(const char* why) {
    std::fprintf(stderr, "asan_program: %s\n", why);
    std::_Exit(3);
}

template <class Protocol>
struct program {
    template <class T>
    using guide = obase::guide<T, Protocol>;
    template <class T>
    static guide<T> make() {
        return obase::make_managed<T, Protocol>();
    }
    template <class T>
    static char* address(const guide<T>& g) {
        obase::basic_scope<Protocol> s;
        return reinterpret_cast<char*>(g.get());
    }
    static obase::runtime& runtime() { return obase::runtime::of<Protocol>(); }
    static void window() {
        if (runtime().collect_now() != obase::collect_result::done) give_up("no window");
    }
    // Moves the object, which was not moved before.
    template <class T>
    static char* move(const guide<T>& g) {
        const char* const before = address(g);
        for (int i = 0; i < 8; ++i) {
            window();
            if (address(g) != before) return address(g);
        }
        give_up("nothing moves");
    }

    template <class T>
    static int freed() {
        guide<T> g = make<T>();
        const char* const stale = address(g);
        g.reset();
        return use(stale);
    }
    // Its last bytes: all of it is seen.
    static int freed_end() {
        guide<medium> g = make<medium>();
        const char* const stale = address(g);
        g.reset();
        return use(stale + sizeof(medium) - 1);
    }
    static int freed_elsewhere() {
        guide<medium> g = make<medium>();
        const char* const stale = address(g);
        std::thread([&g] { g.reset(); }).join();
        return use(stale);
    }
    static int freed_after_its_move() {
        guide<medium> g = make<medium>();
        const char* const stale = move(g);
        g.reset();
        return use(stale);
    }
    // The object lives, elsewhere.
    template <class T>
    static int moved() {
        const guide<T> g = make<T>();
        const char* const stale = address(g);
        move(g);
        runtime().drain();
        window();
        return use(stale);
    }
    static int reclaimed() {
        guide<medium> g = make<medium>();
        const char* const stale = address(g);
        obase::retire(std::move(g));
        if (runtime().drain().why != obase::drain_end::done) give_up("not drained");
        return use(stale);
    }
    template <class T>
    static int beyond() {
        const guide<T> g = make<T>();
        return use(address(g) + sizeof(T));
    }
    // The block behind it has been no object yet.
    static int beyond_all() {
        using one_to_a_run = text<16'384>;
        const guide<one_to_a_run> g = make<one_to_a_run>();
        return use(address(g) + sizeof(one_to_a_run));
    }
    static int beyond_its_copy() {
        const guide<medium> g = make<medium>();
        return use(move(g) + sizeof(medium));
    }
    // The block was that of a larger object.
    static int beyond_in_a_used_block() {
        guide<text<272>> old = make<text<272>>();
        const char* const first = address(old);
        old.reset();
        const guide<medium> g = make<medium>();
        if (address(g) != first) give_up("the block is not used again");
        return use(first + sizeof(medium));
    }
    static int filled_after_its_end() {
        guide<medium> g = make<medium>();
        char* const stale = address(g);
        g.reset();
        std::memset(stale, 1, 8);
        return 0;
    }
    // Only the freed object knew of it.
    static int leaked() {
        struct careless {
            char* memory = nullptr;
        };
        guide<careless> g = make<careless>();
        {
            obase::basic_scope<Protocol> s;
            g->memory = static_cast<char*>(std::malloc(1000));
        }
        g.reset();
        return 0;
    }

    static int clean() {
        static auto* const kept = new std::vector<guide<holder>>; // never ends
        obase::lru_cache<std::string, std::string, Protocol> cache({.bytes = 1 << 20});
        std::vector<std::thread> threads;
        std::atomic<bool> wrong{false};
        for (std::size_t id = 0; id < 3; ++id)
            threads.emplace_back([id, &wrong, &cache] {
                std::vector<guide<obase::bytes>> mine(300);
                for (std::size_t i = 0; i < 30'000; ++i) {
                    guide<obase::bytes>& g = mine[i * 7 % mine.size()];
                    const std::string wanted(16 + (i * 31 + id * 1000) % 700, 'a');
                    g = obase::make_bytes<Protocol>(wanted);
                    obase::basic_scope<Protocol> s;
                    if (g->view() != wanted) wrong = true;
                    const std::string key = std::to_string(i % 1500);
                    if (i % 3 == 0) cache.put(key, wanted);
                    if (const auto found = cache.get(key); found && found->size() < 16)
                        wrong = true;
                }
            });
        for (int i = 0; i < 1000; ++i)
            kept->push_back(obase::make_managed<holder, Protocol>(
                std::make_unique<std::string>(200, static_cast<char>('a' + i % 26))));
        std::vector<guide<large>> many;
        for (int i = 0; i < 20; ++i) many.push_back(make<large>());
        for (int i = 0; i < 12; ++i) {
            window();
            for (std::size_t k = 0; k < kept->size(); k += 1 + static_cast<std::size_t>(i) % 3) {
                obase::basic_scope<Protocol> s;
                if ((**(*kept)[k])[199] != 'a' + static_cast<char>(k % 26)) wrong = true;
            }
            many.erase(many.begin());
        }
        for (std::thread& thread : threads) thread.join();
        const pid_t child = fork();
        if (child == 0) {
            for (const guide<holder>& g : *kept) {
                obase::basic_scope<Protocol> s;
                if ((*g)->size() != 200) std::_Exit(1);
            }
            guide<obase::bytes> one = obase::make_bytes<Protocol>("in the child");
            one.reset();
            std::_Exit(0); // LeakSanitizer takes the threads of the parent for its own
        }
        int status = 0;
        if (waitpid(child, &status, 0) != child || status != 0) give_up("the child failed");
        {
            obase::basic_scope<Protocol> s;
            static auto* const pin = new obase::pin<holder, Protocol>((*kept)[5]);
            if (pin->get() == nullptr) wrong = true;
        }
        // Retired and not reclaimed when the program ends, by a thread that ended and one that did not.
        runtime().stop(); // the collector would take the lists
        const auto retire = [](std::size_t first) {
            for (std::size_t i = first; i < first + 5; ++i) obase::retire(std::move((*kept)[i]));
        };
        retire(5);
        static std::atomic<bool> retired{false};
        std::thread([retire] {
            retire(10);
            retired = true;
            for (;;) pause();
        }).detach();
        while (!retired) std::this_thread::yield();
        return wrong ? 1 : 0;
    }
};

template <class Protocol>
int run(const std::string& name) {
    using p = program<Protocol>;
    Protocol::runtime_of().set_mode(obase::run_mode::move);
    const std::pair<const char*, int (*)()> cases[] = {
        {"freed_small", p::template freed<small>},
        {"freed_medium", p::template freed<medium>},
        {"freed_large", p::template freed<large>},
        {"freed_end", p::freed_end},
        {"freed_elsewhere", p::freed_elsewhere},
        {"freed_after_its_move", p::freed_after_its_move},
        {"moved_small", p::template moved<small>},
        {"moved_medium", p::template moved<medium>},
        {"reclaimed", p::reclaimed},
        {"beyond_medium", p::template beyond<medium>},
        {"beyond_large", p::template beyond<large>},
        {"beyond_all", p::beyond_all},
        {"beyond_its_copy", p::beyond_its_copy},
        {"beyond_in_a_used_block", p::beyond_in_a_used_block},
        {"filled_after_its_end", p::filled_after_its_end},
        {"leaked", p::leaked},
        {"clean", p::clean},
    };
    for (const auto& [known, function] : cases)
        if (name == known) return function();
    give_up("no such case");
}

} // namespace

int main(int, char** arguments) {
    const std::string protocol = arguments[1];
    const int result =
        protocol == "atc" ? run<obase::atc>(arguments[2]) : run<obase::arming>(arguments[2]);
    std::fprintf(stderr, "asan_program: ended\n");
    return result;
}
