/* SPDX-License-Identifier: MIT
 *
 * The types that obase-rewrite puts in the place of marked pointers (obase/marked.h): the field
 * becomes an OBASE_SLOT, and each access a call. For C11 and C++17, by any compiler; no plugin is
 * needed.
 *
 *     struct node {                            struct node {
 *         int key;                                 int key;
 *         struct node* next OBASE_GUIDED;          OBASE_SLOT(struct node*) next;
 *     };                                       };
 *     p = n->next;                             p = obase_slot_load(n->next);
 *     n->next = m;                             obase_slot_store(n->next, m);
 *     if (n->next != NULL)                     if (!obase_slot_is_null(n->next))
 *
 * The type of a slot is none that a pointer converts from or to by itself, so an access that is not
 * such a call does not compile. It has the size and the alignment of a pointer.
 *
 * New C++ code uses obase::guide.
 *
 * Protocol: arming; for the inclusion, atc, if OBASE_PROTOCOL_ATC is defined before it, as
 * `obase-rewrite --protocol=atc` does in each file. A program whose translation units are of two, by
 * this header or by the passes, ends at its start with a message; a translation unit is refused here.
 *
 * Rules, threads and errors: as obase/marked.h. Cost: a load is a load and a test of its sign, and a
 * call under atc; the others are the calls of obase/marked.h that they name.
 */
#if defined(OBASE_MARKED_ACCESS_H) && defined(OBASE_ACCESS_ATC) != defined(OBASE_PROTOCOL_ATC)
#error "files of obase-rewrite --protocol=arming and --protocol=atc in one translation unit"
#endif

#ifndef OBASE_MARKED_ACCESS_H
#define OBASE_MARKED_ACCESS_H

#include <obase/marked.h>

/* The function of obase/marked.h on the protocol. */
#ifdef OBASE_PROTOCOL_ATC
#define OBASE_ACCESS_ATC
#define OBASE_ACCESS_PROTOCOL "atc"
#define OBASE_RUNTIME(name) obase_marked_atc_##name
#else
#define OBASE_ACCESS_PROTOCOL "arming"
#define OBASE_RUNTIME(name) obase_marked_##name
#endif

/* Before the constructors of the program, whose priorities begin at 101, as in units of the passes. */
#pragma GCC diagnostic push
#ifndef __has_warning
#pragma GCC diagnostic ignored "-Wprio-ctor-dtor"
#elif __has_warning("-Wprio-ctor-dtor")
#pragma GCC diagnostic ignored "-Wprio-ctor-dtor"
#endif
static void __attribute__((constructor(100))) obase_tell_runtime(void) {
    obase_marked_unit(OBASE_ACCESS_PROTOCOL, __BASE_FILE__);
#ifdef __SANITIZE_THREAD__
    obase_marked_unit_thread_sanitized(__BASE_FILE__);
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
    obase_marked_unit_thread_sanitized(__BASE_FILE__);
#endif
#endif
}
#pragma GCC diagnostic pop

/* The word as it is. One aligned load: the slot may be changed by others meanwhile. */
static inline void* obase_slot_word(void* const* slot) { return *(void* const volatile*)slot; }

static inline void* obase_slot_address(void* const* slot) {
#ifdef OBASE_ACCESS_ATC
    return OBASE_RUNTIME(load)((void**)slot);
#else
    /* The tag bits of obase/word/arming.hpp: the sign says that there is more to do. */
    void* word = obase_slot_word(slot);
    return (intptr_t)word >= 0 ? word : OBASE_RUNTIME(load)((void**)slot);
#endif
}

/* No access of the object. The tag bits of both protocols are above the address. */
static inline int obase_slot_holds_null(void* const* slot) {
    return ((uintptr_t)obase_slot_word(slot) & (((uintptr_t)1 << 48) - 1)) == 0;
}

/* memset and bzero of zeros: slots inside end, because what their words hold besides an address (under
 * atc the counts of those who are inside) is not the program's to clear. */
