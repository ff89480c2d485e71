// Making and leaving a group: strangers, missing ranks, descriptors, and the order of goodbyes.
#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <exception>
#include <fstream>
#include <functional>
#include <mutex>
#include <set>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include <col/proof.hpp>

#include "backend/gloo/lobby.hpp"
#include "backend/gloo/translate.hpp"
#include "core/log.hpp"
#include "core/unique_fd.hpp"
#include "net/poller.hpp"
#include "support/catch.hpp"
#include "support/forwarding_store.hpp"
#include "support/soon.hpp"
#include "support/temp_dir.hpp"
#include "unit/gloo/mesh.hpp"

namespace {

using namespace col;
using namespace col::test;
using namespace std::chrono_literals;

// Calls a function before every set() and get(), of which each rank makes one when it listens; otherwise the store it
// wraps.
class WatchedStore final : public ForwardingStore {
 public:
  WatchedStore(std::shared_ptr<Store> store, std::function<void()> before)
      : ForwardingStore(std::move(store)), before_(std::move(before)) {}
  void set(std::string_view key, std::string_view value) override {
    before_();
    ForwardingStore::set(key, value);
  }
  std::optional<std::string> get(std::string_view key) override {
    before_();
    return ForwardingStore::get(key);
  }

 private:
  std::function<void()> before_;
};

// Uses up this process's descriptors but `free`.
void leave_free_descriptors(int free) {
  const rlimit limits{64, 64};
  setrlimit(RLIMIT_NOFILE, &limits);
  std::vector<int> taken;
  for (int fd = 0; (fd = open("/dev/null", O_RDONLY)) >= 0;) taken.push_back(fd);
  for (int i = 0; i < free; ++i) ::close(taken[static_cast<std::size_t>(i)]);
}

// Somebody who connects to every port that this process listens on, before the peers can.
class Stranger {
 public:
  enum class Manner { silent, talks, resets, half_introduces };
  // Comes `times` times to a port that it has not seen, or, `again`, to those that it has seen, too.
  explicit Stranger(Manner manner, int times = 1, bool again = false) : manner_(manner), times_(times), again_(again) {}
  ~Stranger() {
    for (const int fd : sockets_) ::close(fd);
  }

  void visit() {
    const std::lock_guard lock(mutex_);
    for (const int fd : own_descriptors()) {
      int listening = 0;
      socklen_t bytes = sizeof(listening);
      if (getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, &listening, &bytes) != 0 || listening == 0) continue;
      sockaddr_in address{};
      socklen_t length = sizeof(address);
      if (getsockname(fd, reinterpret_cast<sockaddr*>(&address), &length) != 0) continue;
      if (!visited_.insert(ntohs(address.sin_port)).second && !again_) continue;
      for (int time = 0; time < times_; ++time) visit(address);
    }
  }
  int visits() const { return static_cast<int>(visited_.size()); }

 private:
  void visit(const sockaddr_in& address) {
    const int fd = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (::connect(fd, reinterpret_cast<const sockaddr*>(&address), sizeof(address)) != 0) {
      ::close(fd);
      return;
    }
    if (manner_ == Manner::talks) {
      const std::string words(512, 'X');
      ::send(fd, words.data(), words.size(), MSG_NOSIGNAL);
    }
    if (manner_ == Manner::half_introduces) ::send(fd, std::string(100, 'a').data(), 100, MSG_NOSIGNAL);
    if (manner_ == Manner::resets) {
      const linger at_once{1, 0};
      setsockopt(fd, SOL_SOCKET, SO_LINGER, &at_once, sizeof(at_once));
      ::close(fd);
      return;
    }
    sockets_.push_back(fd);
  }

  const Manner manner_;
  const int times_;
  const bool again_;
  std::mutex mutex_;
  std::set<int> visited_;
  std::vector<int> sockets_;
};

std::vector<Ending> connect_all(int size, int present, const std::shared_ptr<Store>& store, Duration timeout) {
  return run_each(present, [&](int rank) { connect({.rank = rank, .size = size, .store = store}, timeout); });
}

}  // namespace

