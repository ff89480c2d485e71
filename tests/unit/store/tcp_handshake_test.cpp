// Who is believed by the TCP store: nobody without a proof, on either side, and what nobody gets to see: the token.
#include <poll.h>
#include <sys/socket.h>

#include <array>
#include <atomic>
#include <chrono>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include <col/proof.hpp>
#include <col/store.hpp>

#include "core/log.hpp"
#include "store/tcp/handshake.hpp"
#include "store/tcp/protocol.hpp"
#include "support/catch.hpp"
#include "support/prompt.hpp"
#include "unit/store/tcp_peer.hpp"

using namespace col;
using namespace col::store::tcp;
using namespace col::test;
using namespace std::chrono_literals;

namespace {

// Stands between a client and the store, hands on what each says, and remembers it.
class Relay {
 public:
  explicit Relay(int port) : store_port_(port), thread_([this](const std::stop_token& stop) { run(stop); }) {}
  ~Relay() {
    thread_.request_stop();
    const RawClient last(server_.port());  // for an accept() that goes on
    thread_.join();
  }
  int port() const { return server_.port(); }
  std::string heard() const {
    const std::lock_guard lock(mutex_);
    return heard_;
  }

 private:
  void run(const std::stop_token& stop) {
    const core::UniqueFd client = server_.accept("");
    const RawClient store(store_port_);
    while (!stop.stop_requested()) {
      std::array<pollfd, 2> ends{pollfd{client.get(), POLLIN, 0}, pollfd{store.fd(), POLLIN, 0}};
      ::poll(ends.data(), ends.size(), 20);
      for (const std::size_t from : {0, 1}) {
        if (ends[from].revents == 0) continue;
        std::array<char, 65536> buffer;
        const ssize_t got = ::recv(ends[from].fd, buffer.data(), buffer.size(), 0);
        if (got <= 0) return;
        const std::lock_guard lock(mutex_);
        heard_.append(buffer.data(), static_cast<std::size_t>(got));
        (void)!::send(ends[1 - from].fd, buffer.data(), static_cast<std::size_t>(got), MSG_NOSIGNAL);
      }
    }
  }

  RawServer server_;
  const int store_port_;
  mutable std::mutex mutex_;
  std::string heard_;
  std::jthread thread_;
};

}  // namespace

TEST_CASE("tcp handshake: the token's bytes never cross the wire, in neither direction", "[store][tcp]") {
  const StoreServer server(server_spec());
  const Relay relay(server.port());
  const auto store = client_of(relay.port());
  store->set("k", "what is said in clear");
  CHECK(store->get("k") == "what is said in clear");
  CHECK(has(relay.heard(), "what is said in clear"));  // so that looking finds something
  CHECK_FALSE(has(relay.heard(), kToken));
  for (std::size_t i = 0; i + 8 <= std::string_view(kToken).size(); ++i)
    CHECK_FALSE(has(relay.heard(), std::string_view(kToken).substr(i, 8)));
}