static inline void* obase_slots_memset(void* begin, int byte, size_t bytes) {
    OBASE_RUNTIME(forget)(begin, bytes);
    return __builtin_memset(begin, byte, bytes);
}
static inline void obase_slots_bzero(void* begin, size_t bytes) {
    (void)obase_slots_memset(begin, 0, bytes);
    /* Memory that is never read again is cleared all the same: explicit_bzero. */
    __asm__ volatile("" : : "r"(begin) : "memory");
}

/* Declares the twin of a function that a marks file says `makes` what it returns: the twin returns
 * managed memory. `label` is its name for the linker, as the passes have it. A static function needs
 * none. */
#ifdef __cplusplus
#define OBASE_C_TWIN(function, label)                                                              \
    extern "C" __typeof__(function) obase_managed_##function __asm__(label)
#else
#define OBASE_C_TWIN(function, label) OBASE_TWIN(function, label)
#endif
#define OBASE_TWIN(function, label)                                                                \
    extern __typeof__(function) obase_managed_##function __asm__(label)
#define OBASE_STATIC_TWIN(function)                                                                \
    static __typeof__(function) obase_managed_##function __attribute__((unused))

#ifdef __cplusplus

#include <atomic>
#include <cstddef>
#include <memory>
#include <new>
#include <type_traits>
#include <utility>

/* From here to the end of the block: an operation (obase_marked_enter). */
#define OBASE_OPERATION const ::obase::marked_operation obase_this_operation

/* The same in a destructor. The operation lasts until the members and the bases have ended: the class has
 * ::obase::destroyed_in_operation of itself as its first base. */
#define OBASE_DESTRUCTION                                                                          \
    const ::obase::marked_destruction<::std::remove_reference_t<decltype(*this)>>                  \
        obase_this_operation(this)
/* Without such a base, in a class of which all slots lie within its objects: they end with the body. */
#define OBASE_DESTRUCTION_OF_AGGREGATE                                                             \
    const ::obase::marked_destruction_of_aggregate obase_this_operation(this, sizeof *this)

#define OBASE_SLOT(...) ::obase::marked_slot<__VA_ARGS__>

/* In a class whose objects marked fields point to: `delete` takes memory of any origin, and frees
 * what is managed when no open scope can hold its address. `new (obase_managed) T` makes a managed
 * object, `new T` one that stays where it is. */
#define OBASE_MANAGED_CLASS OBASE_MANAGED_NEW OBASE_CLASS_NEW

/* In a class with slots in its objects: they end with its destructor, and `delete` and `delete[]` free
 * memory of any origin, managed or not, when no scope is open that may be looking at them. */
#define OBASE_SLOTTED_CLASS                                                                        \
    OBASE_CLASS_NEW                                                                                \
    static void* operator new[](::std::size_t bytes) { return ::operator new[](bytes); }           \
    static void* operator new[](::std::size_t bytes, ::std::align_val_t alignment) {               \
        return ::operator new[](bytes, alignment);                                                 \
    }                                                                                              \
    static void* operator new[](::std::size_t bytes, const ::std::nothrow_t& tag) noexcept {       \
        return ::operator new[](bytes, tag);                                                       \
    }                                                                                              \
    static void* operator new[](::std::size_t, void* place) noexcept { return place; }             \
    static void operator delete[](void* address, ::std::size_t bytes) noexcept {                   \
        ::OBASE_RUNTIME(delete_array)(address, bytes, 0);                                          \
    }                                                                                              \
    static void operator delete[](void* address, ::std::size_t bytes,                              \
                                  ::std::align_val_t alignment) noexcept {                         \
        ::OBASE_RUNTIME(delete_array)(address, bytes, static_cast<::std::size_t>(alignment));      \
    }                                                                                              \
    /* For constructors that throw. */                                                             \
    static void operator delete[](void* address, const ::std::nothrow_t&) noexcept {               \
        ::OBASE_RUNTIME(delete_array)(address, 0, 0);                                              \
    }                                                                                              \
    static void operator delete[](void*, void*) noexcept {}

