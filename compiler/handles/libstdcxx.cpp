// SPDX-License-Identifier: MIT
//
// Instrumented copies of code that lies in libstdc++'s binary and reaches the objects of the program: trees, lists,
// strings, what streams print and read of them, condition variables. A call of it from instrumented code comes here;
// without these copies it would go to foreign code, which would find each node at its home, where it would stay from
// then on.
//
// Everything has the names and the layouts of libstdc++, so its binary and these may work on the same object. The names are
// hidden where this is linked (compiler/driver/obase-clang.in), so other libraries have their own.
#include <algorithm>
#include <condition_variable>
#include <cstring>
#include <istream>
#include <list>
#include <locale>
#include <map>
#include <mutex>
#include <ostream>
#include <string>

#include <pthread.h>

// The pass makes the bodies of this unit's templates stronger than the thunks of other units (functions.cpp).
extern "C" {
extern const char obase_handles_copies;
[[gnu::used]] const char obase_handles_copies = 0;
}

namespace std {

// Red and black trees. `header` is the node beside the tree: its parent is the root, whose parent it is; its left and
// its right are the first and the last node; it is red.

namespace {

using node = _Rb_tree_node_base;

node* next_of(node* x) noexcept {
    if (x->_M_right != nullptr) {
        for (x = x->_M_right; x->_M_left != nullptr;) x = x->_M_left;
        return x;
    }
    node* above = x->_M_parent;
    while (x == above->_M_right) {
        x = above;
        above = above->_M_parent;
    }
    // A root without a right child has come to the header, which is the answer.
    return x->_M_right != above ? above : x;
}

node* before(node* x) noexcept {
    if (x->_M_color == _S_red && x->_M_parent->_M_parent == x) return x->_M_right; // of the header
    if (x->_M_left != nullptr) {
        for (x = x->_M_left; x->_M_right != nullptr;) x = x->_M_right;
        return x;
    }
    node* above = x->_M_parent;
    while (x == above->_M_left) {
        x = above;
        above = above->_M_parent;
    }
    return above;
}

// What leads to `x` leads to `other`.
void put_in_place_of(node* x, node* other, node*& root) noexcept {
    node* const above = x->_M_parent;
    if (x == root)
        root = other;
    else if (x == above->_M_left)
        above->_M_left = other;
    else
        above->_M_right = other;
}

void rotate_left(node* x, node*& root) noexcept {
    node* const up = x->_M_right;
    x->_M_right = up->_M_left;
    if (up->_M_left != nullptr) up->_M_left->_M_parent = x;
    up->_M_parent = x->_M_parent;
    put_in_place_of(x, up, root);
    up->_M_left = x;
    x->_M_parent = up;
}

void rotate_right(node* x, node*& root) noexcept {
    node* const up = x->_M_left;
    x->_M_left = up->_M_right;
    if (up->_M_right != nullptr) up->_M_right->_M_parent = x;
    up->_M_parent = x->_M_parent;
    put_in_place_of(x, up, root);
    up->_M_right = x;
    x->_M_parent = up;
}

bool is_black(const node* x) noexcept { return x == nullptr || x->_M_color == _S_black; }

// `x`, which may be null, is below `above`, and each way through it has one black node too few.
void mend_after_erase(node* x, node* above, node*& root) noexcept {
    while (x != root && is_black(x)) {
        const bool left = x == above->_M_left;
        node* sibling = left ? above->_M_right : above->_M_left;
        if (sibling->_M_color == _S_red) {
            sibling->_M_color = _S_black;
            above->_M_color = _S_red;
            left ? rotate_left(above, root) : rotate_right(above, root);
            sibling = left ? above->_M_right : above->_M_left;
        }
        node* far = left ? sibling->_M_right : sibling->_M_left;
        node* const near = left ? sibling->_M_left : sibling->_M_right;
        if (is_black(far) && is_black(near)) {
            sibling->_M_color = _S_red;
            x = above;
            above = above->_M_parent;
            continue;
        }
        if (is_black(far)) {
            near->_M_color = _S_black;
            sibling->_M_color = _S_red;
            left ? rotate_right(sibling, root) : rotate_left(sibling, root);
            far = sibling;
            sibling = near;
        }
        sibling->_M_color = above->_M_color;
        above->_M_color = _S_black;
        far->_M_color = _S_black;
        left ? rotate_left(above, root) : rotate_right(above, root);
        break;
    }
    if (x != nullptr) x->_M_color = _S_black;
}

} // namespace

node* _Rb_tree_increment(node* x) noexcept { return next_of(x); }
const node* _Rb_tree_increment(const node* x) noexcept { return next_of(const_cast<node*>(x)); }
node* _Rb_tree_decrement(node* x) noexcept { return before(x); }
const node* _Rb_tree_decrement(const node* x) noexcept { return before(const_cast<node*>(x)); }

void _Rb_tree_insert_and_rebalance(const bool left, node* x, node* above, node& header) noexcept {
    node*& root = header._M_parent;
    x->_M_parent = above;
    x->_M_left = nullptr;
    x->_M_right = nullptr;
    x->_M_color = _S_red;
    if (left) {
        above->_M_left = x; // of the header: the first, too
        if (above == &header) {
            header._M_parent = x;
            header._M_right = x;
        } else if (above == header._M_left) {
            header._M_left = x;
        }
    } else {
        above->_M_right = x;
        if (above == header._M_right) header._M_right = x;
    }
    while (x != root && x->_M_parent->_M_color == _S_red) {
        node* const parent = x->_M_parent;
        node* const grand = parent->_M_parent;
        const bool parent_is_left = parent == grand->_M_left;
        node* const uncle = parent_is_left ? grand->_M_right : grand->_M_left;
        if (!is_black(uncle)) {
            parent->_M_color = _S_black;
            uncle->_M_color = _S_black;
            grand->_M_color = _S_red;
            x = grand;
            continue;
        }
        if (x == (parent_is_left ? parent->_M_right : parent->_M_left)) {
            x = parent;
            parent_is_left ? rotate_left(x, root) : rotate_right(x, root);
        }
        x->_M_parent->_M_color = _S_black;
        grand->_M_color = _S_red;
        parent_is_left ? rotate_right(grand, root) : rotate_left(grand, root);
    }
    root->_M_color = _S_black;
}

node* _Rb_tree_rebalance_for_erase(node* const gone, node& header) noexcept {
    node*& root = header._M_parent;
    node* child = nullptr; // comes where a black node may be missing
    node* above = nullptr;
    _Rb_tree_color taken_out = gone->_M_color;
    if (gone->_M_left == nullptr || gone->_M_right == nullptr) {
        child = gone->_M_left != nullptr ? gone->_M_left : gone->_M_right;
        above = gone->_M_parent;
        if (child != nullptr) child->_M_parent = above;
        put_in_place_of(gone, child, root);
        if (header._M_left == gone)
            header._M_left = gone->_M_right == nullptr ? above : node::_S_minimum(child);
        if (header._M_right == gone)
            header._M_right = gone->_M_left == nullptr ? above : node::_S_maximum(child);
    } else {
        // The next one takes its place, and its colour.
        node* const next = node::_S_minimum(gone->_M_right);
        taken_out = next->_M_color;
        child = next->_M_right;
        gone->_M_left->_M_parent = next;
        next->_M_left = gone->_M_left;
        if (next == gone->_M_right) {
            above = next;
        } else {
            above = next->_M_parent;
            if (child != nullptr) child->_M_parent = above;
            above->_M_left = child;
            next->_M_right = gone->_M_right;
            gone->_M_right->_M_parent = next;
        }
        put_in_place_of(gone, next, root);
        next->_M_parent = gone->_M_parent;
        next->_M_color = gone->_M_color;
    }
    if (taken_out == _S_black && root != nullptr) mend_after_erase(child, above, root);
    return gone;
}

unsigned _Rb_tree_black_count(const node* x, const node* root) noexcept {
    unsigned count = 0;
    for (; x != nullptr; x = x == root ? nullptr : x->_M_parent) count += x->_M_color == _S_black;
    return count;
}

// Lists.

namespace __detail {

void _List_node_base::_M_hook(_List_node_base* const behind) noexcept {
    _M_next = behind;
    _M_prev = behind->_M_prev;
    behind->_M_prev->_M_next = this;
    behind->_M_prev = this;
}
void _List_node_base::_M_unhook() noexcept {
    _M_next->_M_prev = _M_prev;
    _M_prev->_M_next = _M_next;
}
// [first, last) comes in front of this one.
void _List_node_base::_M_transfer(_List_node_base* const first,
                                  _List_node_base* const last) noexcept {
    if (this == last) return;
    _List_node_base* const moved_last = last->_M_prev;
    first->_M_prev->_M_next = last;
    last->_M_prev = first->_M_prev;
    _M_prev->_M_next = first;
    first->_M_prev = _M_prev;
    moved_last->_M_next = this;
    _M_prev = moved_last;
}
void _List_node_base::_M_reverse() noexcept {
    _List_node_base* at = this;
    do {
        _List_node_base* const next = at->_M_next;
        at->_M_next = at->_M_prev;
        at->_M_prev = next;
        at = next;
    } while (at != this);
}
// Of the nodes that the lists themselves have; an empty one leads to itself.
void _List_node_base::swap(_List_node_base& a, _List_node_base& b) noexcept {
    const bool a_is_empty = a._M_next == &a;
    const bool b_is_empty = b._M_next == &b;
    const _List_node_base was_a = a;
    a = b;
    b = was_a;
    for (auto [list, is_empty] : {pair{&a, b_is_empty}, pair{&b, a_is_empty}}) {
        if (is_empty) list->_M_next = list->_M_prev = list;
        list->_M_next->_M_prev = list;
        list->_M_prev->_M_next = list;
    }
}

} // namespace __detail

// Strings. Without C++20, whose strings have no code in the binary.

template class basic_string<char>;
template class basic_string<wchar_t>;

template ostream& operator<<(ostream&, const string&);
template ostream& operator<<(ostream&, const char*);

template istream& getline(istream&, string&);

namespace {

enum class stopped { by_end, by_character, by_count };

// Reads into `to` up to a character of which `ends` says so, which stays in the stream, and at most `most`.
template <class Ends>
stopped read_until(istream& in, string& to, string::size_type most, Ends ends) {
    using traits = char_traits<char>;
    to.erase();
    for (auto c = in.rdbuf()->sgetc();; c = in.rdbuf()->snextc()) {
        if (to.size() == most) return stopped::by_count;
        if (traits::eq_int_type(c, traits::eof())) return stopped::by_end;
        if (ends(traits::to_char_type(c))) return stopped::by_character;
        to.push_back(traits::to_char_type(c));
    }
}

// What the stream's buffer throws makes the stream bad; it is thrown on if the stream was told to.
template <class Work>
void with_exceptions(ios& of, Work work) {
    try {
        work();
    } catch (__cxxabiv1::__forced_unwind&) { // a thread that is cancelled
        of._M_setstate(ios_base::badbit);
        throw;
    } catch (...) {
        of._M_setstate(ios_base::badbit);
    }
}

// From the stack: a buffer of libstdc++'s would get an object that has to be at home meanwhile.
void put(ostream& out, const char* from, streamsize size) {
    char piece[4096];
    for (streamsize at = 0, next; at < size; at += next) {
        next = min<streamsize>(size - at, sizeof piece);
        memcpy(piece, from + at, static_cast<size_t>(next));
        if (out.rdbuf()->sputn(piece, next) != next) return out.setstate(ios_base::badbit);
    }
}

} // namespace

template <>
istream& operator>>(istream& in, string& to) {
    ios_base::iostate state = ios_base::goodbit;
    bool any = false;
    if (const istream::sentry ready(in, false); ready) {
        with_exceptions(in, [&] {
            const auto& kinds = use_facet<ctype<char>>(in.getloc());
            const string::size_type most =
                in.width() > 0 ? static_cast<string::size_type>(in.width()) : to.max_size();
            const auto is_space = [&](char c) { return kinds.is(ctype_base::space, c); };
            if (read_until(in, to, most, is_space) == stopped::by_end) state = ios_base::eofbit;
            in.width(0);
        });
        any = !to.empty();
    }
    if (!any) state |= ios_base::failbit;
    if (state != ios_base::goodbit) in.setstate(state);
    return in;
}

template <>
istream& getline(istream& in, string& to, char end) {
    ios_base::iostate state = ios_base::goodbit;
    bool any = false; // the end of an empty line is something, too
    if (const istream::sentry ready(in, true); ready) {
        with_exceptions(in, [&] {
            switch (read_until(in, to, to.max_size(), [&](char c) { return c == end; })) {
            case stopped::by_end:
                state = ios_base::eofbit;
                break;
            case stopped::by_character:
                any = true;
                in.rdbuf()->sbumpc();
                break;
            case stopped::by_count:
                state = ios_base::failbit;
                break;
            }
        });
        any |= !to.empty();
    }
    if (!any) state |= ios_base::failbit;
    if (state != ios_base::goodbit) in.setstate(state);
    return in;
}

// __ostream_insert() and ostream::write() by the names of their symbols: a template that headers have promised cannot be
// specialized, nor a member of one.
ostream& insert_text(ostream& out, const char* from, streamsize size) __asm__(
    "_ZSt16__ostream_insertIcSt11char_traitsIcEERSt13basic_ostreamIT_T0_ES6_PKS3_l");
ostream& insert_text(ostream& out, const char* from, streamsize size) {
    if (const ostream::sentry ready(out); ready)
        with_exceptions(out, [&] {
            const streamsize fill = max<streamsize>(out.width() - size, 0);
            const bool left = (out.flags() & ios_base::adjustfield) == ios_base::left;
            if (!left && fill != 0) __ostream_fill(out, fill);
            if (out.good()) put(out, from, size);
            if (left && fill != 0 && out.good()) __ostream_fill(out, fill);
            out.width(0);
        });
    return out;
}
ostream& write_bytes(ostream* out, const char* from, streamsize size) __asm__("_ZNSo5writeEPKcl");
ostream& write_bytes(ostream* out, const char* from, streamsize size) {
    if (const ostream::sentry ready(*out); ready)
        with_exceptions(*out, [&] { put(*out, from, size); });
    return *out;
}

// In libstdc++'s binary the mutex, which the lock only points to, would be waited for at its home, while who unlocks it
// wakes those that wait at its present address.
void condition_variable::wait(unique_lock<mutex>& lock) {
    pthread_cond_wait(native_handle(), lock.mutex()->native_handle());
}

} // namespace std
