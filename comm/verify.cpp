// SPDX-License-Identifier: Apache-2.0
#include "comm/verify.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <cstring>

#include "comm/rendezvous/sha256.hpp"
#include "engine/io/crc32c.hpp"
#include "kernels/core/error.hpp"

namespace collar::comm {
namespace {

/// What is compared first, and in most cases alone.
struct Summary {
  Digest digest;
  std::uint64_t bytes = 0;

  friend bool operator==(const Summary&, const Summary&) = default;
};

std::string serialized(std::span<const Claim> claims) {
  std::string text;
  for (const Claim& claim : claims) text += claim.name + '\0' + claim.value + '\0';
  return text;
}

std::vector<Claim> parsed(std::string_view text) {
  std::vector<Claim> claims;
  const auto next = [&] {
    const std::size_t end = text.find('\0');
    std::string part(text.substr(0, end));
    text.remove_prefix(end + 1);
    return part;
  };
  while (!text.empty()) {
    std::string name = next();
    claims.push_back({std::move(name), next()});
  }
  return claims;
}

std::span<std::uint8_t> as_u8(void* data, std::size_t bytes) {
  return {static_cast<std::uint8_t*>(data), bytes};
}

std::string described(const std::vector<Claim>& claims, std::size_t i) {
  if (i >= claims.size()) return fmt::format("nothing after its {} entries", claims.size());
  return fmt::format("{} ({})", claims[i].name, claims[i].value);
}

/// What rank `other` holds that rank 0 does not.
std::string first_difference(const std::vector<Claim>& first, const std::vector<Claim>& theirs,
                             int other) {
  std::size_t i = 0;
  while (i < first.size() && i < theirs.size() && first[i].name == theirs[i].name &&
         first[i].value == theirs[i].value)
    ++i;
  return fmt::format(
      "rank {} has {} entries, rank 0 {}; entry {} is {} on rank {}, but {} on rank 0", other,
      theirs.size(), first.size(), i, described(theirs, i), other, described(first, i));
}

}  // namespace

void verify_equal(Communicator& communicator, const std::string& subject,
                  std::span<const Claim> claims) {
  std::string text = serialized(claims);
  Summary mine{sha256(text), text.size()};
  std::vector<Summary> all(static_cast<std::size_t>(communicator.size()));
  communicator.all_gather(as_u8(&mine, sizeof mine),
                          as_u8(all.data(), all.size() * sizeof(Summary)));
  const auto odd = std::find_if(all.begin(), all.end(),
                                [&](const Summary& summary) { return summary != all.front(); });
  if (odd == all.end()) return;

  std::size_t longest = 0;
  for (const Summary& summary : all) longest = std::max<std::size_t>(longest, summary.bytes);
  text.resize(longest);
  std::string texts(longest * all.size(), '\0');
  communicator.all_gather(as_u8(text.data(), longest), as_u8(texts.data(), texts.size()));
  const auto claims_of_rank = [&](std::size_t rank) {
    return parsed(std::string_view(texts).substr(rank * longest, all[rank].bytes));
  };
  const auto rank = static_cast<std::size_t>(odd - all.begin());
  throw RankLostError(fmt::format(
      "{}: ranks differ: {}", subject,
      first_difference(claims_of_rank(0), claims_of_rank(rank), static_cast<int>(rank))));
}

std::vector<Claim> claims_of(std::span<const NamedTensor> tensors, bool with_values) {
  std::vector<Claim> claims;
  for (const auto& [name, tensor] : tensors) {
    std::string value =
        fmt::format("{} {}", collar::name_of(tensor.dtype()), to_string(tensor.shape()));
    if (with_values) {
      const ConstView view = tensor.view();
      value += fmt::format(", checksum {:08x}",
                           crc32c({static_cast<const std::byte*>(view.data), view.bytes()}));
    }
    claims.push_back({name, value});
  }
  return claims;
}

void broadcast_tensors(Communicator& communicator, std::span<const NamedTensor> tensors, int root) {
  verify_equal(communicator, "parameters and buffers", claims_of(tensors, false));
  for (NamedTensor entry : tensors) {
    communicator.broadcast(entry.tensor.view(), root);
    if (communicator.rank() != root) entry.tensor.changed_in_place();
  }
  verify_equal(communicator, "parameters and buffers after the broadcast",
               claims_of(tensors, true));
}

}  // namespace collar::comm
