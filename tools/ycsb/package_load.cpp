// SPDX-License-Identifier: MIT
#include "tools/ycsb/package_load.hpp"

#include "tools/workload/debian_packages.hpp"

#include <algorithm>
#include <functional>
#include <stdexcept>
#include <vector>

namespace obase::tools {
namespace {

class package_records final : public record_set {
  public:
    package_records(workload::package_list list, workload::package_names names)
        : list_(std::move(list)), names_(std::move(names)) {
        for (const workload::package& p : list_->packages()) {
            hashes_.push_back(std::hash<std::string_view>{}(p.stanza));
            largest_key_ = std::max(largest_key_, p.key.size());
            largest_value_ = std::max(largest_value_, p.stanza.size());
        }
    }
    std::uint64_t count() const noexcept override { return names_.size(); }
    std::size_t largest_key() const noexcept override { return largest_key_; }
    std::size_t largest_value() const noexcept override { return largest_value_; }

    std::string_view key(std::uint64_t record, std::span<char>) const override {
        return names_.key(static_cast<std::uint32_t>(record));
    }
    std::string_view value(std::uint64_t record, std::uint64_t, std::size_t,
                           std::span<char>) const override {
        if (!list_) throw std::logic_error("a package index is read only");
        return list_->packages()[record].stanza;
    }
    std::optional<std::uint64_t> check(std::uint64_t record,
                                       std::string_view value) const override {
        if (std::hash<std::string_view>{}(value) != hashes_[record]) return std::nullopt;
        return any_version;
    }
    void forget_source() override { list_.reset(); }
    std::size_t source_bytes() const override { return list_ ? list_->bytes() : 0; }

  private:
    std::optional<workload::package_list> list_;
    workload::package_names names_;
    std::vector<std::size_t> hashes_; // of the stanzas
    std::size_t largest_key_ = 0;
    std::size_t largest_value_ = 0;
};

} // namespace

session_load load_from_packages(const ycsb_settings& settings) {
    workload::package_list list = settings.package_file.empty()
                                      ? workload::package_list::read_apt()
                                      : workload::package_list::read_file(settings.package_file);
    workload::package_names names(list);
    const std::vector<std::uint32_t> roots = names.find_all(workload::installed_packages());
    if (roots.empty())
        throw std::runtime_error("none of the packages installed here is in the package index");

    auto sequence = std::make_shared<std::vector<std::uint32_t>>();
    workload::dependency_walk walk(names);
    const auto packages = list.packages();
    for (const std::uint32_t root : roots)
        walk(
            root,
            [&](std::string_view key, auto&& use) {
                const auto id = names.find(key);
                if (!id) return false;
                use(packages[*id].stanza);
                sequence->push_back(*id);
                return true;
            },
            [](std::string_view, std::string_view) {});
    sequence->shrink_to_fit();

    session_load load;
    load.distribution = "dependencies";
    load.period = sequence->size();
    load.source = reads_of(std::move(sequence), settings.threads);
    load.records = std::make_unique<package_records>(std::move(list), std::move(names));
    return load;
}

} // namespace obase::tools
