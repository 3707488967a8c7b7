// SPDX-License-Identifier: MIT
//
// A script of API operations on arbitrary bytes, against a model. The model knows, for every guide,
// which object it must hold: identity, size and the bytes that follow from them. Objects are trees:
// a node has a text and two guides to nodes. Whatever the script does, and whenever the collector
// moves, every object reached through a guide is the expected one, every object is destroyed
// exactly once, and none is destroyed while a pin or a scope may hold it.
//
// Both protocols run the same script, one after the other.
#include <obase/obase.hpp>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace {

void require(bool holds, const char* what) {
    if (holds) return;
    std::fprintf(stderr, "script: not met: %s\n", what);
    std::abort();
}

// The script: one byte after the other, zeros after the end.
class reader {
  public:
    reader(const std::uint8_t* data, std::size_t size) : at_(data), end_(data + size) {}
    bool done() const { return at_ == end_; }
    std::uint8_t byte() { return done() ? 0 : *at_++; }
    std::size_t below(std::size_t bound) { return byte() % bound; }

  private:
    const std::uint8_t* at_;
    const std::uint8_t* end_;
};

// Which objects exist: one flag per identity. Atomic, because the collector thread destroys what
// was retired.
constexpr unsigned most_steps = 400;
constexpr std::size_t most_objects = most_steps * 41;
std::array<std::atomic<bool>, most_objects> alive;
std::size_t objects_made = 0;

template <class Protocol>
struct node {
    std::uint64_t id;
    std::uint64_t complement;
    obase::guide<obase::bytes, Protocol> text;
    std::array<obase::guide<node, Protocol>, 2> child;

    explicit node(std::uint64_t number) : id(number), complement(~number) { alive[number] = true; }
    node(const node&) = delete;
    ~node() {
        require(complement == ~id, "what is destroyed is a node");
        require(alive[id].exchange(false), "a node is destroyed once");
    }
};

} // namespace

template <class Protocol>
struct obase::is_relocatable<node<Protocol>> : std::true_type {};

namespace {

constexpr std::size_t table_size = 12;
constexpr std::size_t owners = 4;
constexpr std::size_t deepest = 6; // of a tree; keeps destruction and comparison short

// What a node has to be. Owned like the real ones.
struct model_node {
    std::uint64_t id = 0;
    std::optional<std::string> text;
    std::array<std::unique_ptr<model_node>, 2> child;
};
using model_pointer = std::unique_ptr<model_node>;

template <class Protocol>
class script {
  public:
    using guide = obase::guide<node<Protocol>, Protocol>;
    using owner = obase::owner<node<Protocol>, Protocol>;
    using scope = obase::basic_scope<Protocol>;

    explicit script(reader input) : input_(input), runtime_(obase::runtime::of<Protocol>()) {}

    void run() {
        objects_made = 0;
        table_ = std::make_unique<std::array<guide, table_size>>();
        for (unsigned steps = 0; !input_.done() && steps < most_steps; ++steps) step();
        pins_.clear();
        while (!scopes_.empty()) scopes_.pop_back(); // the innermost first
        check_all();
        table_.reset();
        for (auto& m : model_) m.reset();
        for (auto& o : held_) o.reset();
        for (auto& m : held_model_) m.reset();
        // Two rounds stamp and free what was retired. The collector may be at it, too: a window
        // that it has ended means that it is done with what it took before.
        runtime_.set_mode(obase::run_mode::move);
        for (int round = 0; any_alive(); ++round) {
            if (round == 1000) std::fprintf(stderr, "script: object %zu is alive\n", first_alive());
            require(round < 1000, "everything retired is destroyed");
            runtime_.reclaim_now();
            if (round > 10) runtime_.collect_now();
        }
    }

  private:
    static std::size_t first_alive() {
        std::size_t i = 0;
        while (i < objects_made && !alive[i]) ++i;
        return i;
    }
    static bool any_alive() { return first_alive() != objects_made; }

    struct place {
        guide* real;
        model_pointer* model;
        std::size_t depth;
    };

    // A guide in the table or inside a node, by some bytes of the script. Precondition: inside a
    // scope.
    place choose() {
        const std::size_t i = input_.below(table_size);
        place at{&(*table_)[i], &model_[i], 0};
        for (std::uint8_t path = input_.byte(); (path & 3) != 0 && *at.model != nullptr;
             path >>= 2) {
            const std::size_t side = path & 1;
            node<Protocol>* inside = at.real->get();
            require(inside != nullptr && inside->id == (*at.model)->id, "a guide has its object");
            at = {&inside->child[side], &(*at.model)->child[side], at.depth + 1};
        }
        return at;
    }

    static bool contains(const model_pointer& tree, const model_pointer* what) {
        if (&tree == what) return true;
        if (tree == nullptr) return false;
        return contains(tree->child[0], what) || contains(tree->child[1], what);
    }
    static std::size_t height(const model_pointer& tree) {
        return tree == nullptr ? 0 : 1 + std::max(height(tree->child[0]), height(tree->child[1]));
    }

