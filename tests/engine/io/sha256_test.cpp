// SPDX-License-Identifier: Apache-2.0
// Known answers of FIPS 180-4's examples and RFC 4231.
#include "engine/io/sha256.hpp"

#include <catch2/catch.hpp>

using namespace collar;

TEST_CASE("SHA-256 gives the known digests") {
  CHECK(to_hex(sha256("")) == "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  CHECK(to_hex(sha256("abc")) ==
        "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  CHECK(to_hex(sha256("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq")) ==
        "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
  CHECK(to_hex(sha256(std::string(1'000'000, 'a'))) ==
        "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
}

TEST_CASE("HMAC-SHA256 gives the answers of RFC 4231") {
  const auto hmac = [](const std::string& key, const std::string& message) {
    return to_hex(hmac_sha256(key, std::as_bytes(std::span(message))));
  };
  CHECK(hmac(std::string(20, '\x0b'), "Hi There") ==
        "b0344c61d8db38535ca8afceaf0bf12b881dc200c9833da726e9376c2e32cff7");
  CHECK(hmac("Jefe", "what do ya want for nothing?") ==
        "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843");
  CHECK(hmac(std::string(131, '\xaa'), "Test Using Larger Than Block-Size Key - Hash Key First") ==
        "60e431591ee0b67f0d8a26aacbf5b77f8e0bc6213728c5140546040f0ee37f54");
}

TEST_CASE("Comparison in constant time still compares") {
  const Digest a = sha256("a");
  Digest b = a;
  CHECK(equal_in_constant_time(a, b));
  b[31] ^= std::byte{1};
  CHECK_FALSE(equal_in_constant_time(a, b));
}
