// SPDX-License-Identifier: Apache-2.0
#include "comm/transport/control_block.hpp"

#include <algorithm>
#include <bit>

#include "comm/transport/fabric.hpp"
#include "kernels/core/rounding.hpp"

namespace collar::comm {
namespace {

/// What all mailboxes of a rank may take together, within the bounds of one.
constexpr std::size_t kMailboxBudget = std::size_t{4} << 20;
constexpr std::size_t kSmallestMailbox = std::size_t{8} << 10;
constexpr std::size_t kLargestMailbox = std::size_t{256} << 10;

}  // namespace

SegmentLayout::SegmentLayout(int ranks, std::size_t staging_bytes) {
  const std::size_t boxes = 2 * static_cast<std::size_t>(ranks);
  mailbox_capacity_ =
      std::clamp(std::bit_floor(kMailboxBudget / boxes), kSmallestMailbox, kLargestMailbox);
  staging_half_ = round_up(std::max<std::size_t>(staging_bytes / 2, kPage), kPage);
  mailboxes_ = round_up(sizeof(ControlBlock) + sizeof(AbortNotice), kPage);
  staging_ = round_up(mailboxes_ + boxes * (sizeof(Mailbox) + mailbox_capacity_), kPage);
  bytes_ = staging_ + 2 * staging_half_;
}

}  // namespace collar::comm
