// SPDX-License-Identifier: MIT
//
// immobile_links, movable_links: how an index holds its nodes, as a template parameter.
//
// With immobile_links a node is ordinary memory and a link an atomic pointer. With movable_links a
// node is a managed object and a link the guide that owns it, so that nodes are regrouped like keys
// and values: nested guides (docs/protocol.md, R11). Both have the same shape, so an index is
// written once:
//
//     struct node { ...; static void destroy(node*) noexcept; };    // relocatable (R15)
//     typename Links::template link<node, Protocol, Shape> child;
//     child = Links::template make<node, Protocol>(extra_bytes, arguments...);
//     node* n = child.get();                       // in a scope; an access if nodes are managed
//     Links::retire(child.release(), bytes);       // readers may still be on it
//
// A link is the only owner of its node. Moving a node to another link empties the first one, and
// an optimistic reader that finds it empty has to ask whether the node that holds the link is
// unchanged before it believes that.
//
// The requirements of movable_links on an index:
//   * Addresses of nodes, and of links and locks in them, live in scopes only. A lock in a node is
//     released in the scope in which it was taken: while the scope is open the node is not moved
//     (O1), so the mover copies only words of locks that are neither held nor waited for.
//   * A node moves byte by byte: no addresses of nodes but in links.
//
// movable_links gain little where values are large: nodes are then a small part of the memory, and
// each dereference of one is a test, its first in a window a compare-exchange, and each link a slot
// for the collector to visit.
//
// Threads: get(), peek() by any; what changes a link by one at a time, who holds the lock of the
// node that has the link.
#pragma once

#include <obase/guide.hpp>
#include <obase/owner.hpp>
#include <obase/retire.hpp>

#include <cstddef>
#include <new>
#include <utility>

namespace crestdb {

struct immobile_links {
    static constexpr bool movable = false;

    // Sole ownership of a node that is in no structure: yet, or any more.
    template <class Node, class Protocol>
    class owner {
      public:
        constexpr owner() noexcept = default;
        explicit constexpr owner(Node* n) noexcept : node_(n) {}
        owner(owner&& other) noexcept : node_(other.release()) {}
        owner& operator=(owner&& other) noexcept {
            if (this != &other) {
                reset();
                node_ = other.release();
            }
            return *this;
        }
        ~owner() { reset(); }

        Node* get() const noexcept { return node_; }
        Node* operator->() const noexcept { return node_; }
        Node& operator*() const noexcept { return *node_; }
        explicit operator bool() const noexcept { return node_ != nullptr; }
        Node* release() noexcept { return std::exchange(node_, nullptr); }
        void reset() noexcept {
            if (Node* n = release(); n != nullptr) destroy(n);
        }

        static void destroy(void* memory) noexcept {
            static_cast<Node*>(memory)->~Node();
            ::operator delete(memory);
        }

      private:
        Node* node_ = nullptr;
    };

    template <class Node, class Protocol, class Shape>
    class link {
      public:
        using owner_type = owner<Node, Protocol>;

        link() noexcept = default;
        link(const link&) = delete;
        link& operator=(const link&) = delete;
        ~link() { owner_type last(node_.load_relaxed()); }

        // Order: acquire, pairs with operator=.
        Node* get() const noexcept { return node_.load_acquire(); }
        const Node* peek() const noexcept { return node_.load_acquire(); }
        explicit operator bool() const noexcept { return peek() != nullptr; }

        // Order: release, pairs with get(): the node's construction.
        link& operator=(owner_type&& from) noexcept {
            owner_type old(node_.load_relaxed());
            node_.store_release(from.release());
            return *this;
        }
        owner_type release() noexcept {
            owner_type taken(node_.load_relaxed());
            node_.store_release(nullptr); // guarded data of an optimistic lock
            return taken;
        }

      private:
        typename Shape::template atomic<Node*> node_;
    };

    // Throws std::bad_alloc.
    template <class Node, class Protocol, class... Arguments>
    static owner<Node, Protocol> make(std::size_t extra_bytes, Arguments... arguments) {
        void* const memory = ::operator new(sizeof(Node) + extra_bytes);
        return owner<Node, Protocol>(::new (memory) Node(arguments...));
    }
    template <class Node, class Protocol>
    static void retire(owner<Node, Protocol> taken, std::size_t bytes) noexcept {
        if (taken) Protocol::retire(taken.release(), &owner<Node, Protocol>::destroy, bytes);
    }
};

struct movable_links {
    static constexpr bool movable = true;

    template <class Node, class Protocol>
    using owner = obase::owner<Node, Protocol>;
    template <class Node, class Protocol, class Shape>
    using link = obase::guide<Node, Protocol>;

    template <class Node, class Protocol, class... Arguments>
    static owner<Node, Protocol> make(std::size_t extra_bytes, Arguments... arguments) {
        return obase::make_managed_with<Node, Protocol>({.extra_bytes = extra_bytes}, arguments...);
    }
    template <class Node, class Protocol>
    static void retire(owner<Node, Protocol> taken, std::size_t) noexcept {
        obase::retire(std::move(taken));
    }
};

} // namespace crestdb
