// SPDX-License-Identifier: Apache-2.0
// Who is let in: the proof binds the token to both sides' messages. (How it travels is tested with
// the store.)
#include "comm/rendezvous/handshake.hpp"

#include <catch2/catch.hpp>
#include <string>

using namespace collar;
using namespace collar::comm;

namespace {

struct Meeting {
  Meeting() {
    greeting.nonce = random_nonce();
    challenge.nonce = random_nonce();
  }
  Verdict judged(const Digest& proof, Purpose purpose = Purpose::store) const {
    return judge("token", greeting, challenge, proof, purpose);
  }

  Greeting greeting;
  Challenge challenge;
};

std::string reason(const Verdict& verdict) {
  return verdict.reason.data();
}

}  // namespace

TEST_CASE("Whoever proves the token is accepted, and the server proves it in return") {
  const Meeting meeting;
  const Verdict verdict =
      meeting.judged(client_proof("token", meeting.greeting, meeting.challenge));
  CHECK(verdict.accepted == 1);
  CHECK(reason(verdict).empty());
  CHECK(verdict.proof == server_proof("token", meeting.greeting, meeting.challenge));
}

TEST_CASE("A proof holds for one token, one greeting, one challenge and one direction") {
  const Meeting meeting;
  const Meeting other;
  for (const Digest& proof :
       {client_proof("Token", meeting.greeting, meeting.challenge),
        client_proof("token", other.greeting, meeting.challenge),
        client_proof("token", meeting.greeting, other.challenge),
        server_proof("token", meeting.greeting, meeting.challenge), Digest()}) {
    const Verdict verdict = meeting.judged(proof);
    CHECK(verdict.accepted == 0);
    CHECK_THAT(reason(verdict), Catch::Contains("wrong job token"));
    CHECK(verdict.proof == Digest());  // an impostor learns nothing
  }
}

TEST_CASE("Another version or purpose is told before the token is looked at") {
  Meeting meeting;
  CHECK_THAT(reason(meeting.judged(Digest(), Purpose::peer)), Catch::Contains("another purpose"));
  meeting.greeting.version = kProtocolVersion + 1;
  CHECK(is_greeting(meeting.greeting));
  CHECK_THAT(reason(meeting.judged(Digest())), Catch::Contains("protocol version"));
}

TEST_CASE("Bytes that are no greeting are known as such") {
  Greeting greeting;
  CHECK(is_greeting(greeting));
  greeting.byte_order = 0x04030201;  // a machine of the other byte order
  CHECK_FALSE(is_greeting(greeting));
  greeting = Greeting();
  greeting.magic[7] = 'S';
  CHECK_FALSE(is_greeting(greeting));
}

TEST_CASE("Job tokens are long and never the same") {
  const std::string token = make_job_token();
  CHECK(token.size() == 64);
  CHECK(token.find_first_not_of("0123456789abcdef") == std::string::npos);
  CHECK(token != make_job_token());
}