/* In one with slots whose objects marked fields point to, besides. */
#define OBASE_MANAGED_NEW                                                                          \
    static void* operator new(::std::size_t bytes, ::obase::managed_memory) {                      \
        return ::OBASE_RUNTIME(new)(bytes);                                                        \
    }                                                                                              \
    static void* operator new(::std::size_t bytes, ::std::align_val_t alignment,                   \
                              ::obase::managed_memory) {                                           \
        return ::OBASE_RUNTIME(new_aligned)(bytes, static_cast<::std::size_t>(alignment));         \
    }                                                                                              \
    /* For constructors that throw. */                                                             \
    static void operator delete(void* address, ::obase::managed_memory) noexcept {                 \
        ::OBASE_RUNTIME(delete)(address, 0, 0);                                                    \
    }                                                                                              \
    static void operator delete(void* address, ::std::align_val_t alignment,                       \
                                ::obase::managed_memory) noexcept {                                \
        ::OBASE_RUNTIME(delete)(address, 0, static_cast<::std::size_t>(alignment));                \
    }

/* The default operator new overloads, without delete. */
#define OBASE_CLASS_NEW                                                                            \
    static void* operator new(::std::size_t bytes) { return ::operator new(bytes); }               \
    static void* operator new(::std::size_t bytes, ::std::align_val_t alignment) {                 \
        return ::operator new(bytes, alignment);                                                   \
    }                                                                                              \
    static void* operator new(::std::size_t bytes, const ::std::nothrow_t& tag) noexcept {         \
        return ::operator new(bytes, tag);                                                         \
    }                                                                                              \
    static void* operator new(::std::size_t, void* place) noexcept { return place; }               \
    static void operator delete(void* address, ::std::size_t bytes) noexcept {                     \
        ::OBASE_RUNTIME(delete)(address, bytes, 0);                                                \
    }                                                                                              \
    static void operator delete(void* address, ::std::size_t bytes,                                \
                                ::std::align_val_t alignment) noexcept {                           \
        ::OBASE_RUNTIME(delete)(address, bytes, static_cast<::std::size_t>(alignment));            \
    }                                                                                              \
    /* For constructors that throw. */                                                             \
    static void operator delete(void* address, const ::std::nothrow_t&) noexcept {                 \
        ::OBASE_RUNTIME(delete)(address, 0, 0);                                                    \
    }                                                                                              \
    static void operator delete(void*, void*) noexcept {}

namespace obase {

struct managed_memory {};

class marked_operation {
  public:
    marked_operation() noexcept : outer_(OBASE_RUNTIME(enter)()) {}
    ~marked_operation() { OBASE_RUNTIME(leave)(outer_); }
    marked_operation(const marked_operation&) = delete;
    marked_operation& operator=(const marked_operation&) = delete;

  private:
    std::uint64_t outer_;
};

/* A slot may not be left with the address of what is freed when the operation ends that has freed it
 * (obase/marked.h, rule 1), and those of members and bases end after the destructor's body. So its
 * operation, if it is the outermost, goes on until the first base ends, which is destroyed last. */
template <class Class>
class destroyed_in_operation;

template <class Class>
class marked_destruction {
  public:
    explicit marked_destruction(const destroyed_in_operation<Class>* base) noexcept
        : base_(base), outer_(OBASE_RUNTIME(enter)()) {}
    ~marked_destruction() {
        if (outer_ == 0)
            open_ = base_;
        else
            OBASE_RUNTIME(leave)(outer_);
    }
    marked_destruction(const marked_destruction&) = delete;
    marked_destruction& operator=(const marked_destruction&) = delete;

    /* Nothing where a constructor threw, or the destructor was a part of another operation. */
    static void ends_with(const destroyed_in_operation<Class>* base) noexcept {
        if (open_ != base) return;
        open_ = nullptr;
        OBASE_RUNTIME(leave)(0);
    }

  private:
    /* Of whom the body has ended, in this thread. One class has one object at one place. */
    static inline thread_local const destroyed_in_operation<Class>* open_ = nullptr;

