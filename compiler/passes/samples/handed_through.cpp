// SPDX-License-Identifier: MIT
//
// An object on its way from malloc to its field: through an owner of the program's own, which lies
// beside other things in a struct, goes by reference to a helper, and then to a constructor that is an
// operation itself. The collector sees the object only if all of it is followed.
#include "forcing.hpp"

#include <obase/marked.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <new>
#include <string>
#include <utility>

struct text {
    std::uint64_t number;
};

class owner {
  public:
    owner() = default;
    explicit owner(text* t) : text_(t) {}
    owner(owner&& from) noexcept : text_(std::exchange(from.text_, nullptr)) {}
    owner& operator=(owner&& from) noexcept {
        std::swap(text_, from.text_);
        return *this;
    }
    ~owner() { std::free(text_); }
    text* release() { return std::exchange(text_, nullptr); }

  private:
    text* text_ = nullptr;
};

inline owner make(std::uint64_t number) {
    void* memory = std::malloc(sizeof(text));
    if (memory == nullptr) throw std::bad_alloc();
    return owner(::new (memory) text{number});
}

struct shelf {
    OBASE_ENTRY explicit shelf(owner&& first) : held(first.release()) {}
    OBASE_ENTRY ~shelf() { std::free(held); }
    OBASE_INTERNAL void replace(owner& by) { by = owner(std::exchange(held, by.release())); }

    text* held OBASE_GUIDED;
};

struct request {
    std::string name; // memory of its own, which no slot gets
    owner value;
};

OBASE_ENTRY std::unique_ptr<shelf> new_shelf(std::uint64_t number) {
    return std::make_unique<shelf>(make(number));
}
OBASE_ENTRY std::size_t set(shelf& s, std::uint64_t number) {
    request r{"a name that does not fit into the string itself, " + std::to_string(number),
              make(number)};
    s.replace(r.value);
    return r.name.size();
}
OBASE_ENTRY std::uint64_t get(const shelf& s) { return s.held->number; }

int main() {
    begin_forcing();
    std::unique_ptr<shelf> shelves[500];
    for (std::uint64_t i = 0; i < 500; ++i) shelves[i] = new_shelf(i);
    for (std::uint64_t round = 0; round < 20; ++round) {
        std::uint64_t sum = 0;
        for (std::uint64_t i = 0; i < 500; ++i) {
            if (i % 3 == 0) sum += set(*shelves[i], i * 7 + round);
            sum = sum * 3 + get(*shelves[i]);
        }
        wait_for_windows();
        std::printf("%llu\n", static_cast<unsigned long long>(sum));
    }
    end_forcing();
}
