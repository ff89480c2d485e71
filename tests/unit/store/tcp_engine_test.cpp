// The TCP store's server as a state machine: what it answers, whom it drops, and that nothing is left of those.
#include <chrono>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>

#include <col/proof.hpp>

#include "store/tcp/engine.hpp"
#include "store/tcp/handshake.hpp"
#include "support/catch.hpp"
#include "unit/store/tcp_peer.hpp"

using namespace col;
using namespace col::store::tcp;
using namespace col::test;
using namespace std::chrono_literals;
using namespace std::string_literals;

namespace {

const std::string kClientNonce(kNonceBytes, 'c');

// An engine, and a clock that is moved by hand.
struct Bench {
  Engine engine;
  Time now{};
  std::string server_nonce;  // of the last hello

  explicit Bench(EngineLimits limits = {}) : engine(limits, kToken) {}

  Session& connected() { return engine.open(now); }
  Session& logged_in() {
    Session& session = connected();
    engine.receive(session, hello_to(session), now);
    (void)heard(session);
    return session;
  }
  // What proves to that session that `token` is known.
  std::string hello_to(Session& session, std::string_view token = kToken, std::string_view job = {}) {
    const std::string line = heard(session);
    server_nonce = nonce_in_greeting(line).value();
    return make_hello(1, {.token = token, .job = job, .server_nonce = server_nonce}, kClientNonce);
  }
  void say(Session& session, const Request& request) { engine.receive(session, encode(request), now); }
  // All that is to be sent to it.
  std::string heard(Session& session) {
    std::string text;
    while (!session.output().empty()) {
      std::string_view piece;
      REQUIRE(session.output().pieces({&piece, 1}) == 1);
      text += piece;
      engine.sent(session, piece.size(), now);
    }
    return text;
  }
  bool hears(Session& session, const Answer& answer) { return heard(session) == encode(answer); }
};

}  // namespace

TEST_CASE("tcp engine: a client is greeted, both prove that they know the token, and it is served", "[store][tcp]") {
  Bench bench;
  Session& session = bench.connected();
  bench.engine.receive(session, bench.hello_to(session), bench.now);
  const Handshake handshake{.token = kToken, .job = {}, .server_nonce = bench.server_nonce};
  CHECK(bench.hears(
      session,
      {.type = AnswerType::value, .id = 1, .bytes = make_welcome(handshake, kClientNonce, std::size_t{64} << 20)}));
  CHECK(session.proven());
  bench.say(session, {.type = RequestType::set, .id = 2, .key = "k", .value = "v"});
  CHECK(bench.hears(session, {.type = AnswerType::done, .id = 2}));
  bench.say(session, {.type = RequestType::get, .id = 3, .key = "k"});
  CHECK(bench.hears(session, {.type = AnswerType::value, .id = 3, .bytes = "v"}));
  bench.say(session, {.type = RequestType::erase, .id = 4, .key = "k"});
  CHECK(bench.hears(session, {.type = AnswerType::number, .id = 4, .number = 1}));
  bench.say(session, {.type = RequestType::get, .id = 5, .key = "k"});
  CHECK(bench.hears(session, {.type = AnswerType::absent, .id = 5}));
  CHECK(bench.engine.used_bytes() == 0);
}

TEST_CASE("tcp engine: nothing is served before the token, and a wrong one ends it with a word", "[store][tcp]") {
  for (const std::string& token :
       {""s, "a"s, std::string(kToken) + "x", std::string(kToken).substr(1), "A token of this job"s}) {
    Bench bench;
    Session& session = bench.connected();
    bench.engine.receive(
        session, bench.hello_to(session, token) + encode(Request{.type = RequestType::set, .id = 2, .key = "k"}), {});
    CHECK_FALSE(session.ended());  // the word is to be sent
    const std::string text = bench.heard(session);
    const auto answer = decode_answer(decode_header(text), std::string_view(text).substr(kHeaderBytes));
    REQUIRE(answer);
    CHECK(answer->code == ErrorCode::mismatch);
    CHECK_FALSE(has(answer->bytes, kToken));
    CHECK(session.ended());
    CHECK(bench.engine.used_bytes() == 0);
  }
  Bench bench;
  Session& impatient = bench.connected();
  bench.say(impatient, {.type = RequestType::set, .id = 1, .key = "k", .value = "v"});
  CHECK(impatient.ended());
  CHECK(bench.engine.used_bytes() == 0);
}

