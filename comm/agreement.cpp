// SPDX-License-Identifier: Apache-2.0
#include "comm/agreement.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>

#include "engine/io/crc32c.hpp"
#include "kernels/core/error.hpp"

namespace collar::comm {
namespace {

// Claims as one text: neither subjects nor values hold these separators.
constexpr char kEndOfSubject = '\x1f';
constexpr char kEndOfClaim = '\x1e';

std::string packed(std::span<const Claim> claims) {
  std::string text;
  for (const Claim& claim : claims) {
    text += claim.subject + kEndOfSubject + claim.value + kEndOfClaim;
  }
  return text;
}

std::vector<Claim> unpacked(std::string_view text) {
  std::vector<Claim> claims;
  while (!text.empty()) {
    const std::size_t subject = text.find(kEndOfSubject);
    const std::size_t end = text.find(kEndOfClaim);
    if (subject >= end || end == std::string_view::npos) break;
    claims.push_back({std::string(text.substr(0, subject)),
                      std::string(text.substr(subject + 1, end - subject - 1))});
    text.remove_prefix(end + 1);
  }
  return claims;
}

// The claims of all ranks, on all ranks.
std::vector<std::vector<Claim>> gathered(Communicator& communicator, const std::string& text) {
  const auto ranks = static_cast<std::size_t>(communicator.size());
  std::array<std::int64_t, 1> length{static_cast<std::int64_t>(text.size())};
  std::vector<std::int64_t> lengths(ranks);
  communicator.all_gather(std::span<const std::int64_t>(length), std::span(lengths));
  const auto longest = static_cast<std::size_t>(*std::max_element(lengths.begin(), lengths.end()));
  std::vector<std::uint8_t> own(longest);
  std::memcpy(own.data(), text.data(), text.size());
  std::vector<std::uint8_t> all(ranks * longest);
  communicator.all_gather(std::span<const std::uint8_t>(own), std::span(all));
  std::vector<std::vector<Claim>> claims;
  for (std::size_t rank = 0; rank < ranks; ++rank) {
    claims.push_back(unpacked({reinterpret_cast<const char*>(all.data()) + rank * longest,
                               static_cast<std::size_t>(lengths[rank])}));
  }
  return claims;
}

std::string first_difference(const std::vector<Claim>& zero, const std::vector<Claim>& other,
                             std::size_t rank) {
  for (std::size_t i = 0; i < std::min(zero.size(), other.size()); ++i) {
    if (zero[i].subject != other[i].subject) {
      return fmt::format("number {} is {} on rank 0 and {} on rank {}", i, zero[i].subject,
                         other[i].subject, rank);
    }
    if (zero[i].value != other[i].value) {
      return fmt::format("{} is {} on rank 0 and {} on rank {}", zero[i].subject, zero[i].value,
                         other[i].value, rank);
    }
  }
  const bool zero_has_more = zero.size() > other.size();
  const Claim& extra = zero_has_more ? zero[other.size()] : other[zero.size()];
  return fmt::format("rank 0 has {}, rank {} has {}; {} is only on rank {}", zero.size(), rank,
                     other.size(), extra.subject, zero_has_more ? 0 : rank);
}

std::uint32_t checksum(const Tensor& tensor) {
  return crc32c({tensor.view().as<std::byte>(), tensor.bytes()});
}

}  // namespace

void require_agreement(Communicator& communicator, const std::string& what,
                       std::span<const Claim> claims) {
  if (communicator.size() == 1) return;
  const std::string text = packed(claims);
  const std::array<std::int64_t, 2> own{
      static_cast<std::int64_t>(text.size()),
      static_cast<std::int64_t>(crc32c(std::as_bytes(std::span(text))))};
  std::vector<std::int64_t> digests(2 * static_cast<std::size_t>(communicator.size()));
  communicator.all_gather(std::span<const std::int64_t>(own), std::span(digests));
  bool alike = true;
  for (std::size_t i = 2; i < digests.size(); ++i) alike &= digests[i] == digests[i % 2];
  if (alike) return;
  const auto all = gathered(communicator, text);
  for (std::size_t rank = 1; rank < all.size(); ++rank) {
    if (digests[2 * rank] == digests[0] && digests[2 * rank + 1] == digests[1]) continue;
    throw RankLostError(
        fmt::format("the ranks do not agree on the {}: {}; start all ranks with the same program, "
                    "options and files",
                    what, first_difference(all[0], all[rank], rank)));
  }
}

void broadcast_tensors(Communicator& communicator, const std::string& what,
                       std::span<NamedTensor> tensors) {
  std::vector<Claim> claims;
  for (const NamedTensor& shared : tensors) {
    claims.push_back({shared.name, fmt::format("{} {}", name_of(shared.tensor.dtype()),
                                               to_string(shared.tensor.shape()))});
  }
  require_agreement(communicator, what, claims);
  if (communicator.size() == 1) return;
  claims.clear();
  for (NamedTensor& shared : tensors) {
    communicator.broadcast(Elements(shared.tensor.view().data, shared.tensor.bytes(), DType::u8),
                           0);
    shared.tensor.changed_in_place();
    claims.push_back({shared.name, fmt::format("crc32c {:08x}", checksum(shared.tensor))});
  }
  require_agreement(communicator, what, claims);
}

}  // namespace collar::comm
