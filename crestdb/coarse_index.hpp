// SPDX-License-Identifier: MIT
//
// coarse_index: an index for many threads made of a map for one, by one lock around it (OBASE Table
// 2, the "coarse" rows).
//
// A reader-writer lock that guards the map's shape. get, contains, scan, update and modify hold it
// shared, put and erase alone. A replacement of a value needs no more because a guide is an atomic
// word: it is exchanged while others read it, and the object is retired. With one in five
// operations a write, two threads got up to 40 % more through with it than with a mutex
// (docs/indexes/coarse.md).
//
// The lock is never held while user code runs: values are accessed under it, inside the operation's
// scope, and shown after it was given back. The scope keeps them, whatever is erased meanwhile.
//
// `Map` has, called in a scope, with the lock held shared or alone:
//     name, Map(expected_keys)
//     size(), index_bytes()                                    shared
//     guide* find(key, read) const                             shared; the value's guide, or null
//     guide* insert(key, owner& value)                         alone; null: it was inserted
//     bool remove(key)                                         alone; retires what it removes
//     void walk(from, take) const                              shared; in ascending order, until
//                                                              !take(const guide& key, guide& value)
//
// Limit: every operation writes the lock's own word, so two threads are seldom twice as fast as
// one.
//
// Progress: blocking; no operation is shut out (fair_shared_mutex.hpp). A thread that loses its
// core inside stops all that need the lock in the other mode. Reclamation: what is erased or
// replaced is retired, because others may still look at it without the lock. Linearization: get,
// contains, put of a new key and erase anywhere under the lock, get of a key whose value is being
// replaced at the load of the value's word, put, update and modify of an existing key at its
// exchange. scan: some pairs at a time, each lot as it was at one moment (except for values that
// are replaced at that time); the next lot begins behind the last key of the one before.
// Threads: all operations by any thread; construction and destruction by one.
#pragma once

#include "crestdb/fair_shared_mutex.hpp"
#include "crestdb/index_operations.hpp"

#include <obase/bytes.hpp>
#include <obase/retire.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <mutex>
#include <shared_mutex>
#include <string>
#include <string_view>
#include <utility>

namespace crestdb {

template <template <class> class Map, class Protocol>
class coarse_index : public index_operations<coarse_index<Map, Protocol>, Protocol> {
    using base = index_operations<coarse_index, Protocol>;
    friend base;

  public:
    using typename base::scope;
    static constexpr const char* name = Map<Protocol>::name;
    static constexpr bool ordered = true;

    explicit coarse_index(std::size_t expected_keys) : map_(expected_keys) {}

    bool erase(std::string_view key) {
        const scope one_operation;
        const std::unique_lock alone(lock_);
        return map_.remove(key);
    }

    template <class Use>
    std::size_t scan(std::string_view from, std::size_t limit, Use&& use) const {
        std::string behind_last; // `from` of all lots but the first
        std::size_t done = 0;
        while (done < limit) {
            const scope one_lot;
            pairs lot;
            const std::size_t wanted = std::min(limit - done, lot.at.size());
            lot.wanted = wanted;
            {
                const std::shared_lock shared(lock_);
                map_.walk(from, lot);
            }
            const std::size_t n = lot.count;
            for (std::size_t i = 0; i < n; ++i)
                use(lot.at[i].first->view(), lot.at[i].second->view());
            done += n;
            if (n != wanted || done == limit) break;
            behind_last = lot.at[n - 1].first->view();
            behind_last.push_back('\0'); // the least key that is greater
            from = behind_last;
        }
        return done;
    }

    // visit() runs when the lock has been given back. A path of more objects than a lot has is gone
    // again, for the next lot.
    template <class Visit>
    void visit_path(std::string_view key, Visit&& visit) const {
        const scope one_operation;
        seen_objects lot;
        for (;;) {
            look_up(key, lot);
            for (std::size_t i = 0; i < lot.count; ++i)
                visit(static_cast<const void*>(lot.at[i]),
                      sizeof(obase::bytes) + lot.at[i]->size());
            if (lot.count != lot.at.size()) return;
            lot.shown += std::exchange(lot.count, 0);
            lot.passed = 0;
        }
    }

    std::size_t size() const noexcept {
        const std::shared_lock shared(lock_);
        return map_.size();
    }
    std::size_t index_bytes() const noexcept {
        const std::shared_lock shared(lock_);
        return map_.index_bytes();
    }

  private:
    using typename base::guide;
    using typename base::owner;

    struct found {
        obase::bytes* value;
    };

    // What a scan shows when the lock has been given back. The walk is given the thing itself and no
    // closure: addresses are in nothing but this variable.
    struct pairs {
        std::array<std::pair<const obase::bytes*, const obase::bytes*>, 64> at;
        std::size_t count = 0;
        std::size_t wanted;

        bool operator()(const guide& key, const guide& value) {
            at[count] = {key.get(), value.get()};
            __builtin_prefetch(at[count].first);
            __builtin_prefetch(at[count].second);
            ++count;
            return count != wanted;
        }
    };
    // How a search looks at objects for visit_path().
    struct seen_objects {
        std::size_t shown = 0; // of an earlier lot
        mutable std::size_t passed = 0;
        mutable std::size_t count = 0;
        mutable std::array<const obase::bytes*, 64> at;

        obase::bytes* operator()(const guide& g) const {
            obase::bytes* object = g.get();
            if (passed++ >= shown && count != at.size()) at[count++] = object;
            return object;
        }
    };

    template <class Read>
    found look_up(std::string_view key, const Read& read) const {
        const std::shared_lock shared(lock_);
        const guide* value = map_.find(key, read);
        return {value != nullptr ? read(*value) : nullptr};
    }
    bool has(std::string_view key) const {
        const std::shared_lock shared(lock_);
        return map_.find(key, plain_access{}) != nullptr;
    }
    bool replace(std::string_view key, found& seen, owner& fresh) {
        const std::shared_lock shared(lock_);
        guide* value = map_.find(key, plain_access{});
        if (value != nullptr) return value->compare_exchange(seen.value, fresh);
        seen.value = nullptr;
        return false;
    }
    outcome write(std::string_view key, owner& fresh, bool insert) {
        guide* value = nullptr;
        if (insert) {
            const std::unique_lock alone(lock_);
            value = map_.insert(key, fresh);
            if (value == nullptr) return outcome::inserted;
            fresh = value->exchange(std::move(fresh));
        } else {
            const std::shared_lock shared(lock_);
            value = map_.find(key, plain_access{});
            if (value == nullptr) return outcome::absent;
            fresh = value->exchange(std::move(fresh));
        }
        obase::retire(std::move(fresh));
        return outcome::replaced;
    }

    Map<Protocol> map_;
    mutable fair_shared_mutex lock_;
};

} // namespace crestdb
