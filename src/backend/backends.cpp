// SPDX-License-Identifier: MIT
#include "backend/backends.hpp"

#include "backend/hints.hpp"

namespace obase::backend {

namespace {

template <class Backend>
std::unique_ptr<backend> make(const messenger& say) {
    return std::make_unique<Backend>(say);
}

} // namespace

choices<backend_maker>& backends() noexcept {
    static choices<backend_maker> table{{"kernel", make<hints>}};
    return table;
}

std::unique_ptr<backend> make_backend(std::string_view name, const messenger& say,
                                      std::string* why_not) {
    if (const backend_maker found = backends().find(name); found != nullptr) return found(say);
    *why_not = "backend (OBASE_BACKEND): " + backends().unknown(name);
    return nullptr;
}

} // namespace obase::backend
