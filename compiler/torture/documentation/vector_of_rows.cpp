// SPDX-License-Identifier: MIT
//
// right: a vector of structs with a marked unique_ptr and moves of their own.
#include "torture.h"

#include <memory>
#include <utility>
#include <vector>
class row {
  public:
    explicit row(int n) : number_(n), text_(std::make_unique<text>()) {
        std::snprintf(text_->bytes, sizeof text_->bytes, "row %d", n);
    }
    row(row&& other) noexcept : number_(other.number_), text_(std::move(other.text_)) {}
    row& operator=(row&& other) noexcept {
        number_ = other.number_;
        text_ = std::move(other.text_);
        return *this;
    }
    void print() const { std::puts(text_->bytes); }

  private:
    struct text {
        char bytes[24];
    };
    int number_;
    std::unique_ptr<text> text_ OBASE_GUIDED;
};
int main() {
    std::vector<row> rows;
    for (int i = 0; i < 30; ++i) {
        rows.emplace_back(i);
        if (i % 10 == 0) settle();
    }
    settle();
    rows.erase(rows.begin() + 3);
    rows.insert(rows.begin(), row(100));
    settle();
    for (const row& r : rows) r.print();
}
