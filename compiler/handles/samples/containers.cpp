// SPDX-License-Identifier: MIT
// C++: containers of the standard library, whose binary walks nodes; virtual functions, exceptions, shared pointers.
#include <cstdio>
#include <map>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>
struct shape {
    virtual ~shape() = default;
    virtual double area() const = 0;
};
struct square : shape {
    explicit square(double a) : side(a) {}
    double area() const override { return side * side; }
    double side;
};
__attribute__((noinline)) static int parse(const std::string& text) {
    if (text.size() > 4) throw std::runtime_error("too long: " + text);
    return std::stoi(text);
}
int main() {
    std::map<std::string, int> counts;
    for (int i = 0; i < 200; ++i) ++counts["a key that is not short " + std::to_string(i % 17)];
    counts.erase("a key that is not short 3");
    int sum = 0;
    for (const auto& [key, count] : counts) sum += count * static_cast<int>(key.size());
    std::vector<std::unique_ptr<shape>> shapes;
    for (int i = 0; i < 10; ++i) shapes.push_back(std::make_unique<square>(i));
    double area = 0;
    for (const auto& one : shapes) area += one->area();
    std::printf("%d %g\n", sum, area); //> 4780 285
    int caught = 0;
    for (const char* text : {"12", "123456", "x", "7"}) {
        try {
            caught += parse(text);
        } catch (const std::runtime_error& e) {
            std::printf("%s;", e.what());
        } catch (const std::invalid_argument&) {
            caught += 100;
        }
    }
    const auto shared = std::make_shared<std::string>(100, 'x');
    const std::weak_ptr<std::string> weak = shared;
    std::printf("%d %zu\n", caught, weak.lock()->size()); //> too long: 123456;119 100
}
