// The TCP store's client: servers that are late, gone, or something else; forked children; the token.
#include <fcntl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <system_error>
#include <thread>
#include <vector>

#include <col/proof.hpp>
#include <col/store.hpp>

#include "store/base/call_limit.hpp"
#include "store/tcp/handshake.hpp"
#include "store/tcp/protocol.hpp"
#include "store/tcp/token.hpp"
#include "support/catch.hpp"
#include "support/free_port.hpp"
#include "support/prompt.hpp"
#include "support/temp_dir.hpp"
#include "unit/store/child.hpp"
#include "unit/store/tcp_peer.hpp"

using namespace col;
using namespace col::store::tcp;
using namespace col::test;
using namespace std::chrono_literals;
using namespace std::string_literals;

namespace {

using Clock = std::chrono::steady_clock;

std::string first_error(int port, Duration timeout) {
  return error_of([&] { client_of(port, timeout)->get("k"); });
}

// Sets a variable, or removes it (nullopt), until the end of the scope.
class ScopedVariable {
 public:
  ScopedVariable(const char* name, const std::optional<std::string>& value) : name_(name) {
    if (const char* old = std::getenv(name)) old_ = old;
    put(value);
  }
  ~ScopedVariable() { put(old_); }
  ScopedVariable(const ScopedVariable&) = delete;
  ScopedVariable& operator=(const ScopedVariable&) = delete;

 private:
  void put(const std::optional<std::string>& value) const {
    value ? ::setenv(name_, value->c_str(), 1) : ::unsetenv(name_);
  }
  const char* name_;
  std::optional<std::string> old_;
};

// Forks while threads are anywhere in a call, but for AddressSanitizer: there fork_at_rest() would find no rest, and
// its allocator's locks could be held (see support/fork.hpp). There the threads stop between two calls.
std::unique_lock<std::mutex> lock_if_forks_need_rest([[maybe_unused]] std::mutex& mutex) {
#if defined(__SANITIZE_ADDRESS__)
  return std::unique_lock(mutex);
#else
  return {};
#endif
}

}  // namespace

TEST_CASE("tcp store: a server that comes late is waited for", "[store][tcp]") {
  const int port = free_port();
  std::string value;
  std::jthread early([&] { value = client_of(port)->wait_for("k", 20s); });
  const std::string refused = first_error(port, 1s);  // so that the other has tried, too
  check_has(refused, {"timeout: the store at tcp://127.0.0.1:" + std::to_string(port), "refused", "COL_TIMEOUT"});
  StoreServerSpec spec = server_spec();
  spec.port = port;
  const StoreServer server(spec);
  client_of(port)->set("k", "late");
  early.join();
  CHECK(value == "late");
}

TEST_CASE("tcp store: a wait for a server that never comes ends on time and names the key and the reason",
          "[store][tcp]") {
  const auto store = client_of(free_port());
  const auto start = Clock::now();
  const std::string error = error_of([&] { store->wait_for("rank/3", 150ms); });
  check_has(error, {"timeout: ", "rank/3", "refused"});
  CHECK(Clock::now() - start < kPrompt);
}