    std::string make_text(std::uint64_t id) {
        static constexpr std::size_t sizes[] = {0,   1,    7,    24,     60,     100,    250,  500,
                                                900, 2000, 5000, 16'380, 16'400, 70'000, 3000, 12};
        std::string text(sizes[input_.below(16)], 'a');
        for (std::size_t i = 0; i < text.size(); ++i) text[i] = static_cast<char>(id * 31 + i * 7);
        return text;
    }

    std::pair<owner, model_pointer> make() {
        const std::uint64_t id = objects_made++;
        const std::uint8_t how = input_.byte();
        obase::allocation_options wish;
        wish.never_cold = (how & 1) != 0;
        wish.alignment = std::size_t{1} << (how >> 1 & 15) % 13;
        wish.extra_bytes = (how & 64) != 0 ? 20'000 : (how & 32) != 0 ? 300 : 0;
        owner made = obase::make_managed_with<node<Protocol>, Protocol>(wish, id);
        require(reinterpret_cast<std::uintptr_t>(made.get()) % wish.alignment == 0, "aligned");
        auto model = std::make_unique<model_node>();
        model->id = id;
        if ((how & 64) != 0) {
            model->text = make_text(id);
            made->text = obase::make_bytes<Protocol>(*model->text);
        }
        return {std::move(made), std::move(model)};
    }

    void check(guide& real, const model_pointer& model) {
        if (model == nullptr) {
            require(!real && real == nullptr && real.peek() == nullptr, "null");
            require(real.get() == nullptr, "null when used");
            return;
        }
        require(static_cast<bool>(real), "not null");
        node<Protocol>& found = *real;
        require(found.id == model->id && found.complement == ~model->id, "the expected object");
        require(alive[model->id], "which is alive");
        require(static_cast<bool>(found.text) == model->text.has_value(), "with a text or without");
        if (model->text) require(*found.text == *model->text, "its text");
        check(found.child[0], model->child[0]);
        check(found.child[1], model->child[1]);
    }
    void check_all() {
        const scope one_operation;
        for (std::size_t i = 0; i < table_size; ++i) check((*table_)[i], model_[i]);
        for (std::size_t i = 0; i < owners; ++i)
            require(static_cast<bool>(held_[i]) == (held_model_[i] != nullptr), "owners");
    }

    // A pin keeps a retired object, but not what is destroyed with its owner: that is the owner's
    // business. So a node is retired if it is pinned, and kept if something below it is.
    bool is_pinned(std::uint64_t id) const {
        return std::any_of(pins_.begin(), pins_.end(), [&](const auto& p) { return p.id == id; });
    }
    bool pinned(const model_pointer& tree) const {
        return tree != nullptr && (is_pinned(tree->id) || pinned_below(tree));
    }
    bool pinned_below(const model_pointer& tree) const {
        return tree != nullptr && (pinned(tree->child[0]) || pinned(tree->child[1]));
    }

    void drop(owner&& real, model_pointer&& model, bool at_once) {
        if (at_once && !pinned(model))
            real.reset();
        else
            obase::retire(std::move(real));
        model.reset();
    }

    void step() {
        const std::uint8_t operation = input_.byte();
        const bool at_once = (operation & 0x80) != 0;
        switch (operation % 18) {
        case 0: // a new object, assigned or exchanged
        case 1: {
            const scope one_operation;
            const place at = choose();
            if (at.depth >= deepest || pinned_below(*at.model)) break;
            auto [real, model] = make();
            owner old = at.real->exchange(std::move(real));
            std::swap(*at.model, model);
            drop(std::move(old), std::move(model), at_once);
            break;
        }
        case 2: { // gone
            const scope one_operation;
            const place at = choose();
            if (pinned(*at.model)) break;
            if (at_once)
                *at.real = nullptr;
            else
                at.real->reset();
            at.model->reset();
            break;
        }
        case 3: { // move between guides
            const scope one_operation;
            const place from = choose();
            const place to = choose();
            if (contains(*from.model, to.model) || contains(*to.model, from.model)) break;
            if (to.depth + height(*from.model) > deepest || pinned(*to.model)) break;
            *to.real = std::move(*from.real);
            *to.model = std::move(*from.model);
            break;
        }
        case 4: { // swap
            const scope one_operation;
            const place a = choose();
            const place b = choose();
            if (a.model != b.model && (contains(*a.model, b.model) || contains(*b.model, a.model)))
                break;
            if (a.depth + height(*b.model) > deepest || b.depth + height(*a.model) > deepest) break;
            swap(*a.real, *b.real);
            std::swap(*a.model, *b.model);
            break;
        }
        case 5: { // compare-exchange that succeeds
            const scope one_operation;
            const place at = choose();
            if (at.depth >= deepest || pinned_below(*at.model)) break;
            auto [real, model] = make();
            node<Protocol>* expected = at.real->get();
            require(at.real->compare_exchange(expected, real), "no other thread is there");
            std::swap(*at.model, model);
            drop(std::move(real), std::move(model), at_once);
            break;
        }
        case 6: { // compare-exchange that fails
            const scope one_operation;
            const place at = choose();
            auto [real, model] = make();
            node<Protocol>* expected = real.get(); // some other address
            node<Protocol>* const mine = real.get();
            require(!at.real->compare_exchange(expected, real), "another address is there");
            require(expected == at.real->get() && real.get() == mine, "and is given out");
            break;
        }
        case 7: { // a text inside
            const scope one_operation;
            const place at = choose();
            if (*at.model == nullptr) break;
            model_node& model = **at.model;
            node<Protocol>& real = **at.real;
            if (at_once) {
                real.text = nullptr;
                model.text.reset();
            } else {
                model.text = make_text(model.id);
                obase::retire(real.text.exchange(obase::make_bytes<Protocol>(*model.text)));
            }
            break;
        }
        case 8: { // out into an owner
            const scope one_operation;
            const std::size_t i = input_.below(owners);
            const place at = choose();
            if (pinned_below(held_model_[i])) break;
            if (held_[i]) drop(std::move(held_[i]), std::move(held_model_[i]), at_once);
            held_[i] = at.real->release();
            held_model_[i] = std::move(*at.model);
            break;
        }
        case 9: { // and back
            const scope one_operation;
            const std::size_t i = input_.below(owners);
            const place at = choose();
            if (at.depth + height(held_model_[i]) > deepest || pinned(*at.model)) break;
            *at.real = std::move(held_[i]);
            *at.model = std::move(held_model_[i]);
            break;
        }
        case 10: { // pin
            if (pins_.size() == 40) break;
            const scope one_operation;
            const place at = choose();
            if (*at.model == nullptr) break;
            pins_.push_back({obase::pin<node<Protocol>, Protocol>(*at.real), (*at.model)->id});
            break;
        }
        case 11: // unpin, by moving another over it
            if (pins_.empty()) break;
            std::swap(pins_[input_.below(pins_.size())], pins_.back());
            pins_.pop_back();
            break;
        case 12: // a scope that stays open
            if (scopes_.size() < 5) scopes_.push_back(std::make_unique<scope>());
            break;
        case 13:
            if (!scopes_.empty()) scopes_.pop_back();
            break;
        case 14: {
            const auto result = runtime_.collect_now();
            if (!scopes_.empty())
                require(result == obase::collect_result::in_scope, "the caller is in a scope");
            else if (runtime_.mode() == obase::run_mode::off)
                require(result == obase::collect_result::not_running, "off");
            else
                require(result == obase::collect_result::done, "a whole window");
            break;
        }
        case 15:
            runtime_.set_mode(static_cast<obase::run_mode>(input_.below(4)));
            break;
        case 16: { // an arena with guides, dropped as a whole
            const std::size_t count = 1 + input_.below(40);
            std::unique_ptr<std::byte[]> arena(new std::byte[count * sizeof(guide)]);
            std::vector<owner> kept;
            for (std::size_t i = 0; i < count; ++i) {
                auto [real, model] = make();
                auto* g = ::new (arena.get() + i * sizeof(guide)) guide(std::move(real));
                if (i % 3 == 0) kept.push_back(g->release());
            }
            if (scopes_.empty()) runtime_.collect_now();
            for (std::size_t i = 0; i < count; ++i) {
                if (i % 3 == 0) continue;
                kept.push_back(reinterpret_cast<guide*>(arena.get())[i].release());
            }
            obase::forget_guides<Protocol>(arena.get(), count * sizeof(guide));
            arena.reset();
            if (scopes_.empty()) runtime_.collect_now();
            for (owner& o : kept) require(o->complement == ~o->id, "objects outlive the arena");
            break;
        }
        default:
            for (const auto& p : pins_) {
                require(alive[p.id], "a pinned object is not destroyed");
                require(p.pin->id == p.id, "and where it was");
            }
            check_all();
        }
    }

    struct pinned_node {
        obase::pin<node<Protocol>, Protocol> pin;
        std::uint64_t id;
    };

    reader input_;
    obase::runtime& runtime_;
    std::unique_ptr<std::array<guide, table_size>> table_;
    std::array<model_pointer, table_size> model_;
    std::array<owner, owners> held_;
    std::array<model_pointer, owners> held_model_;
    std::vector<pinned_node> pins_;
    std::vector<std::unique_ptr<scope>> scopes_;
};

template <class Protocol>
void configure() {
    obase::options settings = obase::options::from_environment();
    settings.window_seconds = 1e6; // a window when the script says so
    settings.cold_threshold = 1;
    settings.controller = obase::controller_kind::fixed;
    settings.poison_freed = true;
    settings.heap_reserve = std::uint64_t{64} << 20;
    require(obase::runtime::of<Protocol>().configure(settings).empty(), "configure");
}

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    static const bool configured = (configure<obase::arming>(), configure<obase::atc>(), true);
    (void)configured;
    script<obase::arming>(reader(data, size)).run();
    script<obase::atc>(reader(data, size)).run();
    return 0;
}
