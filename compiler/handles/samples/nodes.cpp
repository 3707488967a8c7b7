// SPDX-License-Identifier: MIT
// flags: -std=c++17
// C++: what libstdc++'s binary walks, reads and writes is right and still moves: trees, lists, hash tables, strings, what streams
// print and read, dynamic_cast, condition variables. So nothing of it comes home.
#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <sstream>
#include <stdexcept>
#include <string>
#include <thread>
#include <unordered_map>
#include <vector>

#if __has_include(<obase/handles.h>)
#include <obase/handles.h>
#else // clang's own
struct obase_handles_figures {
    unsigned long long came_home, foreign_faults;
};
extern "C" void obase_handles_read_figures(struct obase_handles_figures*) {}
#endif

// Since this was asked before. nullptr: whatever did.
static void no_object_came_home(const char* where) {
    struct obase_handles_figures now = {};
    obase_handles_read_figures(&now);
    static unsigned long long before = 0;
    if (where != nullptr && now.came_home + now.foreign_faults != before)
        std::printf("%s: %llu came home, %llu foreign faults\n", where,
                    (unsigned long long)now.came_home, (unsigned long long)now.foreign_faults);
    before = now.came_home + now.foreign_faults;
}

static unsigned long random_state = 1;
static unsigned random_number() {
    random_state = random_state * 6364136223846793005u + 1442695040888963407u;
    return (unsigned)(random_state >> 33);
}

// A red and black tree as libstdc++'s header sees it: parents, order, colours, black nodes on each way.
static int black_height(const std::_Rb_tree_node_base* x) {
    if (x == nullptr) return 1;
    for (const auto* child : {x->_M_left, x->_M_right})
        if (child != nullptr && (child->_M_parent != x ||
                                 (x->_M_color == std::_S_red && child->_M_color == std::_S_red)))
            std::abort();
    const int left = black_height(x->_M_left);
    if (left != black_height(x->_M_right)) std::abort();
    return left + (x->_M_color == std::_S_black);
}
struct looked_at : std::set<int> {
    void check() {
        const std::_Rb_tree_node_base* header = end()._M_node;
        if (header->_M_parent != nullptr && (header->_M_parent->_M_color != std::_S_black ||
                                             header->_M_parent->_M_parent != header))
            std::abort();
        black_height(header->_M_parent);
        std::size_t count = 0;
        int last = -1;
        for (int each : *this) {
            if (each <= last) std::abort();
            last = each;
            ++count;
        }
        for (auto at = rbegin(); at != rend(); ++at, --count)
            if (*at != last && at == rbegin()) std::abort();
        if (count != 0 || size() != (std::size_t)std::distance(begin(), end())) std::abort();
    }
};

static void trees() {
    const std::unique_ptr<looked_at> all(new looked_at);
    std::vector<bool> there(64);
    for (int i = 0; i < 800; ++i) {
        const int each = (int)(random_number() % 64);
        if (random_number() % 2 != 0)
            all->insert(each), there[(std::size_t)each] = true;
        else
            all->erase(each), there[(std::size_t)each] = false;
        all->check();
        for (int j = 0; j < 64; ++j)
            if ((all->count(j) != 0) != there[(std::size_t)j]) std::abort();
    }
    looked_at copy(*all);
    copy.check();
    while (!copy.empty()) {
        copy.erase(random_number() % 2 != 0 ? copy.begin() : std::prev(copy.end()));
        copy.check();
    }
    std::map<std::string, int> counts;
    for (int i = 0; i < 300; ++i) ++counts["a key that is not short " + std::to_string(i % 17)];
    counts.erase("a key that is not short 3");
    int sum = 0;
    for (const auto& [key, count] : counts) sum += count * (int)key.size();
    std::printf("%zu %d\n", counts.size(), sum);
    no_object_came_home("trees");
}

