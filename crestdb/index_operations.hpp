// SPDX-License-Identifier: MIT
//
// index_operations: the operations of crestdb/index.hpp that are the same in every index, made of a
// few that are not.
//
// A base class that an index derives from, and calls down into (the curiously recurring template
// pattern): it opens the scope, makes the new value, calls back, retires.
//
//     template <class Protocol>
//     class my_index : public index_operations<my_index<Protocol>, Protocol> {
//         friend index_operations<my_index, Protocol>;
//         ...
//         // Where the key's value is: anything with a member `value`, an obase::bytes*, null if
//         // the key is not there. Looks at each key and value object through read(const guide&), which
//         // returns an obase::bytes*, and tells read.pass(object, bytes) which nodes it looks at
//         // that are managed objects. Precondition: inside a scope.
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
// The first three are here for an index that has
//
//         // The key's node, or null. It has a member `value`, the guide, which is null from the
//         // erasure of the key on, for good. Precondition: inside a scope.
//         template <class Read> node* find(std::string_view key, const Read& read) const;
//
// erase(), scan(), size() and index_bytes() are the index's own.
//
// An index that does an operation in another way declares a function of the same name, which hides
// the one from here.
//
// Threads, progress: those of the index.
#pragma once

#include <obase/bytes.hpp>
#include <obase/guide.hpp>
#include <obase/owner.hpp>
#include <obase/retire.hpp>
#include <obase/scope.hpp>

#include <algorithm>
#include <bit>
#include <cstddef>
#include <span>
#include <string_view>
#include <utility>

namespace crestdb {

// The outcome of a write.
enum class outcome { inserted, replaced, absent };

// A bucket per key, rounded up to a power of two. More than memory can hold for absurd expectations.
inline std::size_t bucket_per_key(std::size_t expected_keys) noexcept {
    return std::bit_ceil(std::clamp<std::size_t>(expected_keys, 1, std::size_t{1} << 60));
}

// The visitor of a search whose path is not asked for.
struct plain_access {
    template <class Guide>
    auto* operator()(const Guide& g) const noexcept {
        return g.get();
    }
    void pass(const void*, std::size_t) const noexcept {}
};

// How it looks at them for visit_path().
template <class Visit>
struct reported_access {
    Visit& visit;

    template <class Guide>
    obase::bytes* operator()(const Guide& g) const {
        obase::bytes* object = g.get();
        if (object != nullptr) pass(object, sizeof(obase::bytes) + object->size());
        return object;
    }
    void pass(const void* object, std::size_t bytes) const { visit(object, bytes); }
};

// `Value`: what values are; obase::bytes, where operations take and show text. Other types are for
// containers that put objects of their own in (obase/hash_map.hpp).
template <class Index, class Protocol, class Value = obase::bytes>
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
    // get() with the value object itself.
    template <class Use>
    bool get_object(std::string_view key, Use&& use) const {
        const scope one_operation;
        const Value* value = self().look_up(key, plain_access{}).value;
        if (value == nullptr) return false;
        use(*value);
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
        static_cast<void>(self().look_up(key, reported_access<Visit>{visit}));
    }

  protected:
    using guide = obase::guide<Value, Protocol>;
    using owner = obase::owner<Value, Protocol>;

    // A node's address, and the value that was in it.
    template <class Node>
    struct in_node {
        Node at;
        Value* value;
    };

    index_operations() noexcept = default;
    ~index_operations() = default;
    index_operations(const index_operations&) = delete;
    index_operations& operator=(const index_operations&) = delete;

    template <class Read>
    auto look_up(std::string_view key, const Read& read) const {
        auto* n = self().find(key, read);
        return in_node<decltype(n)>{n, n != nullptr ? read(n->value) : nullptr};
    }
    bool has(std::string_view key) const {
        const auto* n = self().find(key, plain_access{});
        return n != nullptr && n->value != nullptr;
    }
    template <class Node>
    bool replace(std::string_view, in_node<Node>& found, owner& fresh) const noexcept {
        return found.at->value.compare_exchange(found.value, fresh);
    }

  private:
    const Index& self() const noexcept { return static_cast<const Index&>(*this); }
    Index& self() noexcept { return static_cast<Index&>(*this); }
};

} // namespace crestdb