TEST_CASE("gloo connect: strangers who connect first to every port are dropped, said once, and the group stands",
          "[gloo]") {
  for (const auto manner : {Stranger::Manner::silent, Stranger::Manner::talks, Stranger::Manner::resets,
                            Stranger::Manner::half_introduces}) {
    for (const int size : {2, 5}) {
      const core::log::Capture log(core::log::Level::warn);
      Stranger stranger(manner);
      const auto store = std::make_shared<WatchedStore>(make_memory_store(), [&] { stranger.visit(); });
      const auto endings = connect_all(size, size, store, 20s);
      INFO("manner " << static_cast<int>(manner) << "\n" << show(endings) << log.text());
      REQUIRE(stranger.visits() == size);  // one port a rank
      CHECK(all_well(endings));
      const std::string said = log.text();
      const char* const from = manner == Stranger::Manner::resets ? "somewhere" : "127.0.0.1";
      CHECK(said.find(fmt::format("dropped a connection from {}", from)) != std::string::npos);
      CHECK(std::count(said.begin(), said.end(), '\n') <= size);  // once a group on each rank
    }
  }
}

TEST_CASE("gloo connect: a crowd of strangers at every port does not keep the ranks apart", "[gloo]") {
  Stranger stranger(Stranger::Manner::silent, 40);
  const auto store = std::make_shared<WatchedStore>(make_memory_store(), [&] { stranger.visit(); });
  require_well(connect_all(4, 4, store, 20s));
}

TEST_CASE("gloo connect: a port scanner that never rests kills no group", "[gloo]") {
  Stranger stranger(Stranger::Manner::resets, 1, /*again=*/true);
  std::jthread scanner([&](const std::stop_token& stop) {
    while (!stop.stop_requested()) stranger.visit();
  });
  for (int round = 0; round < 10; ++round) {
    const auto endings = connect_all(3, 3, make_memory_store(), 20s);
    INFO("round " << round << "\n" << show(endings));
    REQUIRE(all_well(endings));
  }
}