static void check(const std::list<int>& all) {
    const std::__detail::_List_node_base* at = all.end()._M_node;
    for (std::size_t i = 0; i <= all.size(); ++i, at = at->_M_next)
        if (at->_M_next->_M_prev != at) std::abort();
    if (at != all.end()._M_node) std::abort();
}
static void lists() {
    auto one = std::make_unique<std::list<int>>();
    std::list<int> other, none;
    const auto check_all = [&] {
        for (const auto* each : {one.get(), &other, &none}) check(*each);
    };
    for (int i = 0; i < 40; ++i) one->push_back((i * 7) % 40), other.push_front(i);
    one->sort();
    one->splice(std::next(one->begin()), other, std::next(other.begin(), 5),
                std::next(other.begin(), 9));
    check_all();
    one->reverse();
    check_all();
    one->swap(other);
    check_all();
    one->remove_if([](int x) { return x % 3 == 0; });
    other.swap(none);
    check_all();
    other.swap(*one);
    check_all();
    none.swap(*one);
    check_all();
    std::swap(none, other);
    one->merge(none);
    check_all();
    long digest = 0;
    for (int each : *one) digest = digest * 31 + each;
    for (auto at = one->rbegin(); at != one->rend(); ++at) digest = digest * 31 + *at;
    std::printf("%zu %zu %zu %ld\n", one->size(), other.size(), none.size(), digest % 1000000007);
    no_object_came_home("lists");
}

static void tables() {
    auto table = std::make_unique<std::unordered_map<std::string, std::unique_ptr<int>>>();
    for (int i = 0; i < 300; ++i)
        (*table)[std::string((std::size_t)(i % 40), 'k') + std::to_string(i)] =
            std::make_unique<int>(i);
    long sum = 0;
    for (int i = 0; i < 300; i += 3) {
        const auto found = table->find(std::string((std::size_t)(i % 40), 'k') + std::to_string(i));
        sum += *found->second;
        table->erase(found);
    }
    table->rehash(2000);
    std::printf("%zu %ld\n", table->size(), sum);
    no_object_came_home("tables");
}

__attribute__((noinline)) static void all_of_strings(std::string& s) {
    s.append(100, 'a').append("bcd").append(s, 1, 3);
    s.insert(2, "in the midst of it").replace(4, 7, std::string(90, 'r')).erase(1, 5);
    s.insert(s.begin() + 3, 'X');
    s.push_back('!');
    s.resize(s.size() + 40, '.');
    s.reserve(1000);
    s += s.substr(7, 20);
    s.assign(s, 3, 200);
    s.replace(s.find("rrr"), 3, s.c_str() + 10, 12); // of itself
}
static void strings() {
    auto s = std::make_unique<std::string>("begin");
    all_of_strings(*s);
    const std::string copy = *s;
    std::string moved = std::move(*s);
    unsigned digest = 0;
    for (char c : moved) digest = digest * 31 + (unsigned char)c;
    std::printf("%zu %u %zu %zu %zu %d %d\n", moved.size(), digest, moved.find_first_of("X!"),
                moved.rfind("bcd"), moved.find_last_not_of("."), copy.compare(moved),
                copy.compare(1, 5, "zz") < 0);
    std::wstring wide(70, L'w');
    wide.insert(10, L"inserted").append(wide);
    std::printf("%zu %zu\n", wide.size(), wide.find(L"serted", 30));
    no_object_came_home("strings");
    try {
        (void)copy.at(100000);
    } catch (const std::out_of_range&) {
        std::printf("out of range\n");
    }
}

static void streams() {
    std::ostringstream out;
    auto text = std::make_unique<std::string>(60, 't');
    out << *text << ' ' << text->c_str() << '\n' << 12 << " a line\n\nlast";
    out.write(text->data(), 5);
    no_object_came_home("ostream");
    std::ostringstream wide;
    wide.width(70);
    wide << *text << std::left;
    wide.width(65);
    wide << text->c_str() << std::string(10000, 'w') << '|';
    std::printf("%zu %zu %zu; ", wide.str().find('t'), wide.str().find('w'), wide.str().find('|'));
    no_object_came_home("ostream");
    std::istringstream in(out.str()); // is copied by libstdc++'s binary
    no_object_came_home(nullptr);
    auto words = std::make_unique<std::vector<std::string>>(2);
    in >> words->at(0) >> words->at(1);
    std::printf("%zu %d;", words->at(0).size(), words->at(0) == words->at(1));
    auto line = std::make_unique<std::string>();
    for (char end : {'\n', '\n', 'n', '\n', '\n', '\n', '\n'})
        std::printf(" %d:%s", !!std::getline(in, *line, end), line->c_str());
    std::printf(" %d%d\n", in.eof(), in.fail());
    std::istringstream narrow("  abcdef g"); // a short one, on the stack
    narrow.width(3);
    narrow >> *line;
    std::printf("%s %d", line->c_str(), narrow.eof());
    narrow >> *line >> *line;
    std::printf(" %s %d%d", line->c_str(), narrow.eof(), narrow.fail());
    narrow >> *line;
    std::printf(" %d%d\n", narrow.eof(), narrow.fail());
    no_object_came_home("istream");
}