    const destroyed_in_operation<Class>* base_;
    std::uint64_t outer_;
};

/* The base: empty, and without names that the class could take for others. */
template <class Class>
class destroyed_in_operation {
  public:
    destroyed_in_operation() = default;
    destroyed_in_operation(const destroyed_in_operation&) = default;
    destroyed_in_operation& operator=(const destroyed_in_operation&) = default;
    ~destroyed_in_operation() { marked_destruction<Class>::ends_with(this); }
};

class marked_destruction_of_aggregate {
  public:
    marked_destruction_of_aggregate(void* object, std::size_t bytes) noexcept
        : object_(object), bytes_(bytes), outer_(OBASE_RUNTIME(enter)()) {}
    ~marked_destruction_of_aggregate() {
        OBASE_RUNTIME(destroyed)(object_, bytes_);
        OBASE_RUNTIME(leave)(outer_);
    }
    marked_destruction_of_aggregate(const marked_destruction_of_aggregate&) = delete;
    marked_destruction_of_aggregate& operator=(const marked_destruction_of_aggregate&) = delete;

  private:
    void* object_;
    std::size_t bytes_;
    std::uint64_t outer_;
};

template <class Held>
class marked_slot;

/* The common part of all kinds of slots: the word, and its end with its memory. */
class marked_word {
  public:
    /* As a pointer, a slot that is given nothing holds nothing in particular. */
    marked_word() = default;
    marked_word(const marked_word&) = delete;
    marked_word& operator=(const marked_word&) = delete;
    ~marked_word() { OBASE_RUNTIME(destroyed)(this, sizeof *this); }

  protected:
    constexpr explicit marked_word(std::nullptr_t) noexcept : word_(nullptr) {}

    bool holds_null() const noexcept { return obase_slot_holds_null(&word_) != 0; }
    void* get() const noexcept { return obase_slot_address(&word_); }
    void set(const volatile void* address) noexcept {
        OBASE_RUNTIME(store)(&word_, const_cast<void*>(address));
    }
    void* swap_in(const volatile void* address) noexcept {
        return OBASE_RUNTIME(exchange)(&word_, const_cast<void*>(address));
    }
    bool replace(void*& expected, const volatile void* desired) noexcept {
        return OBASE_RUNTIME(compare_exchange)(&word_, &expected, const_cast<void*>(desired)) != 0;
    }

  private:
    mutable void* word_;
};

/* A plain pointer. The functions obase_slot_... below are its interface. */
template <class Pointee>
class marked_slot<Pointee*> : private marked_word {
  public:
    marked_slot() = default;
    constexpr marked_slot(Pointee* address) noexcept : marked_word(nullptr) {
        if (address != nullptr) this->set(address);
    }

    friend Pointee* obase_slot_load(const marked_slot& slot) noexcept {
        return static_cast<Pointee*>(slot.get());
    }
    friend bool obase_slot_is_null(const marked_slot& slot) noexcept { return slot.holds_null(); }
    /* Returns the address, as an assignment does. */
    friend Pointee* obase_slot_store(marked_slot& slot,
                                     std::common_type_t<Pointee*> address) noexcept {
        slot.set(address);
        return address;
    }
    friend Pointee* obase_slot_exchange(marked_slot& slot,
                                        std::common_type_t<Pointee*> address) noexcept {
        return static_cast<Pointee*>(slot.swap_in(address));
    }
    friend void obase_slot_swap(marked_slot& a, marked_slot& b) noexcept {
        Pointee* const from_a = obase_slot_load(a);
        a.set(obase_slot_load(b));
        b.set(from_a);
    }
    /* std::swap with a variable that is no slot. */
    friend void obase_slot_swap(marked_slot& a, Pointee*& b) noexcept {
        b = obase_slot_exchange(a, b);
    }
    friend void obase_slot_swap(Pointee*& a, marked_slot& b) noexcept { obase_slot_swap(b, a); }
    friend bool obase_slot_compare_exchange(marked_slot& slot, Pointee** expected,
                                            std::common_type_t<Pointee*> desired) noexcept {
        void* seen = const_cast<std::remove_cv_t<Pointee>*>(*expected);
        const bool done = slot.replace(seen, desired);
        if (!done) *expected = static_cast<Pointee*>(seen);
        return done;
    }
};

/* The members of std::atomic<T*>. They are at least as strong as the orders they are given. */
template <class Pointee>
class marked_slot<std::atomic<Pointee*>> : private marked_word {
  public:
    using value_type = Pointee*;

