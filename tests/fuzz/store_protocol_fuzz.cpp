// Bytes as what a client of the TCP store sends: each is served or the client is dropped, in bounded memory, and no
// other client notices. Messages that can be read are written as they were read.
//
// The first byte says whether the client has proven that it knows the token, and in which pieces the rest arrives.
#include <chrono>
#include <string>
#include <string_view>

#include <fmt/format.h>

#include <col/proof.hpp>

#include "store/tcp/engine.hpp"
#include "store/tcp/handshake.hpp"
#include "store/tcp/protocol.hpp"
#include "target.hpp"

namespace col::store::tcp {
namespace {

constexpr std::string_view kToken = "token";
constexpr std::size_t kMaxValueBytes = 4000;
constexpr std::size_t kMaxTotalBytes = 100'000;
// What a client may leave unread, with the answers to one piece of input on top.
constexpr std::size_t kMaxOutputBytes = std::size_t{300} << 10;

// What is said to one client, as it would read it.
class Ear {
 public:
  explicit Ear(Engine& engine, Session& session) : engine_(engine), session_(session) {}

  // The last message, after all have been checked.
  std::string listen() {
    std::string last;
    while (!session_.output().empty()) {
      std::string_view piece;
      if (session_.output().pieces({&piece, 1}) != 1 || piece.empty()) fuzz::fail("output without a piece");
      heard_ += piece;
      engine_.sent(session_, piece.size(), {});
    }
    if (!greeted_) {
      const std::size_t size = heard_.find('\n') + 1;
      if (!nonce_in_greeting(std::string_view(heard_).substr(0, size))) fuzz::fail("no greeting");
      nonce_ = heard_.substr(kGreetingStart.size(), kNonceBytes);
      heard_.erase(0, size);
      greeted_ = true;
    }
    while (!heard_.empty()) {
      if (heard_.size() < kHeaderBytes) fuzz::fail("half a header is sent");
      const Header header = decode_header(heard_);
      const std::size_t size = kHeaderBytes + header.body_bytes;
      if (heard_.size() < size) fuzz::fail("half a message is sent");
      last = heard_.substr(0, size);
      const auto answer = decode_answer(header, std::string_view(last).substr(kHeaderBytes));
      if (!answer) fuzz::fail("an answer that is none");
      if (encode(*answer) != last) fuzz::fail("an answer that is written in two ways");
      heard_.erase(0, size);
    }
    return last;
  }

  // What proves to the server that its client knows the token.
  std::string hello() {
    (void)listen();
    return make_hello(1, {.token = kToken, .job = {}, .server_nonce = nonce_}, std::string(kNonceBytes, 'c'));
  }

 private:
  Engine& engine_;
  Session& session_;
  std::string heard_;
  std::string nonce_;
  bool greeted_ = false;
};

void check_request(std::string_view bytes) {
  if (bytes.size() < kHeaderBytes) return;
  Header header = decode_header(bytes);
  const std::string_view body = bytes.substr(kHeaderBytes);
  header.body_bytes = static_cast<std::uint32_t>(body.size());
  if (const auto request = decode_request(header, body)) {
    if (std::string_view(encode(*request)).substr(kHeaderBytes) != body) fuzz::fail("a request written in two ways");
  }
  if (const auto answer = decode_answer(header, body)) {
    if (std::string_view(encode(*answer)).substr(kHeaderBytes) != body) fuzz::fail("an answer written in two ways");
  }
}

// Another client's request is answered as if nobody else were there.
void check_other(Engine& engine, Session& other, Ear& ear) {
  const auto ask = [&](const Request& request) {
    engine.receive(other, encode(request), {});
    if (other.ended()) fuzz::fail("another client is dropped");
    return ear.listen();
  };
  // The store may be full of what the first has set.
  const std::string set = ask({.type = RequestType::set, .id = 7, .key = "mine", .value = "v"});
  if (set == encode(Answer{.type = AnswerType::done, .id = 7})) {
    if (ask({.type = RequestType::get, .id = 8, .key = "mine"}) !=
        encode(Answer{.type = AnswerType::value, .id = 8, .bytes = "v"}))
      fuzz::fail("another client does not find its value");
  } else if (decode_header(set).type != static_cast<std::uint8_t>(AnswerType::error)) {
    fuzz::fail("a set has an odd answer");
  }
  const std::string count = ask({.type = RequestType::num_keys, .id = 9});
  if (decode_header(count).type != static_cast<std::uint8_t>(AnswerType::number)) fuzz::fail("keys cannot be counted");
}

void run(std::uint8_t mode, std::string_view bytes) {
  Engine engine({.max_value_bytes = kMaxValueBytes, .max_total_bytes = kMaxTotalBytes}, std::string(kToken));
  Session& other = engine.open({});
  Session& client = engine.open({});
  Ear ear(engine, other), client_ear(engine, client);
  engine.receive(other, ear.hello(), {});
  if (!other.proven()) fuzz::fail("a good proof is refused");
  (void)ear.listen();
  if ((mode & 1) != 0) engine.receive(client, client_ear.hello(), {});
  const bool listens = (mode & 2) != 0;
  const std::size_t step = (mode & 4) != 0 ? 1 + (mode >> 3) : bytes.size() + 1;
  for (std::size_t at = 0; at < bytes.size() && !client.ended(); at += step) {
    engine.receive(client, bytes.substr(at, step), {});
    if (engine.used_bytes() > kMaxTotalBytes) fuzz::fail("more memory is used than allowed");
    if (client.output().size() > kMaxOutputBytes) fuzz::fail("the output grows without bound");
    if (listens && !client.ended()) (void)client_ear.listen();
  }
  check_other(engine, other, ear);
  engine.expire(Time() + std::chrono::hours(1));
  engine.close(client);
  if (engine.waits() != 0) fuzz::fail("a wait of a client that is gone is left");
  check_other(engine, other, ear);
}

}  // namespace
}  // namespace col::store::tcp

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const std::string_view bytes(reinterpret_cast<const char*>(data) + 1, size - 1);
  const col::fuzz::AllocationLimit limit(col::fuzz::bytes_for_text(size));
  col::store::tcp::check_request(bytes);
  col::store::tcp::run(data[0], bytes);
  return 0;
}
