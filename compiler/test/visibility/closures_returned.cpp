// SPDX-License-Identifier: MIT
// RUN: %obase-clang++ -c -O0 -DCALLED --obase-visibility=%t.called -o %t.o %s
// RUN: %filecheck --input-file=%t.called %s
// RUN: %obase-clang++ -c -O0 --obase-visibility=%t.not_called -o %t.o %s
// RUN: %filecheck --input-file=%t.not_called %s
// A closure that an inline function returns, in whatever it returns, is an entry in every translation
// unit: in those that call it in operations only, and in those that do not call it. One that is not
// returned is what its calls make of it.
#include "marks.h"
#include <optional>
#include <utility>
struct node { int key; node* next OBASE_GUIDED; };
class list {
  public:
    template <class F> int run(F f) const { return head_ != nullptr ? f(*this) : 0; }
    int first() const { return head_->key; }
    node* head_ OBASE_GUIDED = nullptr;
};
inline auto alone() { return [](const list& l) { return l.head_->key; }; }
// CHECK-DAG: entry{{.}}alone{{.*}}operator(){{.*}}:[[#@LINE-1]]{{.*}}may run in another thread
inline auto member() {
    auto c = [](const list& l) { return l.head_->key; };
    // CHECK-DAG: entry{{.}}member{{.*}}operator(){{.*}}:[[#@LINE-1]]{{.*}}may run in another thread
    struct result { int before; decltype(c) f; };
    return result{1, c};
}
inline auto base() {
    auto c = [](const list& l) { return l.head_->key; };
    // CHECK-DAG: entry{{.}}base{{.*}}operator(){{.*}}:[[#@LINE-1]]{{.*}}may run in another thread
    struct result : decltype(c) { result* self = this; };
    return result{c};
}
inline auto array() {
    auto c = [](const list& l) { return l.head_->key; };
    // CHECK-DAG: entry{{.}}array{{.*}}operator(){{.*}}:[[#@LINE-1]]{{.*}}may run in another thread
    struct inner { decltype(c) f[2]; };
    struct result { const inner* at; };
    static const inner all{{c, c}};
    return result{&all};
}
inline auto in_pair() {
    auto c = [](const list& l) { return l.head_->key; };
    // CHECK-DAG: entry{{.}}in_pair{{.*}}operator(){{.*}}:[[#@LINE-1]]{{.*}}may run in another thread
    struct result { decltype(c) f; };
    return std::pair<int, std::optional<result>>(1, result{c});
}
inline auto& by_reference() {
    auto c = [](const list& l) { return l.head_->key; };
    // CHECK-DAG: entry{{.}}by_reference{{.*}}operator(){{.*}}:[[#@LINE-1]]{{.*}}may run in another thread
    static struct { decltype(c) f; } all{c};
    return all;
}
inline auto captured() {
    auto c = [](const list& l) { return l.head_->key; };
    // CHECK-DAG: entry{{.}}captured{{.*}}operator(){{.*}}:[[#@LINE-1]]{{.*}}may run in another thread
    return [c] { return c; };
}
inline auto by_function() {
    auto c = [](const list& l) { return l.head_->key; };
    // CHECK-DAG: entry{{.}}by_function{{.*}}operator(){{.*}}:[[#@LINE-1]]{{.*}}may run in another thread
    using result = decltype(c) (*)();
    return result([] { return decltype(c)(); });
}
inline auto named() {
    auto c = [](const list& l) { return l.head_->key; };
    // CHECK-DAG: entry{{.}}named{{.*}}operator(){{.*}}:[[#@LINE-1]]{{.*}}may run in another thread
    struct result {
        using type = decltype(c);
        result* self;
    };
    return result{};
}
inline auto given() {
    auto c = [](const list& l) { return l.head_->key; };
    // CHECK-DAG: entry{{.}}given{{.*}}operator(){{.*}}:[[#@LINE-1]]{{.*}}may run in another thread
    struct result {
        auto get() const { return decltype(c)(); }
    };
    return result{};
}
inline auto generic() {
    auto c = [](const list& l) { return l.head_->key; };
    // CHECK-DAG: entry{{.}}generic{{.*}}operator(){{.*}}:[[#@LINE-1]]{{.*}}may run in another thread
    return [](auto) { return decltype(c)(); };
}
template <class F> auto nested_in(F) {
    struct local { F* at; };
    return local{nullptr};
}
inline auto from_template() {
    auto c = [](const list& l) { return l.head_->key; };
    // CHECK-DAG: entry{{.}}from_template{{.*}}operator(){{.*}}:[[#@LINE-1]]{{.*}}may run in another thread
    return nested_in(c);
}
inline int not_returned(const list& l) {
    struct result { int key; const list* of; } r{0, &l};
    // CHECK-DAG: internal{{.}}not_returned{{.*}}operator(){{.*}}:[[#@LINE+1]]{{.*}}closure that is called in operations only
    r.key = l.run([](const list& at) { return at.head_->key; });
    return r.key;
}
#ifdef CALLED
int list_sum(const list& l) {
    return l.head_ == nullptr
               ? 0
               : alone()(l) + member().f(l) + base()(l) + array().at->f[1](l) +
                     in_pair().second->f(l) + by_reference().f(l) + captured()()(l) +
                     by_function()()(l) + decltype(named())::type()(l) + given().get()(l) +
                     generic()(0)(l) + (*from_template().at)(l) + not_returned(l);
}
#endif
