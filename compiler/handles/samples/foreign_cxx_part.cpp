// SPDX-License-Identifier: MIT
// Of foreign_cxx.cpp, compiled without handles: keeps a string and a map of the program, and changes both.
#include <map>
#include <string>

static std::string* text;
static std::map<std::string, std::string>* all;

void keep(std::string* a, std::map<std::string, std::string>* b) {
    text = a;
    all = b;
}
std::size_t use(int i) {
    (*all)["theirs " + std::to_string(i)] = std::string(45, 'p');
    text->append(7, 'x');
    if (i % 2 != 0) all->erase(all->begin());
    return text->size() + all->size();
}