    constexpr marked_slot() noexcept : marked_word(nullptr) {}
    constexpr marked_slot(Pointee* address) noexcept : marked_word(nullptr) {
        if (address != nullptr) this->set(address);
    }

    operator Pointee*() const noexcept { return load(); }
    Pointee* operator->() const noexcept { return load(); }
    Pointee* operator=(Pointee* address) noexcept {
        store(address);
        return address;
    }

    template <class... Order>
    Pointee* load(Order...) const noexcept {
        return static_cast<Pointee*>(this->get());
    }
    template <class... Order>
    void store(Pointee* address, Order...) noexcept {
        this->swap_in(address);
    }
    template <class... Order>
    Pointee* exchange(Pointee* address, Order...) noexcept {
        return static_cast<Pointee*>(this->swap_in(address));
    }
    template <class... Orders>
    bool compare_exchange_strong(Pointee*& expected, Pointee* desired, Orders...) noexcept {
        void* seen = const_cast<std::remove_cv_t<Pointee>*>(expected);
        const bool done = this->replace(seen, desired);
        if (!done) expected = static_cast<Pointee*>(seen);
        return done;
    }
    template <class... Orders>
    bool compare_exchange_weak(Pointee*& expected, Pointee* desired, Orders...) noexcept {
        return compare_exchange_strong(expected, desired);
    }

    friend bool obase_slot_is_null(const marked_slot& slot) noexcept { return slot.holds_null(); }
};

/* The members of std::unique_ptr<T>, to which and from which it can be moved. */
template <class Object>
class marked_slot<std::unique_ptr<Object>> : private marked_word {
  public:
    using pointer = Object*;
    using element_type = Object;

    constexpr marked_slot() noexcept : marked_word(nullptr) {}
    constexpr marked_slot(std::nullptr_t) noexcept : marked_word(nullptr) {}
    explicit marked_slot(Object* address) noexcept : marked_word(nullptr) { this->set(address); }
    template <class Derived>
    marked_slot(std::unique_ptr<Derived>&& from) noexcept : marked_word(nullptr) {
        this->set(static_cast<Object*>(from.release()));
    }
    marked_slot(marked_slot&& from) noexcept : marked_word(nullptr) { this->set(from.release()); }
    marked_slot& operator=(marked_slot&& from) noexcept {
        reset(from.release());
        return *this;
    }
    template <class Derived>
    marked_slot& operator=(std::unique_ptr<Derived>&& from) noexcept {
        reset(from.release());
        return *this;
    }
    marked_slot& operator=(std::nullptr_t) noexcept {
        reset();
        return *this;
    }
    ~marked_slot() { reset(); }

    operator std::unique_ptr<Object>() && noexcept { return std::unique_ptr<Object>(release()); }

    Object* get() const noexcept { return static_cast<Object*>(marked_word::get()); }
    Object* operator->() const noexcept { return get(); }
    Object& operator*() const noexcept { return *get(); }
    explicit operator bool() const noexcept { return !this->holds_null(); }
    friend bool operator==(const marked_slot& slot, std::nullptr_t) noexcept { return !slot; }
    friend bool operator!=(const marked_slot& slot, std::nullptr_t) noexcept { return bool(slot); }
    friend bool operator==(std::nullptr_t, const marked_slot& slot) noexcept { return !slot; }
    friend bool operator!=(std::nullptr_t, const marked_slot& slot) noexcept { return bool(slot); }

    Object* release() noexcept { return static_cast<Object*>(this->swap_in(nullptr)); }
    /* No thread gets the old address from this slot any more, so the object does not move until it
     * is freed. */
    void reset(Object* address = nullptr) noexcept {
        const marked_operation one;
        delete static_cast<Object*>(this->swap_in(address));
    }
    void swap(marked_slot& other) noexcept {
        const marked_operation one;
        Object* const mine = get();
        this->set(other.get());
        other.set(mine);
    }
    friend void swap(marked_slot& a, marked_slot& b) noexcept { a.swap(b); }
};

template <class T, class... Arguments>
std::unique_ptr<T> make_unique_managed(Arguments&&... arguments);

} // namespace obase

inline constexpr obase::managed_memory obase_managed{};

