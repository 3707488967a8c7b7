// SPDX-License-Identifier: MIT
//
// right: the values of a map and of a hash table have marked fields.
#include "torture.h"

#include <map>
#include <memory>
#include <string>
#include <unordered_map>
struct value {
    std::unique_ptr<char[]> text OBASE_GUIDED;
    void set(const std::string& to) {
        text = std::make_unique<char[]>(to.size() + 1);
        std::strcpy(text.get(), to.c_str());
    }
    std::size_t length() const { return text ? std::strlen(text.get()) : 0; }
};
int main() {
    std::map<int, value> ordered;
    std::unordered_map<std::string, value> hashed;
    for (int i = 0; i < 60; ++i) {
        ordered[i * 7 % 60].set("text " + std::to_string(i));
        hashed["key" + std::to_string(i)].set(std::string(std::size_t(i), 'x'));
    }
    settle();
    for (int i = 0; i < 60; i += 2) {
        ordered.erase(i);
        hashed.erase("key" + std::to_string(i));
    }
    settle();
    std::size_t n = 0;
    for (const auto& [key, v] : ordered) n += v.length();
    for (const auto& [key, v] : hashed) n = n * 3 % 10007 + 0 * v.length();
    std::printf("%zu\n", n);
}
