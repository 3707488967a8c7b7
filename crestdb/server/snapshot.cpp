// SPDX-License-Identifier: MIT
#include "crestdb/server/snapshot.hpp"

#include "crestdb/server/keyspace.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <string_view>
#include <system_error>

#include <fmt/format.h>

namespace crestdb::server::snapshot {

namespace {

constexpr std::string_view magic{"CRESTDB\1", 8};
constexpr std::size_t block_size = 256 * 1024;
constexpr std::size_t cache_kept = 8u << 20; // of the file, in the page cache

struct block_head {
    std::uint32_t bytes, entries;
    std::uint64_t checksum;
};
static_assert(sizeof(block_head) == 16);

std::string reason() { return std::generic_category().message(errno); }

class file {
  public:
    explicit file(int descriptor) : descriptor_(descriptor) {}
    ~file() {
        if (descriptor_ >= 0) ::close(descriptor_);
    }
    file(const file&) = delete;
    file& operator=(const file&) = delete;
    int get() const noexcept { return descriptor_; }
    int release() noexcept { return std::exchange(descriptor_, -1); }

  private:
    int descriptor_;
};

class writer {
  public:
    explicit writer(int descriptor) : descriptor_(descriptor) {}

    bool write_all(const void* data, std::size_t size) {
        const char* at = static_cast<const char*>(data);
        while (size > 0) {
            const ssize_t n = ::write(descriptor_, at, size);
            if (n < 0 && errno == EINTR) continue;
            if (n <= 0) return false;
            at += n;
            size -= static_cast<std::size_t>(n);
            bytes += static_cast<std::uint64_t>(n);
        }
        // The file is not for this machine's memory: its pages go when they are written.
        if (bytes - dropped_ > cache_kept) {
            // It tells of a failed write, and then fsync does not tell of it again.
            if (::sync_file_range(descriptor_, static_cast<off64_t>(dropped_),
                                  static_cast<off64_t>(bytes - dropped_),
                                  SYNC_FILE_RANGE_WAIT_BEFORE | SYNC_FILE_RANGE_WRITE |
                                      SYNC_FILE_RANGE_WAIT_AFTER) != 0 &&
                errno != ENOSYS && errno != EINVAL && errno != ESPIPE)
                return false;
            ::posix_fadvise(descriptor_, 0, static_cast<off_t>(bytes), POSIX_FADV_DONTNEED);
            dropped_ = bytes;
        }
        return true;
    }

    void byte(unsigned value) { block_ += static_cast<char>(value); }
    void number(std::uint64_t value) {
        for (; value >= 128; value >>= 7) byte(static_cast<unsigned>(value & 127) | 128u);
        byte(static_cast<unsigned>(value));
    }
    void text(std::string_view value) {
        number(value.size());
        block_ += value;
    }
    void raw(const void* data, std::size_t size) {
        block_.append(static_cast<const char*>(data), size);
    }

    void head(unsigned database, const record& r) {
        byte(static_cast<unsigned>(r.kind()));
        byte(database);
        byte(r.has_expiry() ? 1 : 0);
        if (r.has_expiry()) {
            const std::int64_t at = r.expiry();
            raw(&at, sizeof at);
        }
        text(r.key());
    }
    bool end_entry() {
        ++in_block_;
        ++entries;
        return block_.size() < block_size || flush();
    }
    bool flush() {
        if (block_.empty()) return true;
        const block_head head{static_cast<std::uint32_t>(block_.size()), in_block_,
                              checksum(block_.data(), block_.size())};
        const bool done = write_all(&head, sizeof head) && write_all(block_.data(), block_.size());
        block_.clear();
        if (block_.capacity() > 4 * block_size) block_.shrink_to_fit();
        in_block_ = 0;
        return done;
    }

    std::uint64_t bytes = 0, entries = 0;

