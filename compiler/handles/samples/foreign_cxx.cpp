// SPDX-License-Identifier: MIT
// flags: -std=c++17
// foreign: foreign_cxx_part.cpp
// C++: containers that foreign code keeps and changes; exceptions and longjmp through frames that use what has moved; a fork
// beside threads whose thread-local containers are destroyed.
#include <atomic>
#include <csetjmp>
#include <cstdio>
#include <cstdlib>
#include <list>
#include <map>
#include <set>
#include <stdexcept>
#include <string>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>
#include <vector>

void keep(std::string*, std::map<std::string, std::string>*);
std::size_t use(int);

static void foreign() {
    auto* text = new std::string(50, 's');
    auto* all = new std::map<std::string, std::string>;
    keep(text, all);
    std::size_t seen = 0;
    for (int i = 0; i < 60; ++i) {
        (*all)["ours " + std::to_string(i)] = std::string(40, 'o');
        *text += std::string(10, 't');
        seen += use(i) == text->size() + all->size();
        if (i % 3 == 0) all->erase("theirs " + std::to_string(i / 2));
    }
    std::size_t bytes = 0;
    for (const auto& [key, value] : *all) bytes += key.size() + value.size();
    std::printf("%zu %zu %zu\n", seen, text->size(), bytes);
    delete text;
    delete all;
}

using lists = std::map<std::string, std::list<std::string>>;
static void thrower(lists& all, int depth) {
    struct looked_at {
        std::string text;
        ~looked_at() {
            if ((text += "x").size() != 41) std::abort();
        }
    };
    auto& list = all["a key that is long enough " + std::to_string(depth)];
    list.push_back(std::string(40, (char)('a' + depth)));
    const looked_at here{list.front()};
    if (depth == 0) throw std::runtime_error(list.front());
    try {
        thrower(all, depth - 1);
    } catch (const std::logic_error&) {
        std::abort();
    }
}
static void exceptions() {
    std::size_t caught = 0;
    for (int i = 0; i < 10; ++i) {
        lists all;
        try {
            thrower(all, 12);
        } catch (const std::exception& e) {
            caught += all.size() + std::string(e.what()).size();
        }
        std::exception_ptr kept;
        try {
            throw std::vector<std::string>(3, std::string(50, 'q'));
        } catch (...) {
            kept = std::current_exception();
        }
        for (int j = 0; j < 3; ++j) try {
                std::rethrow_exception(kept);
            } catch (std::vector<std::string>& all_of_them) {
                all_of_them.push_back(all_of_them.front());
                caught += all_of_them.size();
            }
    }
    std::printf("%zu\n", caught);
}

static std::jmp_buf back;
static void jumper(std::vector<std::string>* all, int depth) {
    all->push_back(std::string(30, 'j'));
    if (depth == 0) std::longjmp(back, 1);
    jumper(all, depth - 1);
}
static void jumps() {
    std::size_t size = 0;
    for (volatile int i = 0; i < 10; i = i + 1) {
        auto* volatile all = new std::vector<std::string>;
        if (setjmp(back) == 0) jumper(all, 10);
        size += all->size() * all->back().size();
        delete all;
    }
    std::printf("%zu\n", size);
}

static thread_local struct counts {
    std::map<std::string, int> all;
    ~counts() {
        int sum = 0;
        for (const auto& [key, count] : all) sum += count;
        if (sum != 50) std::abort();
    }
} of_thread;
static void work(int seed) {
    std::set<std::string> some;
    for (int i = 0; i < 50; ++i) {
        of_thread.all[std::to_string(i) + std::string(20, 'k')] = 1;
        some.insert(std::to_string(i * seed % 37) + std::string(20, 's'));
    }
    some.erase(some.begin());
}
static void forks() {
    std::atomic<bool> stop{false};
    std::vector<std::thread> all;
    for (int i = 1; i < 3; ++i)
        all.emplace_back([&, i] {
            while (!stop) std::thread(work, i).join();
        });
    std::map<std::string, std::string> map;
    for (int i = 0; i < 100; ++i) map[std::to_string(i)] = std::string(50, 'v');
    int good = 0;
    for (int i = 0; i < 3; ++i) {
        const pid_t child = fork();
        if (child == 0) {
            for (int j = 0; j < 100; ++j) {
                if (map[std::to_string(j)] != std::string(50, 'v')) _exit(1);
                map.erase(std::to_string(j));
                map["new " + std::to_string(j)] = std::string(60, 'w');
            }
            std::thread(work, 5).join();
            _exit(map.size() == 100 ? 0 : 2);
        }
        int status = 1;
        good += waitpid(child, &status, 0) == child && status == 0;
    }
    stop = true;
    for (std::thread& each : all) each.join();
    std::printf("%d\n", good);
}

int main() {
    foreign();    //> 60 1070 3562
    exceptions(); //> 680
    jumps();      //> 3300
    forks();      //> 3
}
