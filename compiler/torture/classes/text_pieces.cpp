// SPDX-License-Identifier: MIT
//
// right: a rope of pieces that is split and joined.
#include "torture.h"

#include <memory>
#include <string>
#include <utility>
class rope {
    struct piece {
        char text[16];
        std::unique_ptr<piece> next OBASE_GUIDED;
    };
    std::unique_ptr<piece> first_ OBASE_GUIDED;

  public:
    void append(const std::string& text) {
        std::unique_ptr<piece>* at = &first_;
        while (*at) at = &(*at)->next;
        for (std::size_t i = 0; i < text.size(); i += 15) {
            *at = std::make_unique<piece>();
            std::strcpy((*at)->text, text.substr(i, 15).c_str());
            at = &(*at)->next;
        }
    }
    void drop_first() {
        if (first_) first_ = std::move(first_->next);
    }
    void take(rope& other) {
        std::unique_ptr<piece>* at = &first_;
        while (*at) at = &(*at)->next;
        *at = std::move(other.first_);
    }
    std::string all() const {
        std::string s;
        for (const piece* p = first_.get(); p; p = p->next.get()) s += p->text;
        return s;
    }
};
int main() {
    rope a;
    rope b;
    for (int i = 0; i < 10; ++i) {
        a.append("text number " + std::to_string(i) + ", ");
        b.append("another " + std::to_string(i * i) + "; ");
        settle();
    }
    a.drop_first();
    a.take(b);
    settle();
    std::puts(a.all().c_str());
    std::puts(b.all().c_str());
}