  private:
    int descriptor_;
    std::string block_;
    std::uint32_t in_block_ = 0;
    std::uint64_t dropped_ = 0;
};

// Pieces of a collection, so that one that is large is not held a second time.
constexpr std::size_t piece_bytes = 128 * 1024;

bool write_record(writer& to, unsigned database, record& r) {
    if (r.kind() == record_kind::string) {
        to.head(database, r);
        to.text(r.value());
        return to.end_entry();
    }
    std::string piece;
    std::size_t members = 0;
    bool done = true;
    const auto put_number = [&](std::uint64_t value) {
        for (; value >= 128; value >>= 7) piece += static_cast<char>((value & 127) | 128);
        piece += static_cast<char>(value);
    };
    const auto put_text = [&](std::string_view value) {
        put_number(value.size());
        piece += value;
    };
    const auto end_piece = [&] {
        if (members == 0 || !done) return;
        to.head(database, r);
        to.number(members);
        to.raw(piece.data(), piece.size());
        done = to.end_entry();
        piece.clear();
        members = 0;
    };
    if (r.kind() == record_kind::hash) {
        static_cast<hash_value*>(r.collection())->each([&](record& field) {
            put_text(field.key());
            put_text(field.value());
            ++members;
            if (piece.size() >= piece_bytes) end_piece();
        });
    } else {
        for (auto* n = static_cast<sorted_set*>(r.collection())->first(); n != nullptr;
             n = n->next()) {
            put_text(n->name());
            piece.append(reinterpret_cast<const char*>(&n->score), sizeof n->score);
            ++members;
            if (piece.size() >= piece_bytes) end_piece();
        }
    }
    end_piece();
    return done;
}

std::string unfinished_prefix(const std::string& path) { return path + ".unfinished-"; }

// Reads what is in a block; false when it is not what it should be.
class block_reader {
  public:
    explicit block_reader(std::string_view block) : left_(block) {}
    bool byte(unsigned& value) {
        if (left_.empty()) return false;
        value = static_cast<unsigned char>(left_[0]);
        left_.remove_prefix(1);
        return true;
    }
    bool raw(void* into, std::size_t size) {
        if (left_.size() < size) return false;
        std::memcpy(into, left_.data(), size);
        left_.remove_prefix(size);
        return true;
    }
    bool number(std::uint64_t& value) {
        value = 0;
        for (unsigned shift = 0; shift < 64; shift += 7) {
            unsigned b = 0;
            if (!byte(b)) return false;
            value |= static_cast<std::uint64_t>(b & 127) << shift;
            if ((b & 128) == 0) return true;
        }
        return false;
    }
    bool text(std::string_view& value) {
        std::uint64_t size = 0;
        if (!number(size) || size > left_.size()) return false;
        value = left_.substr(0, size);
        left_.remove_prefix(size);
        return true;
    }
    std::size_t left() const noexcept { return left_.size(); }

