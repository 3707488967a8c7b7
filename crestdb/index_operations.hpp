// SPDX-License-Identifier: MIT
//
// index_operations: the operations of crestdb/index.hpp that are the same in every index, made of a
// few that are not.
//
// What it is: a base class that an index derives from, and calls down into (the curiously recurring
// template pattern): it opens the scope, makes the new value, calls back, retires.
//
//     template <class Protocol>
//     class my_index : public index_operations<my_index<Protocol>, Protocol> {
//         friend index_operations<my_index, Protocol>;
//         ...
//         // Where the key's value is: anything with a member `value`, an obase::bytes*, null if
//         // the key is not there. Looks at each key and value object through read(const guide&), which
//         // returns an obase::bytes*. In a scope.
//         template <class Read> found look_up(std::string_view key, const Read& read) const;
//         // As look_up(), without a look at the value.
//         bool has(std::string_view key) const;
//         // Replaces the value if it is still found.value, which this scope has accessed. True: it
//         // was, and `fresh` has it now. False: `found` says what is there now.
//         bool replace(std::string_view key, found& found, owner& fresh);
//         // put() and update().
//         outcome write(std::string_view key, owner& fresh, bool insert);
//     };
//
// erase(), scan(), size() and index_bytes() are the index's own.
//
// When not to use it: for an operation that an index does in another way; its own function hides
// the one from here.
//
// Threads, progress: those of the index.
#pragma once

#include <obase/bytes.hpp>
#include <obase/guide.hpp>
#include <obase/owner.hpp>
#include <obase/retire.hpp>
#include <obase/scope.hpp>

#include <cstddef>
#include <span>
#include <string_view>
#include <utility>

namespace crestdb {

// What became of a write.
enum class outcome { inserted, replaced, absent };

// How a search looks at key and value objects when nobody wants to know which.
struct plain_access {
    template <class Guide>
    obase::bytes* operator()(const Guide& g) const noexcept {
        return g.get();
    }
};

template <class Index, class Protocol>
class index_operations {
  public:
    using protocol = Protocol;
    using scope = obase::basic_scope<Protocol>;

    template <class Use>
    bool get(std::string_view key, Use&& use) const {
        const scope one_operation;
        const obase::bytes* value = self().look_up(key, plain_access{}).value;
        if (value == nullptr) return false;
        use(value->view());
        return true;
    }
    bool contains(std::string_view key) const {
        const scope one_operation;
        return self().has(key);
    }

    bool put(std::string_view key, std::string_view value) {
        const scope one_operation;
        owner fresh = obase::make_bytes<Protocol>(value);
        return self().write(key, fresh, true) == outcome::inserted;
    }
    bool update(std::string_view key, std::string_view value) {
        const scope one_operation;
        owner fresh = obase::make_bytes<Protocol>(value);
        return self().write(key, fresh, false) == outcome::replaced;
    }

    template <class Make>
    bool modify(std::string_view key, Make&& make) {
        const scope one_operation;
        for (auto found = self().look_up(key, plain_access{}); found.value != nullptr;) {
            owner fresh = obase::make_bytes<Protocol>(make(found.value->view()));
            // The address is enough: a value that this scope has seen is not freed, so no other one
            // can be there.
            if (self().replace(key, found, fresh)) {
                obase::retire(std::move(fresh));
                return true;
            }
        }
        return false;
    }

    template <class Edit>
    bool edit_in_place(std::string_view key, Edit&& edit) {
        const scope one_operation;
        obase::bytes* value = self().look_up(key, plain_access{}).value;
        if (value == nullptr) return false;
        edit(std::span<char>(value->data(), value->size()));
        return true;
    }

    template <class Visit>
    void visit_path(std::string_view key, Visit&& visit) const {
        const scope one_operation;
        static_cast<void>(self().look_up(key, [&](const guide& g) {
            obase::bytes* object = g.get();
            if (object != nullptr)
                visit(static_cast<const void*>(object), sizeof(obase::bytes) + object->size());
            return object;
        }));
    }

  protected:
    using guide = obase::guide<obase::bytes, Protocol>;
    using owner = obase::owner<obase::bytes, Protocol>;

    index_operations() noexcept = default;
    ~index_operations() = default;
    index_operations(const index_operations&) = delete;
    index_operations& operator=(const index_operations&) = delete;

  private:
    const Index& self() const noexcept { return static_cast<const Index&>(*this); }
    Index& self() noexcept { return static_cast<Index&>(*this); }
};

} // namespace crestdb