TEST_CASE("tcp engine: garbage, a large length field and a second hello end a client", "[store][tcp]") {
  Bench bench;
  for (const std::string& bytes :
       {"GET / HTTP/1.1\r\nHost: x\r\n\r\n"s, "\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\0\0\0\0\0"s,
        "\0\0\0\x40"s + std::string(9, '\1'), std::string(13, '\0'), std::string(100'000, '\xff'),
        encode(Request{.type = RequestType::hello, .id = 1, .value = std::string(kMaxHelloBytes, 't')}),
        encode(Request{.type = RequestType::get, .id = 1, .key = "k"})}) {
    Session& session = bench.connected();
    bench.engine.receive(session, bytes, bench.now);
    CHECK(session.ended());
    bench.engine.close(session);
  }
  for (const std::string& bytes :
       {"\0\0\0\x40"s + std::string(9, '\2'), encode(Request{.type = RequestType::hello, .id = 1}),
        std::string(13, '\0'), "\3\0\0\0\2"s + std::string(8, '\0') + "abc"}) {
    Session& session = bench.logged_in();
    bench.engine.receive(session, bytes, bench.now);
    CHECK(session.ended());
    bench.engine.close(session);
  }
  CHECK(bench.engine.sessions() == 0);
  CHECK(bench.engine.used_bytes() == 0);
}

TEST_CASE("tcp engine: who does not show the token in time is dropped, however slowly it speaks", "[store][tcp]") {
  Bench bench({.handshake_timeout = 5s});
  Session& silent = bench.connected();
  Session& dribbling = bench.connected();
  Session& good = bench.logged_in();
  const std::string bytes = bench.hello_to(dribbling);
  for (std::size_t i = 0; i < 5; ++i) {
    CHECK(bench.engine.expire(bench.now));
    CHECK_FALSE(silent.ended());
    CHECK_FALSE(dribbling.ended());
    bench.now += 1s;
    bench.engine.receive(dribbling, bytes.substr(i, 1), bench.now);
  }
  bench.engine.expire(bench.now);
  CHECK(silent.ended());
  CHECK(dribbling.ended());
  bench.engine.close(silent);
  bench.engine.close(dribbling);
  bench.now += 1h;
  CHECK_FALSE(bench.engine.expire(bench.now));  // nobody left to be watched
  CHECK_FALSE(good.ended());
}

TEST_CASE("tcp engine: a proof for one connection, job or role is none for another", "[store][tcp]") {
  Bench bench;
  Session& first = bench.connected();
  const std::string said = bench.hello_to(first);
  bench.engine.receive(first, said, bench.now);
  const std::string welcome = bench.heard(first).substr(kHeaderBytes, kProofBytes);
  Session& replayed = bench.connected();
  (void)bench.heard(replayed);
  bench.engine.receive(replayed, said, bench.now);
  CHECK_FALSE(replayed.proven());
  // What the server has said of itself, sent back to it.
  Session& reflected = bench.connected();
  const std::string nonce(nonce_in_greeting(bench.heard(reflected)).value());
  bench.say(reflected, {.type = RequestType::hello, .id = 1, .value = nonce + welcome});
  CHECK_FALSE(reflected.proven());
  Session& renamed = bench.connected();
  const std::string hello = bench.hello_to(renamed, kToken, "job/1");
  const Request parsed = decode_request(decode_header(hello), std::string_view(hello).substr(kHeaderBytes)).value();
  bench.say(renamed, {.type = RequestType::hello, .id = 1, .key = "job/2", .value = parsed.value});
  CHECK_FALSE(renamed.proven());
  Session& good = bench.logged_in();
  CHECK(good.proven());
}

TEST_CASE("tcp engine: a client of another job or restart is refused by name, once it has proven the token",
          "[store][tcp]") {
  Engine engine({}, kToken, "mine/1");
  const auto answer_to = [&](std::string_view token, std::string_view job) {
    Session& session = engine.open({});
    std::string_view piece;
    REQUIRE(session.output().pieces({&piece, 1}) == 1);
    const std::string nonce(nonce_in_greeting(piece).value());
    engine.sent(session, piece.size(), {});
    engine.receive(session, make_hello(1, {.token = token, .job = job, .server_nonce = nonce}, kClientNonce), {});
    REQUIRE(session.output().pieces({&piece, 1}) == 1);
    return std::string(piece);
  };
  CHECK(decode_header(answer_to(kToken, "mine/1")).type == static_cast<std::uint8_t>(AnswerType::value));
  for (const char* job : {"mine/0", "other/1", ""}) {
    CHECK(has(answer_to(kToken, job), fmt::format("'{}', the store of 'mine/1'", job)));
    CHECK_FALSE(has(answer_to("guess", job), "mine"));
  }
}

TEST_CASE("tcp engine: strangers hold a bounded number of places, and the oldest goes when one more comes",
          "[store][tcp]") {
  Bench bench({.max_strangers = 3, .stranger_time = 100ms});
  Session& known = bench.logged_in();
  std::vector<Session*> strangers;
  for (int i = 0; i < 3; ++i) {
    REQUIRE(bench.engine.make_room(bench.now));
    strangers.push_back(&bench.connected());
  }
  CHECK_FALSE(bench.engine.make_room(bench.now));  // nobody has had his time
  bench.now += 100ms;
  CHECK(bench.engine.make_room(bench.now));
  CHECK(strangers[0]->ended());
  CHECK_FALSE(strangers[1]->ended());
  bench.engine.receive(*strangers[1], bench.hello_to(*strangers[1]), bench.now);
  CHECK(strangers[1]->proven());
  CHECK(bench.engine.make_room(bench.now));
  CHECK_FALSE(strangers[2]->ended());
  CHECK_FALSE(known.ended());
}

TEST_CASE("tcp engine: who stops in the middle of a message, or of an answer, is dropped", "[store][tcp]") {
  Bench bench({.stall_timeout = 60s});
  Session& talker = bench.logged_in();
  const std::string bytes = encode(Request{.type = RequestType::set, .id = 2, .key = "k", .value = "v"});
  bench.engine.receive(talker, bytes.substr(0, bytes.size() - 1), bench.now);
  Session& listener = bench.logged_in();
  bench.say(listener, {.type = RequestType::get, .id = 2, .key = "k"});
  bench.now += 59s;
  CHECK(bench.engine.expire(bench.now));
  CHECK_FALSE(talker.ended());
  CHECK_FALSE(listener.ended());
  bench.now += 1s;
  bench.engine.expire(bench.now);
  CHECK(talker.ended());
  CHECK(listener.ended());
}

TEST_CASE("tcp engine: one set answers every wait, and each once", "[store][tcp]") {
  Bench bench;
  Session& setter = bench.logged_in();
  std::vector<Session*> waiters;
  for (int i = 0; i < 10; ++i) {
    waiters.push_back(&bench.logged_in());
    bench.say(*waiters.back(), {.type = RequestType::wait, .id = 7, .key = "k"});
    bench.say(*waiters.back(), {.type = RequestType::wait, .id = 8, .key = "k"});
    bench.say(*waiters.back(), {.type = RequestType::wait, .id = 9, .key = "another"});
  }
  CHECK(bench.engine.waits() == 30);
  bench.say(setter, {.type = RequestType::compare_set, .id = 1, .key = "k", .value = "no", .expected = "x"});
  CHECK(bench.engine.waits() == 30);
  bench.say(setter, {.type = RequestType::add, .id = 2, .key = "k", .number = 5});
  CHECK(bench.engine.waits() == 10);
  for (Session* waiter : waiters) {
    CHECK(bench.heard(*waiter) == encode(Answer{.type = AnswerType::value, .id = 7, .bytes = "5"}) +
                                      encode(Answer{.type = AnswerType::value, .id = 8, .bytes = "5"}));
  }
  bench.say(setter, {.type = RequestType::set, .id = 3, .key = "k", .value = "again"});
  for (Session* waiter : waiters) CHECK(waiter->output().empty());
}

TEST_CASE("tcp engine: a wait that is given up, and a client that is gone, leave nothing", "[store][tcp]") {
  Bench bench;
  Session& waiter = bench.logged_in();
  Session& gone = bench.logged_in();
  for (std::uint64_t id = 10; id < 20; ++id) {
    bench.say(waiter, {.type = RequestType::wait, .id = id, .key = "k"});
    bench.say(gone, {.type = RequestType::wait, .id = id, .key = id % 2 == 0 ? "k" : "l"});
  }
  CHECK(bench.engine.waits() == 20);
  CHECK(bench.engine.used_bytes() > 0);
  for (std::int64_t id = 10; id < 20; ++id) bench.say(waiter, {.type = RequestType::cancel, .id = 100, .number = id});
  bench.say(waiter, {.type = RequestType::cancel, .id = 100, .number = 12345});
  CHECK(bench.engine.waits() == 10);
  bench.engine.close(gone);
  CHECK(bench.engine.waits() == 0);
  CHECK(bench.engine.used_bytes() == 0);
  CHECK(waiter.output().empty());  // a cancel has no answer
  CHECK_FALSE(waiter.ended());
  bench.say(waiter, {.type = RequestType::wait, .id = 30, .key = "m"});
  bench.say(waiter, {.type = RequestType::wait, .id = 30, .key = "m"});
  CHECK(waiter.ended());  // two requests under one number
}

TEST_CASE("tcp engine: a client that does not read its answers is dropped, with bounded memory", "[store][tcp]") {
  Bench bench;
  Session& good = bench.logged_in();
  Session& deaf = bench.logged_in();
  bench.say(good, {.type = RequestType::set, .id = 2, .key = "k", .value = std::string(500, 'v')});
  std::size_t most = 0;
  for (std::uint64_t id = 2; id < 100'000 && !deaf.ended(); ++id) {
    bench.say(deaf, {.type = RequestType::get, .id = id, .key = "k"});
    most = std::max(most, deaf.output().size());
  }
  CHECK(deaf.ended());
  CHECK(most < 300'000);
  // One with waits is dropped when they are answered; the setter is not harmed.
  Session& waiter = bench.logged_in();
  for (std::uint64_t id = 2; id < 1000; ++id) bench.say(waiter, {.type = RequestType::wait, .id = id, .key = "w"});
  (void)bench.heard(good);
  bench.say(good, {.type = RequestType::set, .id = 3, .key = "w", .value = std::string(500, 'v')});
  CHECK(waiter.ended());
  CHECK(waiter.output().size() < 300'000);
  CHECK(bench.hears(good, {.type = AnswerType::done, .id = 3}));
  std::vector<Session*> changed;
  bench.engine.take_changed(changed);
  CHECK(std::count(changed.begin(), changed.end(), &waiter) == 1);
}

TEST_CASE("tcp engine: what does not fit is an error for that request alone", "[store][tcp]") {
  Bench bench({.max_value_bytes = 50'000, .max_total_bytes = 100'000});
  Session& session = bench.logged_in();
  const auto ask = [&](const Request& request) {
    bench.say(session, request);
    const std::string text = bench.heard(session);
    const auto answer = decode_answer(decode_header(text), std::string_view(text).substr(kHeaderBytes));
    REQUIRE(answer);
    return answer->type == AnswerType::error ? std::string(to_string(answer->code)) + ": " + std::string(answer->bytes)
                                             : std::string("good");
  };
  const std::string large(40'000, 'v');
  CHECK(ask({.type = RequestType::set, .id = 2, .key = "a", .value = large}) == "good");
  CHECK(has(ask({.type = RequestType::set, .id = 3, .key = "b", .value = large}), "resource: the store is full"));
  CHECK(has(ask({.type = RequestType::set, .id = 4, .key = "b", .value = std::string(50'001, 'v')}), "resource: "));
  CHECK(ask({.type = RequestType::get, .id = 5, .key = "b"}) == "good");
  CHECK(ask({.type = RequestType::erase, .id = 6, .key = "a"}) == "good");
  CHECK(ask({.type = RequestType::set, .id = 7, .key = "b", .value = large}) == "good");
  CHECK(ask({.type = RequestType::erase, .id = 8, .key = "b"}) == "good");
  CHECK(bench.engine.used_bytes() == 0);
  // Keys count, too.
  int keys = 0;
  while (ask({.type = RequestType::set, .id = 9, .key = std::to_string(keys)}) == "good") ++keys;
  CHECK(keys > 300);
  CHECK(keys < 1000);
}

TEST_CASE("tcp engine: a value that is replaced while it is being sent is sent as it was", "[store][tcp]") {
  Bench bench;
  Session& reader = bench.logged_in();
  Session& writer = bench.logged_in();
  const std::string old(100'000, 'o'), fresh(100'000, 'n');
  bench.say(writer, {.type = RequestType::set, .id = 2, .key = "k", .value = old});
  bench.say(reader, {.type = RequestType::get, .id = 3, .key = "k"});
  bench.say(writer, {.type = RequestType::set, .id = 4, .key = "k", .value = fresh});
  bench.say(reader, {.type = RequestType::get, .id = 5, .key = "k"});
  CHECK(bench.engine.used_bytes() > 200'000);
  CHECK(bench.heard(reader) == encode(Answer{.type = AnswerType::value, .id = 3, .bytes = old}) +
                                   encode(Answer{.type = AnswerType::value, .id = 5, .bytes = fresh}));
  CHECK(bench.engine.used_bytes() < 110'000);
}
