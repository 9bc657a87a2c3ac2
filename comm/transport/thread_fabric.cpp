// SPDX-License-Identifier: Apache-2.0
#include "comm/transport/thread_fabric.hpp"

#include <fmt/format.h>

#include <condition_variable>
#include <cstdlib>
#include <cstring>
#include <mutex>

#include "kernels/core/error.hpp"
#include "kernels/core/rounding.hpp"
#include "kernels/runtime/cpu_context.hpp"

namespace collar::comm {
namespace {

/// The segments of one share(), as they come in.
struct Round {
  std::vector<std::shared_ptr<std::byte>> segments;
  int present = 0;
  std::size_t bytes = 0;
};

struct Group {
  explicit Group(int ranks) : size(ranks) {}

  const int size;
  std::mutex mutex;
  std::condition_variable changed;
  std::vector<std::shared_ptr<Round>> rounds;
};

std::shared_ptr<std::byte> zeroed_pages(std::size_t bytes) {
  const std::size_t whole = round_up(bytes, kPage);
  void* const memory = std::aligned_alloc(kPage, whole);
  if (memory == nullptr)
    throw DeviceError(fmt::format("out of memory: {} bytes for the ranks to share", bytes));
  std::memset(memory, 0, whole);
  return {static_cast<std::byte*>(memory), [](std::byte* p) { std::free(p); }};
}

class ThreadFabric final : public Fabric {
 public:
  ThreadFabric(std::shared_ptr<Group> group, int rank) : group_(std::move(group)), rank_(rank) {}

  int rank() const override { return rank_; }
  int size() const override { return group_->size; }
  bool is_dead(int) override { return false; }
  std::string describe(int) const override { return "a thread"; }
  bool is_crowded() const override { return group_->size > available_cpus(); }

  Window share(std::size_t bytes, Deadline deadline) override {
    const std::shared_ptr<std::byte> own = zeroed_pages(bytes);
    std::unique_lock lock(group_->mutex);
    const std::size_t index = next_round_++;
    if (group_->rounds.size() <= index) {
      group_->rounds.push_back(std::make_shared<Round>());
      group_->rounds[index]->segments.resize(static_cast<std::size_t>(size()));
      group_->rounds[index]->bytes = bytes;
    }
    const std::shared_ptr<Round> round = group_->rounds[index];
    if (round->bytes != bytes)
      throw RankLostError(
          fmt::format("rank {} shares {} bytes, another rank {}", rank_, bytes, round->bytes));
    round->segments[static_cast<std::size_t>(rank_)] = own;
    ++round->present;
    group_->changed.notify_all();
    if (!group_->changed.wait_for(lock, deadline.remaining(),
                                  [&] { return round->present == size(); }))
      throw RankLostError(fmt::format("only {} of {} threads came to share memory within {}",
                                      round->present, size(), seconds_text(deadline.allowance())));
    group_->rounds[index].reset();  // the windows own it now
    Window window;
    window.bytes = bytes;
    window.owner = round;
    for (const auto& segment : round->segments) window.segments.push_back(segment.get());
    return window;
  }

 private:
  std::shared_ptr<Group> group_;
  int rank_;
  std::size_t next_round_ = 0;
};

}  // namespace

std::vector<std::unique_ptr<Fabric>> make_thread_fabrics(int size) {
  const auto group = std::make_shared<Group>(size);
  std::vector<std::unique_ptr<Fabric>> fabrics;
  for (int rank = 0; rank < size; ++rank)
    fabrics.push_back(std::make_unique<ThreadFabric>(group, rank));
  return fabrics;
}

}  // namespace collar::comm
