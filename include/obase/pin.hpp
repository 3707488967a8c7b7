// SPDX-License-Identifier: MIT
//
// obase::pin<T>: keeps one object where it is, beyond the scope in which its address was obtained.
//
//     obase::pin<page> p;
//     {
//         obase::scope s;
//         p = obase::pin<page>(table[i]);
//     }
//     submit_read(fd, p->bytes);          // the kernel may write here until p goes
//
// A pin may be moved to another thread and ends where it ends. It also keeps a *retired* object
// from being destroyed. It does not keep guide::reset() or a guide's destructor from freeing the
// object: as with std::unique_ptr, that is the owner's business.
//
// The address is good until the pin ends, not longer: when a pin is released inside a scope that
// did not dereference the guide itself, the object may move at once.
//
// Within one operation a scope is enough and cheaper. The mover reads the pins of all threads in
// every round, so pins should be few.
//
// Cost: a search for a free entry of the thread (31 in the first chunk), a store; releasing, a
// store.
#pragma once

#include <obase/language.hpp>

#include <obase/arming.hpp>
#include <obase/errors.hpp>
#include <obase/guide.hpp>

#include <type_traits>
#include <utility>

namespace obase {

template <class T, class Protocol = arming>
class pin {
  public:
    pin() noexcept = default;
    // Precondition: inside a scope. Throws std::bad_alloc if there is no memory for one more pin.
    // Null pins nothing.
    explicit pin(const guide<T, Protocol>& target) : pin(target.get()) {}
    // `object`: an address from a guide, obtained in the scope that is open now.
    explicit pin(T* object) : object_(object) {
        if (object_ == nullptr) return;
        entry_ = Protocol::pin(const_cast<std::remove_cv_t<T>*>(object_));
        if (entry_ == nullptr) errors::out_of_memory();
    }
    pin(pin&& other) noexcept
        : object_(std::exchange(other.object_, nullptr)),
          entry_(std::exchange(other.entry_, nullptr)) {}
    pin& operator=(pin&& other) noexcept {
        if (this != &other) {
            reset();
            object_ = std::exchange(other.object_, nullptr);
            entry_ = std::exchange(other.entry_, nullptr);
        }
        return *this;
    }
    ~pin() { reset(); }

    T* get() const noexcept { return object_; }
    T* operator->() const noexcept { return object_; }
    T& operator*() const noexcept { return *object_; }
    explicit operator bool() const noexcept { return object_ != nullptr; }

    void reset() noexcept {
        if (entry_ != nullptr) Protocol::unpin(std::exchange(entry_, nullptr));
        object_ = nullptr;
    }

  private:
    T* object_ = nullptr;
    typename Protocol::pin_entry* entry_ = nullptr;
};

template <class T, class Protocol>
pin(const guide<T, Protocol>&) -> pin<T, Protocol>;

} // namespace obase
