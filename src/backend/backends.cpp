// SPDX-License-Identifier: MIT
#include "backend/backends.hpp"

#include "backend/hints.hpp"

namespace obase::backend {

namespace {

template <class Backend>
std::unique_ptr<backend> make(const messenger& say) {
    return std::make_unique<Backend>(say);
}

struct row {
    const char* name = nullptr;
    backend_maker make = nullptr;
};

// The table. The empty rows are for add_backend().
row rows[8] = {
    {"kernel", make<hints>},
};

const row* find(std::string_view name) noexcept {
    for (const row& one : rows)
        if (one.name != nullptr && one.name == name) return &one;
    return nullptr;
}

} // namespace

std::unique_ptr<backend> make_backend(std::string_view name, const messenger& say,
                                      std::string* why_not) {
    const row* found = find(name);
    if (found != nullptr) return found->make(say);
    *why_not = "there is no backend '" + std::string(name) + "'; there are: " + backend_names();
    return nullptr;
}

bool is_backend(std::string_view name) noexcept { return find(name) != nullptr; }

std::string backend_names() {
    std::string text;
    for (const row& one : rows)
        if (one.name != nullptr) text += (text.empty() ? "" : ", ") + std::string(one.name);
    return text;
}

bool add_backend(const char* name, backend_maker make) noexcept {
    if (find(name) != nullptr) return false;
    for (row& one : rows) {
        if (one.name != nullptr) continue;
        one = {name, make};
        return true;
    }
    return false;
}

} // namespace obase::backend
