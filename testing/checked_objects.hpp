// SPDX-License-Identifier: MIT
//
// checked_objects: a growing and changing set of managed objects, each of which can be told right
// from wrong by looking at it. A workload for tests of what happens around the objects.
//
// Nodes that own a text each (a guide inside a managed object). Identity and version say what every
// byte has to be; the expected ones are kept here, in ordinary memory.
//
//     testing::checked_objects objects;
//     objects.grow(1000);
//     objects.verify(1);            // touches all; ends the process if one is wrong
//
// Concurrent histories are checked by testing/witness.hpp.
//
// Threads: one.
#pragma once

#include "testing/child_process.hpp"

#include <obase/obase.hpp>

#include <cstdint>
#include <new>
#include <random>
#include <string>
#include <vector>

namespace obase::testing {

template <class Protocol>
struct checked_node {
    std::uint64_t id;
    std::uint64_t version;
    guide<bytes, Protocol> text;
};

} // namespace obase::testing

template <class Protocol>
struct obase::is_relocatable<obase::testing::checked_node<Protocol>> : std::true_type {};

namespace obase::testing {

template <class Protocol = arming>
class checked_objects {
  public:
    // All memory of the expectations is had here, so that later only obase may run short.
    explicit checked_objects(std::size_t most, std::size_t longest_text = 400)
        : longest_(longest_text) {
        nodes_.reserve(most);
        versions_.reserve(most);
        scratch_.reserve(longest_text);
    }

    std::size_t size() const { return nodes_.size(); }
    const guide<checked_node<Protocol>, Protocol>& operator[](std::size_t i) const {
        return nodes_[i];
    }
    // How many allocations ended with std::bad_alloc.
    std::uint64_t refused() const { return refused_; }

    // Adds objects up to `count`; fewer if there is no memory.
    void grow(std::size_t count) {
        while (nodes_.size() < count && nodes_.size() < nodes_.capacity()) {
            auto fresh = make(nodes_.size(), 1);
            if (!fresh) return;
            nodes_.emplace_back(std::move(fresh));
            versions_.push_back(1);
        }
    }

    // Looks at every `step`-th object, all its bytes.
    void verify(std::size_t step, std::size_t first = 0) {
        for (std::size_t i = first; i < nodes_.size(); i += step) {
            const typename Protocol::scope one_operation;
            const checked_node<Protocol>& node = *nodes_[i];
            require(node.id == i, "an object is another one");
            require(node.version == versions_[i], "an object is of another version");
            write_text(i, versions_[i]);
            require(node.text->view() == scratch_, "a text is not what was written");
        }
    }

    // Replaces some objects, whole or only their texts, by retire() or at once.
    void change(std::mt19937_64& random, std::size_t how_many) {
        for (; how_many > 0 && !nodes_.empty(); --how_many) {
            const std::size_t i = random() % nodes_.size();
            const std::uint64_t version = versions_[i] + 1;
            switch (random() % 3) {
            case 0:
                if (auto fresh = make(i, version)) {
                    retire(nodes_[i].exchange(std::move(fresh)));
                    versions_[i] = version;
                }
                break;
            case 1:
                if (auto fresh = make(i, version)) {
                    nodes_[i] = std::move(fresh);
                    versions_[i] = version;
                }
                break;
            default:
                if (auto text = make_text(i, version)) {
                    const typename Protocol::scope one_operation;
                    checked_node<Protocol>& node = *nodes_[i];
                    retire(node.text.exchange(std::move(text)));
                    node.version = version;
                    versions_[i] = version;
                }
            }
        }
    }

    void clear() {
        nodes_.clear();
        versions_.clear();
    }

  private:
    void write_text(std::uint64_t id, std::uint64_t version) {
        std::uint64_t state = id * 0x9E3779B97F4A7C15U + version;
        scratch_.clear();
        for (std::size_t length = state % longest_; length > 0; --length) {
            state = state * 6364136223846793005U + 1442695040888963407U;
            scratch_.push_back(static_cast<char>(state >> 56));
        }
    }
    owner<bytes, Protocol> make_text(std::uint64_t id, std::uint64_t version) {
        write_text(id, version);
        try {
            return make_bytes<Protocol>(scratch_);
        } catch (const std::bad_alloc&) {
            ++refused_;
            return nullptr;
        }
    }
    owner<checked_node<Protocol>, Protocol> make(std::uint64_t id, std::uint64_t version) {
        auto text = make_text(id, version);
        if (!text) return nullptr;
        try {
            return make_managed<checked_node<Protocol>, Protocol>(
                checked_node<Protocol>{id, version, guide<bytes, Protocol>(std::move(text))});
        } catch (const std::bad_alloc&) {
            ++refused_;
            return nullptr;
        }
    }

    std::size_t longest_;
    std::vector<guide<checked_node<Protocol>, Protocol>> nodes_;
    std::vector<std::uint64_t> versions_;
    std::string scratch_;
    std::uint64_t refused_ = 0;
};

} // namespace obase::testing