struct first {
    virtual ~first() = default;
    int a = 1;
};
struct second {
    virtual ~second() = default;
    int b = 2;
};
struct both : first, second {
    int c = 3;
};
static void casts() {
    std::vector<std::unique_ptr<second>> all;
    for (int i = 0; i < 10; ++i)
        all.push_back(i % 3 == 0 ? std::make_unique<second>() : std::make_unique<both>());
    int sum = 0;
    for (const auto& each : all) {
        if (const first* aside = dynamic_cast<first*>(each.get()))
            sum += aside->a; // in front of it, in the same object
        if (const both* whole = dynamic_cast<both*>(each.get()))
            sum += 10 * whole->c + 100 * (dynamic_cast<const void*>(each.get()) == whole);
    }
    try {
        (void)dynamic_cast<both&>(*all[0]);
    } catch (const std::bad_cast&) {
        sum += 1000;
    }
    std::printf("%d\n", sum);
    no_object_came_home("casts");
}

// The lock and what is waited for lie in objects of their own.
static void threads() {
    struct state {
        std::list<std::string> queue;
        bool done = false;
    };
    auto mutex = std::make_unique<std::mutex>();
    auto changed = std::make_unique<std::condition_variable>();
    auto all = std::make_unique<state>();
    no_object_came_home(nullptr);
    std::size_t eaten[2] = {};
    changed->notify_one();
    changed->notify_all();
    no_object_came_home("condition variables");
    bool there = false, waits = false;
    std::thread other([&] {
        {
            std::unique_lock<std::mutex> lock(*mutex);
            there = true;
            changed->notify_all();
            changed->wait(lock, [&] { return waits; });
            waits = false;
        }
        changed->notify_one();
    });
    {
        std::unique_lock<std::mutex> lock(*mutex);
        changed->wait_for(lock, std::chrono::hours(1), [&] { return there; });
        waits = true;
        changed->notify_one();
        while (waits) changed->wait(lock);
    }
    other.join();
    std::vector<std::thread> eaters;
    for (std::size_t& mine : eaten)
        eaters.emplace_back([&] {
            thread_local std::map<std::string, int> seen; // destroyed when the thread ends
            for (;;) {
                std::unique_lock<std::mutex> lock(*mutex);
                changed->wait(lock, [&] { return all->done || !all->queue.empty(); });
                if (all->queue.empty()) return;
                const std::string one = std::move(all->queue.front());
                all->queue.pop_front();
                lock.unlock();
                try {
                    if (one.size() % 7 == 0) throw std::runtime_error(one);
                    mine += one.size();
                } catch (const std::runtime_error& e) {
                    mine += std::string(e.what()).size();
                }
                ++seen[one];
            }
        });
    for (int i = 0; i < 150; ++i) {
        {
            const std::lock_guard<std::mutex> lock(*mutex);
            all->queue.push_back(std::string((std::size_t)(20 + i % 30), 'q'));
        }
        changed->notify_one();
    }
    {
        const std::lock_guard<std::mutex> lock(*mutex);
        all->done = true;
    }
    changed->notify_all();
    for (std::thread& each : eaters) each.join();
    std::printf("%zu\n", eaten[0] + eaten[1]);
}

int main() {
    trees();   //> 16 7170
    lists();   //> 67 0 0 333368164
    tables();  //> 200 14850
    strings(); //> 209 1795979957 0 18446744073709551615 208 0 1
    //> 156 90
    //> out of range
    streams(); //> 10 135 10135; 60 1; 1: 1:12 a line 1:
    //> lastttttt 0:
    //> lastttttt 0:
    //> lastttttt 0:
    //> lastttttt 0:
    //> lastttttt 11
    //> abc 0 g 10 11
    casts();   //> 1786
    threads(); //> 5175
}
