// SPDX-License-Identifier: Apache-2.0
// A file system in memory that can fail or die at any operation, and that remembers what was
// synchronised: after a crash it shows any of the states a real disk may be in. kill -9 cannot show
// that, the page cache outlives the process.
#pragma once

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "engine/io/file_operations.hpp"
#include "engine/random.hpp"

namespace collar::test {

/// Thrown out of the operation at which the process "dies".
struct Died {};

class FaultyFiles final : public FileOperations {
 public:
  using Content = std::vector<std::byte>;
  using Tree = std::map<std::string, Content>;

  /// Operations are counted from 1. `error` is returned by operation `fail_at`; from `die_at` on
  /// nothing has an effect.
  int fail_at = 0;
  int error = EIO;
  int die_at = 0;
  /// The most bytes that one write takes.
  std::size_t largest_write = ~std::size_t{0};
  /// Every operation is interrupted once before it succeeds.
  bool interrupting = false;

  /// A file that has always been there.
  void put(const std::string& path, Content content) {
    inodes_.push_back({std::move(content), {}});
    live_[path] = durable_[path] = inodes_.size() - 1;
  }

  int operations() const { return count_; }
  int open_descriptors() const { return static_cast<int>(descriptors_.size()); }

  /// What other processes see: everything that was done, synchronised or not.
  Tree visible() const {
    Tree tree;
    for (const auto& [path, inode] : live_)
      tree[path] = inodes_[inode].apply([](Content&) { return true; });
    return tree;
  }

  /// One of the states after a power cut: of the writes not synchronised any subset has arrived,
  /// some of them only in part (whole sectors), and of the changes to folders not synchronised a
  /// first part.
  Tree after_power_cut(RandomStream& random) const {
    auto names = durable_;
    const auto arrived = random.below(static_cast<std::uint32_t>(pending_.size()) + 1);
    for (std::size_t i = 0; i < arrived; ++i) pending_[i](names);
    const auto arrives = [&random](Content& bytes) {
      constexpr std::size_t kSector = 512;
      const std::uint32_t fate = random.below(3);
      if (fate == 0)
        bytes.resize(kSector *
                     random.below(static_cast<std::uint32_t>(bytes.size() / kSector) + 1));
      return fate != 1;
    };
    Tree tree;
    for (const auto& [path, inode] : names) tree[path] = inodes_[inode].apply(arrives);
    return tree;
  }

  int create(const std::filesystem::path& path) override {
    if (const int trouble = next()) return trouble;
    if (live_.contains(path)) return -EEXIST;
    inodes_.emplace_back();
    change(
        [name = path.string(), inode = inodes_.size() - 1](Names& names) { names[name] = inode; });
    return open(inodes_.size() - 1);
  }

  int open_folder(const std::filesystem::path&) override {
    if (const int trouble = next()) return trouble;
    return open(kFolder);
  }

  int reserve(int descriptor, std::uint64_t bytes) override {
    if (const int trouble = next()) return trouble;
    if (const int trouble = check(descriptor)) return trouble;
    inodes_[descriptors_[descriptor].inode].writes.push_back({0, Content(bytes)});
    return 0;
  }

  std::int64_t write(int descriptor, std::span<const std::byte> bytes) override {
    if (const int trouble = next()) return trouble;
    if (const int trouble = check(descriptor)) return trouble;
    const auto part = bytes.first(std::min(bytes.size(), largest_write));
    Open& file = descriptors_[descriptor];
    inodes_[file.inode].writes.push_back({file.position, Content(part.begin(), part.end())});
    file.position += part.size();
    return static_cast<std::int64_t>(part.size());
  }

  int sync(int descriptor) override {
    if (const int trouble = next()) return trouble;
    if (const int trouble = check(descriptor)) return trouble;
    if (descriptors_[descriptor].inode == kFolder) {
      pending_.clear();
      durable_ = live_;
    } else {
      Inode& inode = inodes_[descriptors_[descriptor].inode];
      inode = {inode.apply([](Content&) { return true; }), {}};
    }
    return 0;
  }

  int close(int descriptor) override {
    if (check(descriptor) == 0) descriptors_.erase(descriptor);
    return next();
  }

  int rename(const std::filesystem::path& from, const std::filesystem::path& to) override {
    if (const int trouble = next()) return trouble;
    if (!live_.contains(from)) return -ENOENT;
    change([source = from.string(), target = to.string()](Names& names) {
      names[target] = names.at(source);
      names.erase(source);
    });
    return 0;
  }

  int remove(const std::filesystem::path& path) override {
    if (const int trouble = next()) return trouble;
    if (!live_.contains(path)) return -ENOENT;
    change([name = path.string()](Names& names) { names.erase(name); });
    return 0;
  }

  std::int64_t free_bytes(const std::filesystem::path&) override { return 12345; }

 private:
  using Names = std::map<std::string, std::size_t>;
  static constexpr std::size_t kFolder = ~std::size_t{0};

  struct Write {
    std::size_t offset;
    Content bytes;
  };
  struct Inode {
    Content durable;
    std::vector<Write> writes;  ///< since the last sync

    Content apply(const std::function<bool(Content&)>& arrives) const {
      Content content = durable;
      for (Write write : writes) {
        if (!arrives(write.bytes)) continue;
        content.resize(std::max(content.size(), write.offset + write.bytes.size()));
        std::copy(write.bytes.begin(), write.bytes.end(),
                  content.begin() + static_cast<std::ptrdiff_t>(write.offset));
      }
      return content;
    }
  };
  struct Open {
    std::size_t inode;
    std::size_t position;
  };

  /// Counts an operation and decides its fate.
  int next() {
    if (dead_) return -EIO;
    interrupted_ = interrupting && !interrupted_;
    if (interrupted_) return -EINTR;
    ++count_;
    if (count_ == die_at) {
      dead_ = true;
      throw Died{};
    }
    return count_ == fail_at ? -error : 0;
  }

  int check(int descriptor) const { return descriptors_.contains(descriptor) ? 0 : -EBADF; }

  int open(std::size_t inode) {
    descriptors_[next_descriptor_] = {inode, 0};
    return next_descriptor_++;
  }

  void change(std::function<void(Names&)> operation) {
    operation(live_);
    pending_.push_back(std::move(operation));
  }

  std::vector<Inode> inodes_;
  Names live_;
  Names durable_;
  std::vector<std::function<void(Names&)>>
      pending_;  ///< changes of names since the folder's last sync
  std::map<int, Open> descriptors_;
  int next_descriptor_ = 3;
  int count_ = 0;
  bool dead_ = false;
  bool interrupted_ = false;
};

}  // namespace collar::test