TEST_CASE("tcp store: a stranger's port is recognised, whatever it says", "[store][tcp]") {
  for (const std::string& words : {"SSH-2.0-OpenSSH_9.2p1\r\n"s, "220 mail\r\n"s, "\0\0\0\x01"s, "col-stork"s,
                                   "HTTP/1.1 400 Bad Request\r\n\r\n"s, std::string(100'000, 'x')}) {
    RawServer stranger;
    core::UniqueFd held;
    std::jthread answer([&] { held = stranger.accept(words); });
    const auto start = Clock::now();
    const std::string error = first_error(stranger.port(), 20s);
    check_has(error, {"mismatch: tcp://127.0.0.1:", "answers, but is no store of col", "COL_STORE"});
    CHECK(Clock::now() - start < kPrompt);
  }
}

TEST_CASE("tcp store: a port that accepts and is silent is a clean error", "[store][tcp]") {
  RawServer silent;  // the kernel accepts for it
  const auto start = Clock::now();
  const std::string error = first_error(silent.port(), 1s);
  check_has(error, {"timeout: ", "says nothing"});
  CHECK(Clock::now() - start < kPrompt);
}

TEST_CASE("tcp store: a port that hangs up, as a forwarded one does before there is a server, is tried again",
          "[store][tcp]") {
  RawServer forwarded;
  core::UniqueFd held;
  std::jthread answer([&] {
    for (int i = 0; i < 3; ++i) (void)forwarded.accept("");
    held = forwarded.accept_as_store(encode(Answer{.type = AnswerType::value, .id = 2, .bytes = "there"}));
  });
  CHECK(client_of(forwarded.port())->get("k") == "there");
  answer.join();

  RawServer rude;
  std::jthread hang_up([&](const std::stop_token& stop) {
    while (!stop.stop_requested()) (void)rude.accept("");
  });
  const std::string error = first_error(rude.port(), 1s);
  hang_up.request_stop();
  const RawClient last(rude.port());  // for the accept() that goes on
  check_has(error, {"timeout: the store at tcp://127.0.0.1:", "it accepts connections"});
}

TEST_CASE("tcp store: the token is shown to nobody who has not greeted as a store does", "[store][tcp]") {
  RawServer stranger;
  std::string heard;
  std::jthread answer([&] {
    const core::UniqueFd client = stranger.accept("220 mail\r\n");
    heard = hear_out(client.get());
  });
  CHECK(has(first_error(stranger.port(), 20s), "mismatch"));
  answer.join();
  CHECK(heard.empty());
}

TEST_CASE("tcp store: a server that answers nonsense is dropped", "[store][tcp]") {
  for (const std::string& nonsense : {std::string(64, '\xff'), "\4\0\0\0\xff\1\0\0\0\0\0\0\0abcd"s}) {
    RawServer odd;
    core::UniqueFd held;
    std::jthread answer([&] { held = odd.accept(greeting(make_nonce()) + nonsense); });
    const std::string error = first_error(odd.port(), 20s);
    check_has(error, {"no store of col"});
  }
}

TEST_CASE("tcp store: a server that has gone is an io error that names it, soon, for every call", "[store][tcp]") {
  auto server = std::make_unique<StoreServer>(server_spec());
  const std::string url = "tcp://127.0.0.1:" + std::to_string(server->port());
  const auto store = client_of(server->port(), 60s);
  store->set("k", "v");
  server.reset();
  const auto start = Clock::now();
  for (int i = 0; i < 3; ++i) {
    for (const std::string& error :
         {error_of([&] { store->set("k", "v"); }), error_of([&] { store->get("k"); }),
          error_of([&] { store->wait_for("k", 60s); }), error_of([&] { store->add("k", 1); }),
          error_of([&] { store->compare_set("k", "v", "w"); }), error_of([&] { store->erase("k"); }),
          error_of([&] { store->num_keys(); })}) {
      check_has(error, {"io: the store at " + url, "start the job again"});
    }
  }
  CHECK(Clock::now() - start < kPrompt);
}

TEST_CASE("tcp store: a server that stops answering ends a call at its timeout", "[store][tcp]") {
  RawServer stopped;
  core::UniqueFd held;
  std::jthread answer([&] { held = stopped.accept_as_store(); });
  const auto store = client_of(stopped.port(), 2s);
  const auto start = Clock::now();
  const std::string error = error_of([&] { store->set("k", "v"); });
  check_has(error, {"timeout: the store at tcp://127.0.0.1:", "has not answered within 2s"});
  CHECK(Clock::now() - start < kPrompt);
}

TEST_CASE("tcp store: a server that has stopped holds up no deadline of the caller's, over a new connection either",
          "[store][tcp]") {
  RawServer stopped;
  core::UniqueFd held;
  std::jthread answer([&] { held = stopped.accept_as_store(); });
  const auto store = client_of(stopped.port(), 60s);
  const auto start = Clock::now();
  {
    const store::CallLimit limit(2s);
    const store::CallLimit longer(60s);  // the one around it stands
    CHECK(has(error_of([&] { store->get("k"); }), "has not answered within 2s"));
    CHECK(has(error_of([&] { store->add("k", 1); }), "timeout: "));  // at once
  }
  const std::string error = error_of([&] { store->wait_for("k", 1s); });
  check_has(error, {"timed out after 1s waiting for", "says nothing"});
  CHECK(Clock::now() - start < kPrompt);
}

TEST_CASE("tcp store: a wait that was given up leaves the connection in order", "[store][tcp]") {
  const StoreServer server(server_spec());
  const auto store = client_of(server.port());
  const auto other = client_of(server.port());
  for (int i = 0; i < 5; ++i) {
    const std::string key = "late/" + std::to_string(i);
    CHECK(has(error_of([&] { store->wait_for(key, 101ms); }), "timeout: "));
    other->set(key, "value of the wait that was given up");
    CHECK(store->get("nothing") == std::nullopt);
    CHECK(store->wait_for(key, 20s) == "value of the wait that was given up");
  }
}

TEST_CASE("tcp store: a forked child uses connections of its own", "[store][tcp]") {
  const StoreServer server(server_spec());
  const auto store = client_of(server.port());
  store->set("k", "parent");
  std::vector<Child> children;
  for (int c = 0; c < 4; ++c) {
    children.emplace_back([&, c] {
      for (int i = 0; i < 200; ++i) {
        const std::string mine = std::to_string(c) + "/" + std::to_string(i);
        store->set("child/" + mine, mine);
        require(store->get("child/" + mine) == mine, "an answer to somebody else");
        store->add("sum", 1);
      }
    });
  }
  for (int i = 0; i < 200; ++i) {
    store->set("k", std::to_string(i));
    REQUIRE(store->get("k") == std::to_string(i));
  }
  for (Child& child : children) CHECK(child.outcome() == "");
  CHECK(store->get("sum") == "800");
  CHECK(store->num_keys("child/") == 800);
}

TEST_CASE("tcp store: a child forked while other threads use the store can use it, too", "[store][tcp]") {
  const StoreServer server(server_spec());
  const auto store = client_of(server.port());
  std::mutex not_in_a_call;
  std::vector<std::jthread> busy;
  for (int t = 0; t < 3; ++t) {
    busy.emplace_back([&](const std::stop_token& stop) {
      while (!stop.stop_requested()) {
        const auto lock = lock_if_forks_need_rest(not_in_a_call);
        store->add("busy", 1);
      }
    });
  }
  for (int i = 0; i < 20; ++i) {
    auto lock = lock_if_forks_need_rest(not_in_a_call);
    Child child([&] { require(store->add("children", 1) == i + 1, "another sum"); });
    if (lock.owns_lock()) lock.unlock();
    REQUIRE(child.outcome() == "");
  }
}

TEST_CASE("tcp store: nothing is inherited by a program that is started", "[store][tcp]") {
  const StoreServer server(server_spec());
  const auto store = client_of(server.port());
  store->set("k", "v");
  int checked = 0;
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) {
    std::error_code gone;  // the directory's own
    if (!std::filesystem::read_symlink(entry.path(), gone).string().starts_with("socket:")) continue;
    ++checked;
    CHECK((::fcntl(std::stoi(entry.path().filename()), F_GETFD) & FD_CLOEXEC) != 0);
  }
  CHECK(checked >= 3);  // listener, and both ends of a connection
}

TEST_CASE("tcp store: what makes no store is refused at once", "[store][tcp]") {
  CHECK(has(error_of([] { make_tcp_store("", 1234, kToken, 1s); }), "invalid_argument: "));
  CHECK(has(error_of([] { make_tcp_store("a b", 1234, kToken, 1s); }), "invalid_argument: "));
  CHECK(has(error_of([] { make_tcp_store("host", 0, kToken, 1s); }), "invalid_argument: "));
  CHECK(has(error_of([] { make_tcp_store("host", 1234, "", 1s); }), "COL_STORE_TOKEN"));
  CHECK(has(error_of([] { make_tcp_store("host", 1234, kToken, 0s); }), "invalid_argument: "));
  CHECK(make_tcp_store("::1", 1234, kToken, 1s) != nullptr);  // nothing is connected yet
}

TEST_CASE("tcp store: a host without an address is an error that says so", "[store][tcp]") {
  // Its first label is too long for a name server to be asked, which may take minutes to answer.
  const std::string host = std::string(64, 'n') + ".invalid";
  const auto store = make_tcp_store(host, 1234, kToken, 100ms);
  const std::string error = error_of([&] { store->get("k"); });
  check_has(error, {"timeout: the store at tcp://" + host + ":1234", "("});
}

TEST_CASE("store token: COL_STORE=tcp:// takes it from the environment, or from a private file", "[store][tcp]") {
  const StoreServer server(server_spec());
  const std::string url = "tcp://127.0.0.1:" + std::to_string(server.port());
  const TempDir directory;
  const std::string path = directory / "token";
  std::ofstream(path) << kToken << '\n';
  REQUIRE(::chmod(path.c_str(), 0600) == 0);
  const ScopedVariable no_token("COL_STORE_TOKEN", std::nullopt);
  {
    const ScopedVariable no_file("COL_STORE_TOKEN_FILE", std::nullopt);
    const std::string error = error_of([&] { open_store(url); });
    check_has(error, {"invalid_argument: ", "COL_STORE_TOKEN"});
    const ScopedVariable token("COL_STORE_TOKEN", kToken);
    open_store(url)->set("k", "by variable");
  }
  const ScopedVariable file("COL_STORE_TOKEN_FILE", path);
  CHECK(open_store(url)->get("k") == "by variable");
  REQUIRE(::chmod(path.c_str(), 0400) == 0);
  CHECK(open_store(url)->get("k") == "by variable");
  // The variable wins.
  const ScopedVariable wrong("COL_STORE_TOKEN", "wrong");
  CHECK(has(error_of([&] { open_store(url)->get("k"); }), "mismatch: "));
}

TEST_CASE("store token: a program can pass token, job and timeout by itself, and the environment fills the rest",
          "[store][tcp]") {
  StoreServerSpec spec = server_spec();
  spec.job = store_job("train", 2);
  const StoreServer server(spec);
  const std::string url = "tcp://127.0.0.1:" + std::to_string(server.port());
  const ScopedVariable file("COL_STORE_TOKEN_FILE", std::nullopt);
  {
    const ScopedVariable no_token("COL_STORE_TOKEN", std::nullopt);
    const ScopedVariable no_job("COL_JOB_ID", std::nullopt);
    check_has(error_of([&] { open_store(url, {.job = spec.job}); }), {"invalid_argument: ", "StoreOptions::token"});
    open_store(url, {.token = kToken, .job = spec.job})->set("k", "passed");
  }
  // What is passed wins.
  const ScopedVariable wrong("COL_STORE_TOKEN", "wrong");
  const ScopedVariable job("COL_JOB_ID", "another");
  CHECK(open_store(url, {.token = kToken, .job = spec.job})->get("k") == "passed");
  CHECK(has(error_of([&] { open_store(url, {.job = spec.job})->get("k"); }), "mismatch: "));
  CHECK(has(error_of([&] { open_store(url, {.token = kToken})->get("k"); }), "mismatch: "));
  CHECK(has(error_of([&] { open_store(url, {.token = std::string(513, 'x')}); }), "invalid_argument: "));
  CHECK(has(error_of([&] { open_store(url, {.token = kToken, .timeout = -1s}); }), "invalid_argument: "));
  // Nobody listens there.
  const std::string nowhere = "tcp://127.0.0.1:1";
  CHECK(has(error_of([&] { open_store(nowhere, {.token = kToken, .timeout = 100ms})->get("k"); }), "timeout: "));
  // A directory needs none of them.
  const TempDir directory;
  open_store("file://" + directory.path(), {.token = kToken})->set("k", "v");
}

TEST_CASE("store token: a file that others could have read, or that holds no token, is refused", "[store][tcp]") {
  const TempDir directory;
  const std::string path = directory / "token";
  const auto refusal = [&](const std::string& content, mode_t mode) {
    std::ofstream(path, std::ios::trunc) << content;
    REQUIRE(::chmod(path.c_str(), mode) == 0);
    const std::string error = error_of([&] { read_token_file(path); });
    REQUIRE(::chmod(path.c_str(), 0600) == 0);
    check_has(error, {path});
    CHECK_FALSE(has(error, "sesame"));
    return error;
  };
  for (const mode_t mode : {0640, 0604, 0620, 0660, 0777}) CHECK(has(refusal("sesame\n", mode), "has mode 0"));
  CHECK(has(refusal("", 0600), "holds no token"));
  CHECK(has(refusal("\n", 0600), "holds no token"));
  CHECK(has(refusal("sesame\nsesame\n", 0600), "more than one line"));
  CHECK(has(refusal(std::string(kMaxTokenBytes + 1, 't'), 0600), "too long"));
  CHECK(has(error_of([&] { read_token_file(directory / "none"); }), "io: cannot open"));
  CHECK(has(error_of([&] { read_token_file(directory.path()); }), "no regular file"));
  REQUIRE(::mkfifo((directory / "fifo").c_str(), 0600) == 0);
  CHECK(has(error_of([&] { read_token_file(directory / "fifo"); }), "no regular file"));
  if (::geteuid() == 0) {  // nobody else may give a file away
    REQUIRE(::chown(path.c_str(), 12345, 12345) == 0);
    CHECK(has(error_of([&] { read_token_file(path); }), "belongs to user id 12345"));
  }
  std::ofstream(directory / "good") << std::string(kMaxTokenBytes, 't') << '\n';
  REQUIRE(::chmod((directory / "good").c_str(), 0600) == 0);
  CHECK(read_token_file(directory / "good") == std::string(kMaxTokenBytes, 't'));
}

TEST_CASE("store token: two are never equal", "[store][tcp]") {
  const std::string token = make_store_token();
  CHECK(token.size() == 32);
  CHECK(token.find_first_not_of("0123456789abcdef") == std::string::npos);
  CHECK(token != make_store_token());
}
