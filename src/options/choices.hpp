// SPDX-License-Identifier: MIT
//
// choices<Maker>: what an option that names an implementation may say, and how each is made. The
// policies and the backends are two such tables.
//
//     choices<policy_maker> table{{"papers", make<three_temperatures>}};
//     if (policy_maker make = table.find(settings.policy)) ...
//
// Room for tests to add a few of their own, before the first use.
//
// Threads: find() and names() by any thread; add() while no other thread uses the table.
#pragma once

#include <array>
#include <cstddef>
#include <initializer_list>
#include <string>
#include <string_view>

namespace obase {

// Maker: a function pointer.
template <class Maker>
class choices {
  public:
    struct choice {
        const char* name = nullptr; // static text; null: an empty row
        Maker make = nullptr;
    };

    choices(std::initializer_list<choice> rows) noexcept {
        for (const choice& row : rows) add(row.name, row.make);
    }

    // Null: there is none of that name.
    Maker find(std::string_view name) const noexcept {
        for (const choice& row : rows_)
            if (row.name != nullptr && row.name == name) return row.make;
        return nullptr;
    }
    std::string names() const { // "papers, ..."
        std::string text;
        for (const choice& row : rows_)
            if (row.name != nullptr) text += (text.empty() ? "" : ", ") + std::string(row.name);
        return text;
    }
    // visit(name) for every row.
    template <class Visit>
    void each(Visit&& visit) const {
        for (const choice& row : rows_)
            if (row.name != nullptr) visit(row.name);
    }
    // What to say of a name that is not in the table, behind "policy (OBASE_POLICY): " or the like.
    std::string unknown(std::string_view name) const {
        return "there is no '" + std::string(name) + "'; there are: " + names();
    }
    // False: there is one of that name, or no room.
    bool add(const char* name, Maker make) noexcept {
        if (find(name) != nullptr) return false;
        for (choice& row : rows_) {
            if (row.name != nullptr) continue;
            row = {name, make};
            return true;
        }
        return false;
    }

  private:
    static constexpr std::size_t room = 8;
    std::array<choice, room> rows_{};
};

} // namespace obase
