// SPDX-License-Identifier: MIT
#include "crestdb/server/reply.hpp"

#include "crestdb/server/text.hpp"

#include <sys/uio.h>

#include <algorithm>

namespace crestdb::server {

void output::add_value(record& r) {
    references_.emplace_back(text_.size(), r);
    referenced_ += r.value_size();
}

std::size_t output::pieces(iovec* into, std::size_t most) const noexcept {
    std::size_t skip = sent_;
    std::size_t count = 0;
    const auto add = [&](const char* data, std::size_t size) {
        const std::size_t skipped = std::min(skip, size);
        skip -= skipped;
        if (size == skipped || count == most) return;
        into[count++] = {const_cast<char*>(data) + skipped, size - skipped};
    };
    std::size_t at = 0;
    for (const reference& r : references_) {
        if (count == most) return count;
        add(text_.data() + at, r.at - at);
        add(r.value().data(), r.value().size());
        at = r.at;
    }
    add(text_.data() + at, text_.size() - at);
    return count;
}

void output::sent(std::size_t bytes) noexcept {
    sent_ += bytes;
    if (pending() == 0) return clear();
    // What was sent is dropped once it is most of what is held: values at once, so that their pins
    // end, text when it is large.
    std::size_t whole = 0, before = 0, text_before = 0;
    for (const reference& r : references_) {
        const std::size_t end = before + (r.at - text_before) + r.value().size();
        if (end > sent_) break;
        before = end;
        text_before = r.at;
        ++whole;
    }
    if (whole > 0) {
        for (std::size_t i = 0; i < whole; ++i) referenced_ -= references_[i].value().size();
        references_.erase(references_.begin(),
                          references_.begin() + static_cast<std::ptrdiff_t>(whole));
    }
    std::size_t text_sent = text_before;
    sent_ -= before;
    if (references_.empty() || sent_ < references_.front().at - text_before) {
        text_sent += sent_;
        sent_ = 0;
    } else {
        // In the middle of a value: the text before it went, sent_ counts within the value.
        const std::size_t gone = references_.front().at - text_before;
        text_sent += gone;
        sent_ -= gone;
    }
    if (text_sent == 0) return;
    if (text_sent * 2 < text_.size() && whole == 0) {
        sent_ += text_sent; // not worth moving the rest yet
        return;
    }
    text_.erase(0, text_sent);
    for (reference& r : references_) r.at -= text_sent;
}

void output::clear() noexcept {
    references_.clear();
    referenced_ = sent_ = 0;
    if (text_.capacity() > 64 * 1024)
        std::string().swap(text_);
    else
        text_.clear();
}

void reply::framed(char kind, std::string_view text) {
    std::string& to = to_.text();
    to += kind;
    for (const char c : text) to += c == '\r' || c == '\n' ? ' ' : c;
    to += "\r\n";
}

void reply::number_double(double value) {
    const std::string text = format_double(value);
    if (!resp3()) return bulk(text);
    to_.text() += ',';
    raw(text);
    raw("\r\n");
}

void reply::verbatim(std::string_view text) {
    if (!resp3()) return bulk(text);
    number('=', static_cast<std::int64_t>(text.size() + 4));
    raw("txt:");
    raw(text);
    raw("\r\n");
}

} // namespace crestdb::server
