// SPDX-License-Identifier: Apache-2.0
#include "comm/agreement.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <utility>

#include "engine/io/crc32c.hpp"
#include "engine/io/sha256.hpp"
#include "kernels/core/error.hpp"

namespace collar::comm {
namespace {

constexpr std::size_t kLengthBytes = sizeof(std::uint64_t);

void append(std::string& packed, const std::string& text) {
  const std::uint64_t length = text.size();
  packed.append(reinterpret_cast<const char*>(&length), kLengthBytes);
  packed += text;
}

/// Claims as bytes: subject and value of each in turn, preceded by their lengths.
std::string packed(std::span<const Claim> claims) {
  std::string bytes;
  for (const Claim& claim : claims) {
    append(bytes, claim.subject);
    append(bytes, claim.value);
  }
  return bytes;
}

std::string take_text(std::string_view& bytes) {
  std::uint64_t length = 0;
  if (bytes.size() < kLengthBytes) throw RankLostError("a list of claims ends within a length");
  std::memcpy(&length, bytes.data(), kLengthBytes);
  bytes.remove_prefix(kLengthBytes);
  if (bytes.size() < length)
    throw RankLostError(fmt::format("a claim of {} bytes, of which {} came", length, bytes.size()));
  std::string text(bytes.substr(0, length));
  bytes.remove_prefix(length);
  return text;
}

std::vector<Claim> unpacked(std::string_view bytes) {
  std::vector<Claim> claims;
  while (!bytes.empty()) {
    std::string subject = take_text(bytes);
    claims.push_back({std::move(subject), take_text(bytes)});
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

/// Between two lists that differ.
std::string first_difference(const std::vector<Claim>& zero, const std::vector<Claim>& other,
                             std::size_t rank) {
  for (std::size_t i = 0; i < std::min(zero.size(), other.size()); ++i) {
    if (zero[i].subject != other[i].subject) {
      return fmt::format("where rank 0 has {}, rank {} has {}", zero[i].subject, rank,
                         other[i].subject);
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
  const std::string bytes = packed(claims);
  const Digest own = sha256(bytes);
  std::vector<std::byte> digests(own.size() * static_cast<std::size_t>(communicator.size()));
  communicator.all_gather(ConstElements(own.data(), own.size(), DType::u8),
                          Elements(digests.data(), digests.size(), DType::u8));
  bool alike = true;
  for (std::size_t i = own.size(); i < digests.size(); ++i)
    alike &= digests[i] == digests[i % own.size()];
  if (alike) return;
  const auto all = gathered(communicator, bytes);
  for (std::size_t rank = 1; rank < all.size(); ++rank) {
    if (all[rank] == all[0]) continue;
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
  for (NamedTensor& shared : tensors) {
    communicator.broadcast(Elements(shared.tensor.view().data, shared.tensor.bytes(), DType::u8),
                           0);
    shared.tensor.changed_in_place();
  }
  claims.clear();
  for (const NamedTensor& shared : tensors)
    claims.push_back({shared.name, fmt::format("crc32c {:08x}", checksum(shared.tensor))});
  require_agreement(communicator, what, claims);
}

}  // namespace collar::comm