template <class T, class... Arguments>
std::unique_ptr<T> obase::make_unique_managed(Arguments&&... arguments) {
    return std::unique_ptr<T>(new (obase_managed) T(std::forward<Arguments>(arguments)...));
}

#else

#define OBASE_OPERATION                                                                            \
    __attribute__((cleanup(obase_operation_ends), unused)) const uint64_t obase_this_operation =   \
        OBASE_RUNTIME(enter)()
static inline void obase_operation_ends(const uint64_t* outer) { OBASE_RUNTIME(leave)(*outer); }

/* After the declaration of a variable with slots in it: they end where the variable does. */
#define OBASE_SLOTS_END(variable)                                                                  \
    __attribute__((cleanup(obase_slots_end), unused))                                              \
    const obase_range obase_ends_##variable = {&(variable), sizeof(variable)}
typedef struct obase_range {
    void* begin;
    size_t bytes;
} obase_range;
static inline void obase_slots_end(const obase_range* range) {
    OBASE_RUNTIME(forget)(range->begin, range->bytes);
}

/* Headers may be shared with C++. */
#define OBASE_MANAGED_CLASS
#define OBASE_MANAGED_NEW
#define OBASE_SLOTTED_CLASS

/* Of a type of its own for each field, so that it is not taken for a pointer. */
#define OBASE_SLOT(type)                                                                           \
    struct {                                                                                       \
        type obase_held;                                                                           \
    }

/* The address of a slot, for a variable `struct node** link`; what the variable leads to is a slot,
 * which the functions with _at take. */
#define obase_slot_at(slot) (&(slot).obase_held)

/* The conditional takes the qualifiers of a field of a const struct off. */
#define OBASE_HELD_AT(place) __typeof__(1 ? *(place) : *(place))
#define OBASE_WORD_AT(place) ((void**)(uintptr_t)(place))

#define obase_slot_load_at(place) ((OBASE_HELD_AT(place))obase_slot_address(OBASE_WORD_AT(place)))
#define obase_slot_is_null_at(place) obase_slot_holds_null(OBASE_WORD_AT(place))
/* Returns the address, as an assignment does. */
#define obase_slot_store_at(place, address)                                                        \
    __extension__({                                                                                \
        OBASE_HELD_AT(place) obase_address = (address);                                            \
        OBASE_RUNTIME(store)(OBASE_WORD_AT(place), (void*)(uintptr_t)obase_address);               \
        obase_address;                                                                             \
    })
#define obase_slot_exchange_at(place, address)                                                     \
    __extension__({                                                                                \
        OBASE_HELD_AT(place) obase_address = (address);                                            \
        (OBASE_HELD_AT(place))                                                                     \
            OBASE_RUNTIME(exchange)(OBASE_WORD_AT(place), (void*)(uintptr_t)obase_address);        \
    })
#define obase_slot_compare_exchange_at(place, expected, desired)                                   \
    __extension__({                                                                                \
        OBASE_HELD_AT(place)* const obase_expected = (expected);                                   \
        OBASE_HELD_AT(place) obase_desired = (desired);                                            \
        void* obase_seen = (void*)(uintptr_t)*obase_expected;                                      \
        const int obase_done = OBASE_RUNTIME(compare_exchange)(OBASE_WORD_AT(place), &obase_seen,  \
                                                               (void*)(uintptr_t)obase_desired);   \
        if (!obase_done) *obase_expected = (OBASE_HELD_AT(place))obase_seen;                       \
        obase_done;                                                                                \
    })

#define obase_slot_load(slot) obase_slot_load_at(obase_slot_at(slot))
#define obase_slot_is_null(slot) obase_slot_is_null_at(obase_slot_at(slot))
#define obase_slot_store(slot, address) obase_slot_store_at(obase_slot_at(slot), address)
#define obase_slot_exchange(slot, address) obase_slot_exchange_at(obase_slot_at(slot), address)
#define obase_slot_compare_exchange(slot, expected, desired)                                       \
    obase_slot_compare_exchange_at(obase_slot_at(slot), expected, desired)

#endif
#endif

/* Each file that includes this says its own. */
#undef OBASE_PROTOCOL_ATC