TEST_CASE("gloo lobby: a rank that gives up its call is no stranger; who says no rank, or a wrong one, is", "[gloo]") {
  using namespace gloo_backend;
  struct Owner final : LobbyOwner {
    bool wants(int) const override { return false; }
    void connected(int, core::UniqueFd) override {}
    void unreachable(int, std::exception_ptr) override {}
  };
  // What is logged of a caller that says `words`, and hangs up. `closes`: the lobby has not heard it when it closes.
  const auto logged_of = [](const std::string& words, bool closes) {
    const core::log::Capture log(core::log::Level::warn);
    Owner owner;
    net::Poller poller(&gloo_backend::throw_errno, true);
    Credentials credentials(kToken, 0, "sesame");
    Lobby lobby(owner, poller, credentials, 3, choose_interface(true, {}));
    const core::UniqueFd caller(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    const auto* const address = reinterpret_cast<const sockaddr*>(&lobby.address().sockaddr);
    REQUIRE(::connect(caller.get(), address, lobby.address().sockaddr_bytes()) == 0);
    REQUIRE(::send(caller.get(), words.data(), words.size(), 0) == static_cast<ssize_t>(words.size()));
    REQUIRE(::shutdown(caller.get(), SHUT_WR) == 0);
    const auto has_lobby_hung_up = [&] {
      std::array<char, 256> heard;
      ssize_t got = 1;
      while (got > 0) got = ::recv(caller.get(), heard.data(), heard.size(), MSG_DONTWAIT);
      return got == 0;
    };
    while (!has_lobby_hung_up()) {
      std::array<epoll_event, 8> events;
      const int count = poller.wait(events, 20s);
      REQUIRE(count > 0);
      for (const epoll_event& event : std::span(events).first(static_cast<std::size_t>(count))) {
        if (target_of(event.data.u64) == Target::listener) lobby.hear_listener();
        if (closes) lobby.close();
        if (target_of(event.data.u64) == Target::caller) lobby.hear_caller(number_of(event.data.u64));
      }
    }
    return log.text();
  };
  const auto rank_as_said = [](int rank) {
    const std::uint32_t number = htonl(static_cast<std::uint32_t>(rank));
    return std::string(reinterpret_cast<const char*>(&number), sizeof(number));
  };
  constexpr std::string_view kDropped = "dropped a connection from 127.0.0.1";
  for (const bool closes : {false, true}) {
    CHECK(logged_of(rank_as_said(2), closes).empty());
    for (const std::string& words : {std::string(), rank_as_said(2).substr(1)})
      CHECK(logged_of(words, closes).find(kDropped) != std::string::npos);
  }
  const std::string wrong_proof(kNonceBytes + kProofBytes, 'a');
  for (const std::string& words : {rank_as_said(0), rank_as_said(3), rank_as_said(2) + wrong_proof})
    CHECK(logged_of(words, false).find(kDropped) != std::string::npos);
}

TEST_CASE("gloo lobby: a peer that does not answer is called several times, however long that takes", "[gloo]") {
  using namespace gloo_backend;
  struct Owner final : LobbyOwner {
    bool is_unreachable = false;
    bool wants(int) const override { return true; }
    void connected(int, core::UniqueFd) override {}
    void unreachable(int, std::exception_ptr) override { is_unreachable = true; }
  };
  const Interface interface = choose_interface(true, {});
  // A port of this test at which nobody listens.
  const core::UniqueFd silent(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  Address address{.sockaddr = interface.sockaddr, .secret = "sesame"};
  auto* const generic = reinterpret_cast<sockaddr*>(&address.sockaddr);
  socklen_t bytes = interface.sockaddr_bytes;
  REQUIRE(::bind(silent.get(), generic, bytes) == 0);
  REQUIRE(::getsockname(silent.get(), generic, &bytes) == 0);

  Owner owner;
  net::Poller poller(&gloo_backend::throw_errno, true);
  Credentials credentials(kToken, 0, "sesame");
  Lobby lobby(owner, poller, credentials, 2, interface);
  lobby.call(1, address);
  // A machine that stands still for an hour after each call.
  int looks = 0;
  for (auto now = Lobby::Clock::now(); !owner.is_unreachable && looks < 100; ++looks) {
    std::array<epoll_event, 8> events;
    const int count = poller.wait(events, 20s);
    REQUIRE(count > 0);
    for (const epoll_event& event : std::span(events).first(static_cast<std::size_t>(count))) {
      if (target_of(event.data.u64) == Target::call) lobby.hear_call(1);
    }
    lobby.do_what_is_due(now += std::chrono::hours(1));
  }
  CHECK(owner.is_unreachable);
  CHECK(looks >= 3);
  lobby.close();
}

TEST_CASE("gloo connect: out of descriptors is a resource error on all ranks, and leaves none open", "[gloo]") {
  const TempDir dir;
  RankProcess starved([&] {
    const auto store = make_file_store(dir.path());
    leave_free_descriptors(12);  // for the store, but not for a group
    const auto before = own_descriptors();
    const Ending ending = ending_of([&] { connect({.rank = 0, .size = 8, .store = store}); });
    expect(ending.code == ErrorCode::resource, ending.text);
    expect(own_descriptors() == before, "a descriptor is left open");
  });
  RankProcess other([&] { connect({.rank = 1, .size = 8, .store = make_file_store(dir.path())}); });
  CHECK(starved.wait().text == "");
  const Ending ending = other.wait();
  INFO(ending.text);
  CHECK(ending.code == ErrorCode::resource);
  CHECK(ending.seconds < kPromptSeconds);
}

TEST_CASE("gloo: what Gloo throws for want of descriptors is a resource error", "[gloo]") {
  const auto thrown =
      std::make_exception_ptr(std::runtime_error(std::string("[/src/pair.cc:1] socket: ") + std::strerror(EMFILE)));
  const Error error = gloo_backend::translate(thrown, nullptr, "g", nullptr);
  CHECK(error.code() == ErrorCode::resource);
  CHECK(error.message().find("ulimit -n") != std::string::npos);
  CHECK(error.message().find("pair.cc") == std::string::npos);
}

TEST_CASE("gloo: a rank may leave right after its last collective, and the others still get everything", "[gloo]") {
  // The root of a broadcast is done once the bytes are in its socket; closing must not cut them off.
  constexpr int kSize = 3;
  constexpr std::size_t kCount = 200'000;
  for (int round = 0; round < 100; ++round) {
    const auto endings = run_ranks(kSize, [&](int rank, GlooChannel& channel) {
      std::vector<float> data(kCount, rank == round % kSize ? 3.0F : 0.0F);
      Request request = request_for(Collective::broadcast, 1, kCount);
      request.out = data;
      request.root = round % kSize;
      run_native(channel, request);
      expect(std::count(data.begin(), data.end(), 3.0F) == static_cast<std::ptrdiff_t>(kCount), "content");
    });
    INFO("round " << round << "\n" << show(endings));
    REQUIRE(all_well(endings));
  }
}

TEST_CASE("gloo interface: loopback on one host, the named one otherwise, candidates in the error", "[gloo]") {
  using gloo_backend::choose_interface;
  CHECK(choose_interface(true, "eth7").address == "127.0.0.1");
  CHECK(choose_interface(false, "nosuch, lo").name == "lo");
  const Ending ending = ending_of([] { choose_interface(false, "nosuch,neither"); });
  CHECK(ending.code == ErrorCode::unavailable);
  CHECK(ending.says("COL_SOCKET_IFNAME=nosuch,neither"));
  CHECK(ending.says("lo (127.0.0.1)"));
}