  private:
    std::string_view left_;
};

// One entry into the keyspace, or, without one, only looked at. Null: it is well formed.
const char* read_entry(block_reader& from, keyspace* into, std::uint64_t& keys,
                       std::uint64_t& ended) {
    unsigned kind = 0, database = 0, has_expiry = 0;
    std::int64_t expiry = -1;
    std::string_view key;
    if (!from.byte(kind) || !from.byte(database) || !from.byte(has_expiry))
        return "an entry is cut off";
    if (kind > static_cast<unsigned>(record_kind::sorted_set)) return "an entry of unknown kind";
    if (database >= keyspace::databases) return "an entry of an unknown database";
    if (has_expiry > 1 || (has_expiry == 1 && (!from.raw(&expiry, sizeof expiry) || expiry < 0)))
        return "a wrong expiry";
    if (!from.text(key) || key.size() > record::most_key) return "a key is cut off";
    const keyspace::key_id id = keyspace::id_of(database, key);
    const bool over = has_expiry == 1 && expiry <= now_ms();
    const auto what = static_cast<record_kind>(kind);
    const managed_scope scope;
    if (what == record_kind::string) {
        std::string_view value;
        if (!from.text(value) || value.size() > record::most_value) return "a value is cut off";
        if (into == nullptr) return nullptr;
        ++(over ? ended : keys);
        if (!over) into->put(id, record::make(what, key, value, expiry));
        return nullptr;
    }
    std::uint64_t members = 0;
    if (!from.number(members)) return "an entry is cut off";
    void* collection = nullptr;
    record* r = nullptr;
    if (into != nullptr && !over) {
        r = into->find(id);
        if (r != nullptr && r->kind() != what) return "a key of two kinds";
        if (r == nullptr) {
            collection = what == record_kind::hash ? static_cast<void*>(new hash_value)
                                                   : static_cast<void*>(new sorted_set);
            r = record::make_collection(what, key, collection, expiry);
            into->put(id, r);
            ++keys;
        }
        collection = r->collection();
    }
    std::optional<counted_growth> growth;
    if (r != nullptr) growth.emplace(*into, *r);
    for (; members > 0; --members) {
        std::string_view member, value;
        double score = 0;
        if (!from.text(member)) return "a member is cut off";
        if (what == record_kind::hash ? !from.text(value) : !from.raw(&score, sizeof score))
            return "a member is cut off";
        if (score != score) return "a score that is no number";
        if (collection == nullptr) continue;
        if (what == record_kind::hash) {
            static_cast<hash_value*>(collection)->set(member, value);
        } else if (auto* set = static_cast<sorted_set*>(collection); set->find(member) == nullptr) {
            set->insert(member, score);
        }
    }
    return nullptr;
}

} // namespace

written write(keyspace& keys, const std::string& path) {
    written result;
    const std::string beside = unfinished_prefix(path) + std::to_string(::getpid());
    const auto failed = [&](const std::string& what) {
        result.error = fmt::format("{} {}: {}", what, beside, reason());
        ::unlink(beside.c_str());
        return result;
    };
    const file out(::open(beside.c_str(), O_CREAT | O_WRONLY | O_TRUNC | O_CLOEXEC, 0600));
    if (out.get() < 0) return failed("cannot create");
    writer to(out.get());
    bool done = to.write_all(magic.data(), magic.size());
    keys.each([&](unsigned database, record& r) {
        if (!done || (r.has_expiry() && r.expiry() <= now_ms())) return;
        ++result.keys;
        done = write_record(to, database, r);
    });
    const auto finish = [&] {
        if (!to.flush()) return false;
        const block_head end{0, 0, to.entries};
        return to.write_all(&end, sizeof end);
    };
    if (!done || !finish()) return failed("cannot write");
    if (::fsync(out.get()) != 0) return failed("cannot sync");
    ::posix_fadvise(out.get(), 0, 0, POSIX_FADV_DONTNEED);
    if (::rename(beside.c_str(), path.c_str()) != 0) return failed("cannot rename");
    const std::string directory = std::filesystem::path(path).parent_path();
    const file in(
        ::open(directory.empty() ? "." : directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    if (in.get() >= 0) ::fsync(in.get());
    result.bytes = to.bytes;
    return result;
}

was_read read(keyspace& keys, const std::string& path) {
    was_read result;
    const file in(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
    if (in.get() < 0) {
        result.missing = errno == ENOENT;
        result.error = fmt::format("cannot open {}: {}", path, reason());
        return result;
    }
    const auto damaged = [&](std::uint64_t at, std::string_view what) {
        result.error = fmt::format("{} is damaged at byte {}: {}", path, at, what);
        return result;
    };
    // 1: 0 bytes read less than asked for is the end; -1: an error.
    std::uint64_t at = 0;
    const auto read_all = [&](void* into, std::size_t size) -> int {
        char* to = static_cast<char*>(into);
        while (size > 0) {
            const ssize_t n = ::pread(in.get(), to, size, static_cast<off_t>(at));
            if (n < 0 && errno == EINTR) continue;
            if (n < 0) return -1;
            if (n == 0) return 0;
            to += n;
            size -= static_cast<std::size_t>(n);
            at += static_cast<std::uint64_t>(n);
        }
        return 1;
    };
    std::string block;
    // First all of it is looked at, then it is taken in.
    for (const bool taking : {false, true}) {
        at = 0;
        std::uint64_t entries = 0, dropped = 0;
        char first[8];
        if (read_all(first, sizeof first) != 1 || std::string_view(first, 8) != magic)
            return damaged(0, "this is no snapshot of crestdb, or of another version");
        for (;;) {
            const std::uint64_t block_at = at;
            block_head head{};
            int got = read_all(&head, sizeof head);
            if (got < 0) return damaged(at, reason());
            if (got == 0) return damaged(block_at, "it ends within the head of a block");
            if (head.bytes == 0) {
                if (head.entries != 0 || head.checksum != entries)
                    return damaged(block_at, fmt::format("{} entries should be there, {} are",
                                                         head.checksum, entries));
                break;
            }
            struct stat about{};
            if (::fstat(in.get(), &about) == 0 &&
                at + head.bytes > static_cast<std::uint64_t>(about.st_size))
                return damaged(block_at, "it ends within a block");
            block.resize(head.bytes);
            got = read_all(block.data(), block.size());
            if (got < 0) return damaged(at, reason());
            if (got == 0) return damaged(block_at, "it ends within a block");
            if (checksum(block.data(), block.size()) != head.checksum)
                return damaged(block_at, "the checksum of the block is wrong");
            block_reader from(block);
            for (std::uint32_t i = 0; i < head.entries; ++i)
                if (const char* what =
                        read_entry(from, taking ? &keys : nullptr, result.keys, result.ended);
                    what != nullptr)
                    return damaged(block_at + sizeof head + block.size() - from.left(), what);
            if (from.left() != 0)
                return damaged(block_at + sizeof head + block.size() - from.left(),
                               "more than the entries of the block");
            entries += head.entries;
            if (at - dropped > cache_kept) {
                ::posix_fadvise(in.get(), 0, static_cast<off_t>(at), POSIX_FADV_DONTNEED);
                dropped = at;
            }
        }
        char more = 0;
        const std::uint64_t end = at;
        if (read_all(&more, 1) == 1) return damaged(end, "something stands behind the end");
    }
    ::posix_fadvise(in.get(), 0, 0, POSIX_FADV_DONTNEED);
    return result;
}

void remove_unfinished(const std::string& path) {
    std::error_code ignored;
    const std::filesystem::path whole(path);
    const std::string prefix = whole.filename().string() + ".unfinished-";
    const auto directory =
        whole.has_parent_path() ? whole.parent_path() : std::filesystem::path(".");
    for (const auto& entry : std::filesystem::directory_iterator(directory, ignored))
        if (entry.path().filename().string().starts_with(prefix))
            std::filesystem::remove(entry.path(), ignored);
}

} // namespace crestdb::server::snapshot