TEST_CASE("tcp handshake: a listener in the store's place learns no token and no key, and is not believed",
          "[store][tcp]") {
  enum class Manner { wrong_proof, reflected, no_proof, old_number };
  for (const Manner manner : {Manner::wrong_proof, Manner::reflected, Manner::no_proof, Manner::old_number}) {
    RawServer impostor;
    std::string heard;
    std::jthread answer([&] {
      const std::string nonce = make_nonce();
      const core::UniqueFd client = impostor.accept(greeting(nonce));
      std::array<char, 4096> buffer;
      const ssize_t hello = ::recv(client.get(), buffer.data(), buffer.size(), 0);
      heard.append(buffer.data(), hello > 0 ? static_cast<std::size_t>(hello) : 0);
      const Handshake guess{.token = "a guess", .job = {}, .server_nonce = nonce};
      const std::string own_proof = heard.size() > kProofBytes ? heard.substr(heard.size() - kProofBytes) : "";
      Answer word{.type = AnswerType::value, .id = 1};
      const std::string bytes = manner == Manner::reflected  ? own_proof + "1000"
                                : manner == Manner::no_proof ? "1000"
                                                             : make_welcome(guess, std::string(kNonceBytes, '0'), 1000);
      word.bytes = bytes;
      if (manner == Manner::old_number) word = {.type = AnswerType::number, .id = 1, .number = 1000};
      const std::string text = encode(word);
      (void)!::send(client.get(), text.data(), text.size(), MSG_NOSIGNAL);
      heard += hear_out(client.get());
    });
    const std::string error = error_of([&] { client_of(impostor.port())->set("the key", "the value"); });
    answer.join();
    INFO("manner " << static_cast<int>(manner) << ": " << error);
    check_has(error, {"mismatch: ", "has not proven that it knows the token"});
    CHECK_FALSE(has(heard, kToken));
    CHECK_FALSE(has(heard, "the key"));
    CHECK_FALSE(has(heard, "the value"));
  }
}

TEST_CASE("tcp handshake: a store of another version is refused, and hears nothing at all", "[store][tcp]") {
  for (const char* const words : {"col-store/1 ready\n", "col-store/3 ready\n"}) {
    RawServer other;
    std::string heard;
    std::jthread answer([&] {
      const core::UniqueFd client = other.accept(words);
      heard = hear_out(client.get());
    });
    const std::string error = error_of([&] { client_of(other.port())->set("the key", "the value"); });
    answer.join();
    check_has(error, {"mismatch: ", "another version of col"});
    CHECK(heard.empty());
  }
}

TEST_CASE("tcp handshake: a client of another job is told of which", "[store][tcp]") {
  StoreServerSpec of_job = server_spec();
  of_job.job = store_job("train", 2);
  const StoreServer server(of_job);
  make_tcp_store("127.0.0.1", server.port(), kToken, 20s, store_job("train", 2))->set("k", "v");
  const std::string error =
      error_of([&] { make_tcp_store("127.0.0.1", server.port(), kToken, 20s, store_job("train", 1))->set("k", "w"); });
  check_has(error, {"mismatch: ", "'train/1'", "'train/2'"});
}

TEST_CASE("tcp handshake: a crowd of mute strangers holds up no client, and is said once", "[store][tcp]") {
  const core::log::Capture log(core::log::Level::warn);
  const StoreServer server(server_spec());
  std::vector<std::unique_ptr<RawClient>> crowd;
  for (int i = 0; i < 400; ++i) crowd.push_back(std::make_unique<RawClient>(server.port()));
  std::atomic<bool> more = true;
  std::jthread keeps_coming([&] {
    while (more) {
      const RawClient passing(server.port());
      std::this_thread::yield();
    }
  });
  const auto start = std::chrono::steady_clock::now();
  for (int i = 0; i < 20; ++i) client_of(server.port())->set("k", "v");
  CHECK(std::chrono::steady_clock::now() - start < col::test::kPrompt);
  CHECK(server.connections() <= 256 + 1);
  more = false;
  keeps_coming.join();
  const std::string said = log.text();
  INFO(said);
  const auto first = said.find("dropped a connection from 127.0.0.1");
  CHECK(first != std::string::npos);
  CHECK(said.find("dropped a connection", first + 1) == std::string::npos);
}

TEST_CASE("tcp handshake: who looks whether the port answers is let go without a word", "[store][tcp]") {
  const core::log::Capture log(core::log::Level::warn);
  const StoreServer server(server_spec());
  { const RawClient looks(server.port()); }
  client_of(server.port())->set("k", "v");
  for (const auto start = std::chrono::steady_clock::now(); server.connections() > 0;)
    REQUIRE(std::chrono::steady_clock::now() - start < col::test::kPrompt);
  CHECK(log.text() == "");
}
