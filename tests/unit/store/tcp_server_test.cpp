// The TCP store's server against clients that do not behave, die, or are too many.
#include <fcntl.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <chrono>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <functional>
#include <memory>
#include <set>
#include <string>
#include <system_error>
#include <thread>
#include <vector>

#include <col/proof.hpp>
#include <col/store.hpp>

#include "core/unique_fd.hpp"
#include "store/tcp/handshake.hpp"
#include "store/tcp/protocol.hpp"
#include "support/catch.hpp"
#include "support/prompt.hpp"
#include "unit/store/child.hpp"
#include "unit/store/tcp_peer.hpp"

using namespace col;
using namespace col::store::tcp;
using namespace col::test;
using namespace std::chrono_literals;
using namespace std::string_literals;

namespace {

// Whether the server still does its work.
bool serves(const StoreServer& server) {
  const auto store = client_of(server.port());
  store->set("alive", "yes");
  return store->get("alive") == "yes";
}

bool has_ipv6() {
  return static_cast<bool>(core::UniqueFd(::socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0)));
}

// As /proc/net/tcp names them.
std::set<std::string> own_sockets() {
  std::set<std::string> inodes;
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) {
    std::error_code gone;  // the directory's own
    const std::string target = std::filesystem::read_symlink(entry.path(), gone).string();
    if (target.starts_with("socket:[")) inodes.insert(target.substr(8, target.size() - 9));
  }
  return inodes;
}

std::size_t resident_bytes() {
  std::ifstream statm("/proc/self/statm");
  std::size_t pages = 0, resident = 0;
  statm >> pages >> resident;
  return resident * static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
}

}  // namespace

TEST_CASE("tcp server: garbage, half messages and huge length fields cost their sender the connection",
          "[store][tcp]") {
  const StoreServer server(server_spec());
  const std::string huge = "\0\0\0\x40"s + std::string(9, '\2');
  const std::size_t before = resident_bytes();
  for (int round = 0; round < 50; ++round) {
    for (const std::string& bytes : {huge, "GET / HTTP/1.1\r\n\r\n"s, std::string(100'000, '\xaa')}) {
      RawClient stranger(server.port());
      (void)stranger.send(bytes);
      REQUIRE(stranger.is_dropped());
    }
    RawClient insider(server.port());
    insider.log_in();
    (void)insider.send(huge);
    REQUIRE(insider.is_dropped());
    RawClient half(server.port());
    half.log_in();
    (void)half.send(huge.substr(4, 3));
  }
  CHECK(resident_bytes() < before + (std::size_t{64} << 20));
  CHECK(serves(server));
}

TEST_CASE("tcp server: who says nothing, or dribbles, is dropped at the deadline; who is logged in may idle",
          "[store][tcp]") {
  StoreServerSpec quick = server_spec();
  quick.handshake_timeout = 2s;  // what the insider has, too
  const StoreServer server(quick);
  RawClient insider(server.port());
  insider.log_in();
  RawClient silent(server.port()), dribbling(server.port());
  std::jthread drops([&](const std::stop_token& stop) {
    const std::string nonce = dribbling.read_nonce();
    const std::string hello = make_hello(1, {.token = kToken, .job = {}, .server_nonce = nonce}, make_nonce());
    for (std::size_t i = 0; i + 1 < hello.size() && !stop.stop_requested() && dribbling.send(hello.substr(i, 1)); ++i)
      (void)dribbling.receive(1, 30ms);  // a pause between two bytes
  });
  CHECK(silent.is_dropped());
  CHECK(dribbling.is_dropped());
  drops.request_stop();
  drops.join();
  CHECK(insider.send(encode(Request{.type = RequestType::num_keys, .id = 2})));
  CHECK(insider.receive(kHeaderBytes + 8).size() == kHeaderBytes + 8);
}

TEST_CASE("tcp server: a wrong token is refused with a word, and opens nothing", "[store][tcp]") {
  const StoreServer server(server_spec());
  client_of(server.port())->set("secret", "value");
  const auto stranger = make_tcp_store("127.0.0.1", server.port(), "another token", 20s);
  const std::string error = error_of([&] { stranger->get("secret"); });
  check_has(error, {"mismatch: the store at tcp://127.0.0.1:", "COL_STORE_TOKEN"});
  CHECK_FALSE(has(error, "another token"));
  CHECK_FALSE(has(error, kToken));
}

TEST_CASE("tcp server: beyond the limit of connections a client is told so, and gets in once one is free",
          "[store][tcp]") {
  StoreServerSpec small = server_spec();
  small.max_connections = 3;
  const StoreServer server(small);
  std::vector<std::shared_ptr<Store>> stores;
  for (int i = 0; i < 3; ++i) {
    stores.push_back(client_of(server.port()));
    stores.back()->set("k", "v");
  }
  const std::string error = error_of([&] { client_of(server.port())->get("k"); });
  check_has(error, {"resource: ", "max_connections"});
  CHECK(stores[0]->get("k") == "v");
  stores.pop_back();
  // The server notices the end of the connection in its own time.
  const Deadline deadline = Deadline::after(20s);
  while (!error_of([&] { CHECK(client_of(server.port())->get("k") == "v"); }).empty())
    REQUIRE_FALSE(deadline.expired());
}

TEST_CASE("tcp server: without descriptors it turns clients away, idles, and recovers", "[store][tcp]") {
  // In a process of its own, as the limit is the process's.
  int ports[2], orders[2], replies[2];
  REQUIRE((::pipe2(ports, O_CLOEXEC) == 0 && ::pipe2(orders, O_CLOEXEC) == 0 && ::pipe2(replies, O_CLOEXEC) == 0));
  Child host([&] {
    const auto await = [&] {
      char order = 0;
      require(::read(orders[0], &order, 1) == 1, "no order");
    };
    const auto reply = [&] { require(::write(replies[1], "r", 1) == 1, "no reply"); };
    std::vector<core::UniqueFd> all;  // outlives the server: no number changes hands while its thread runs
    const StoreServer server(server_spec());
    const int port = server.port();
    require(::write(ports[1], &port, sizeof port) == sizeof port, "no port");
    await();  // a client is there
    rlimit limit{};
    ::getrlimit(RLIMIT_NOFILE, &limit);
    const rlimit few{.rlim_cur = 64, .rlim_max = limit.rlim_max};
    ::setrlimit(RLIMIT_NOFILE, &few);
    for (int fd; (fd = ::open("/dev/null", O_RDONLY | O_CLOEXEC)) >= 0;) all.emplace_back(fd);
    reply();
    await();  // clients have been turned away
    const std::clock_t before = std::clock();
    reply();
    await();  // some time has passed
    const double busy_seconds = static_cast<double>(std::clock() - before) / CLOCKS_PER_SEC;
    require(busy_seconds < 0.25, "it spins: " + std::to_string(busy_seconds) + " s");
    ::setrlimit(RLIMIT_NOFILE, &limit);
    reply();
    await();  // the end
  });
  int port = 0;
  REQUIRE(::read(ports[0], &port, sizeof port) == sizeof port);
  const auto order = [&] { REQUIRE(::write(orders[1], "o", 1) == 1); };
  const auto await_reply = [&] {
    char reply = 0;
    REQUIRE(::read(replies[0], &reply, 1) == 1);
  };
  const auto first = client_of(port);
  first->set("k", "v");
  order();
  await_reply();
  for (int i = 0; i < 3; ++i) {
    const std::string error = error_of([&] { client_of(port)->get("k"); });
    check_has(error, {"resource: ", "ulimit -n"});
  }
  CHECK(first->get("k") == "v");
  order();
  await_reply();
  const RawClient waiting(port);  // there is one to be turned away all the time
  CHECK(error_of([&] { first->wait_for("never", 500ms); }).starts_with("timeout"));
  order();
  await_reply();
  CHECK(client_of(port)->get("k") == "v");
  order();
  CHECK(host.outcome() == "");
}

TEST_CASE("tcp server: a client process that is killed in the middle of anything harms nobody", "[store][tcp]") {
  const StoreServer server(server_spec());
  const auto store = client_of(server.port());
  for (int round = 0; round < 10; ++round) {
    const std::string name = std::to_string(round);
    Child waiter([&] {
      client_of(server.port())->set("waits/" + name, "");
      client_of(server.port())->wait_for("never", 60s);
    });
    Child writer([&] {
      const auto large = client_of(server.port());
      for (int i = 0;; ++i) {
        large->set("large", std::string(3'000'000, static_cast<char>('a' + i % 26)));
        large->add("writes/" + name, 1);
      }
    });
    store->wait_for("waits/" + name, 20s);
    store->wait_for("writes/" + name, 20s);
    waiter.kill();
    writer.kill();
    CHECK(waiter.outcome() == "signal 9");
    CHECK(writer.outcome() == "signal 9");
    const std::string value = store->get("large").value();
    CHECK(value == std::string(3'000'000, value.front()));
  }
  CHECK(serves(server));
}

TEST_CASE("tcp server: it counts its clients, and no longer those that left or were killed", "[store][tcp]") {
  StoreServer server(server_spec());
  CHECK(server.connections() == 0);
  auto store = client_of(server.port());
  store->set("k", "v");
  CHECK(server.connections() == 1);
  Child child([&] {
    client_of(server.port())->set("here", "");
    const auto mine = client_of(server.port());
    mine->set("here too", "");
    ::pause();
  });
  store->wait_for("here too", 20s);
  CHECK(server.connections() >= 2);
  child.kill();
  CHECK(child.outcome() == "signal 9");
  store.reset();
  const Deadline deadline = Deadline::after(20s);
  while (server.connections() != 0) REQUIRE_FALSE(deadline.expired());
  store = client_of(server.port());
  store->set("k", "v");
  server.stop();
  CHECK(server.connections() == 0);
}

TEST_CASE("tcp server: stopped in the middle of a wait, it leaves an error that says so", "[store][tcp]") {
  StoreServer server(server_spec());
  const auto store = client_of(server.port());
  std::string error;
  std::jthread waiter([&] {
    error = error_of([&] {
      store->set("waits", "");
      store->wait_for("never", 60s);
    });
  });
  client_of(server.port())->wait_for("waits", 20s);
  server.stop();
  server.stop();
  const auto start = std::chrono::steady_clock::now();
  waiter.join();
  CHECK(std::chrono::steady_clock::now() - start < col::test::kPrompt);
  check_has(error, {"io: the store at tcp://127.0.0.1:" + std::to_string(server.port())});
}

TEST_CASE("tcp server: a port that is taken, an address that is not here, and a missing token are errors",
          "[store][tcp]") {
  const StoreServer server(server_spec());
  const auto refusal = [](const std::function<void(StoreServerSpec&)>& change) {
    StoreServerSpec spec = server_spec();
    change(spec);
    return error_of([&] { const StoreServer second(spec); });
  };
  const std::string url = "tcp://127.0.0.1:" + std::to_string(server.port());
  CHECK(has(refusal([&](auto& spec) { spec.port = server.port(); }), "io: cannot listen on " + url));
  CHECK(has(refusal([](auto& spec) { spec.host = "192.0.2.1"; }), "io: cannot listen on"));
  CHECK(has(refusal([](auto& spec) { spec.token = ""; }), "invalid_argument: the token"));
  CHECK(has(refusal([](auto& spec) { spec.token.assign(kMaxTokenBytes + 1, 't'); }), "invalid_argument: the token"));
  CHECK(has(refusal([](auto& spec) { spec.port = 65536; }), "invalid_argument: "));
  CHECK(has(refusal([](auto& spec) { spec.max_value_bytes = 0; }), "invalid_argument: "));
}

TEST_CASE("tcp server: it can be reached at every address when none is named", "[store][tcp]") {
  StoreServerSpec everywhere = server_spec();
  everywhere.host = "";
  const StoreServer server(everywhere);
  for (const char* host : {"127.0.0.1", "127.0.0.2", "localhost"}) {
    INFO(host);
    const auto store = make_tcp_store(host, server.port(), kToken, 20s);
    CHECK(store->add("reached", 1) > 0);
  }
}

TEST_CASE("tcp server: its URL is one that clients can use, whatever host it was given", "[store][tcp]") {
  for (const char* host : {"", "*", "0.0.0.0", "::", "127.0.0.1", "127.0.0.7", "localhost"}) {
    if (std::string(host) == "::" && !has_ipv6()) continue;
    StoreServerSpec spec = server_spec();
    spec.host = host;
    const StoreServer server(spec);
    INFO("'" << host << "': " << server.url());
    const bool is_wildcard = std::string(host).find_first_not_of("0.:*") == std::string::npos;
    if (!is_wildcard) CHECK(server.url() == fmt::format("tcp://{}:{}", host, server.port()));
    if (is_wildcard) CHECK(server.url().find(fmt::format("//{}:", host)) == std::string::npos);
    CHECK(open_store(server.url(), {.token = kToken, .timeout = 20s})->add("reached", 1) == 1);
  }
}

// The addresses at which this process listens with `port`, of /proc/net/tcp and tcp6: all of them is "all".
std::set<std::string> listening_at(int port) {
  std::set<std::string> found;
  const std::set<std::string> own = own_sockets();
  for (const char* const table : {"/proc/net/tcp", "/proc/net/tcp6"}) {
    std::ifstream lines(table);
    std::string number, local, remote, state, queues, timer, retries, user, timeout, inode, rest;
    std::getline(lines, rest);
    while (lines >> number >> local >> remote >> state >> queues >> timer >> retries >> user >> timeout >> inode &&
           std::getline(lines, rest)) {
      const auto colon = local.find(':');
      if (state != "0A" || !own.contains(inode) || std::stoi(local.substr(colon + 1), nullptr, 16) != port) continue;
      const std::string address = local.substr(0, colon);
      found.insert(address.find_first_not_of('0') == std::string::npos ? "all" : address);
    }
  }
  return found;
}

TEST_CASE("tcp server: it listens at the addresses of the host that is named, and nowhere else", "[store][tcp]") {
  const auto at = [](const char* host) {
    StoreServerSpec here = server_spec();
    here.host = host;
    const StoreServer server(here);
    return listening_at(server.port());
  };
  CHECK(at("127.0.0.1") == std::set<std::string>{"0100007F"});
  CHECK(at("127.0.0.7") == std::set<std::string>{"0700007F"});
  CHECK(at("") == std::set<std::string>{"all"});
  for (const std::string& address : at("localhost")) {
    INFO(address);
    CHECK((address == "0100007F" || address == "00000000000000000000000001000000"));
  }
  CHECK(listen_addresses("127.0.0.7") == std::vector<std::string>{"127.0.0.7"});
  for (const char* all : {"", "*"}) CHECK(listen_addresses(all)->empty());
  CHECK_FALSE(listen_addresses("198.51.100.1"));  // for documentation: nobody has it
  // Its first label is too long for a name server to be asked, which may take minutes to answer.
  CHECK_FALSE(listen_addresses(std::string(64, 'n') + ".invalid"));
}

TEST_CASE("tcp server: its port is free again as soon as it has stopped, even with a forked child", "[store][tcp]") {
  auto server = std::make_unique<StoreServer>(server_spec());
  const int port = server->port();
  client_of(server->port())->set("k", "v");
  Child child([&] {
    server.reset();  // the parent's thread is not here: nothing is to be joined
    ::pause();
  });
  CHECK(serves(*server));
  server.reset();
  // The child still has the descriptors, but nobody listens.
  const std::string error = error_of([&] { client_of(port, 1s)->get("k"); });
  check_has(error, {"timeout: the store at tcp://127.0.0.1:", "refused"});
}

TEST_CASE("tcp server: a client that leaves while a forked child shares its socket wakes it once", "[store][tcp]") {
  StoreServer server(server_spec());
  auto client = client_of(server.port());
  client->set("k", "v");
  Child child([] { ::pause(); });
  client.reset();
  while (server.connections() > 0) std::this_thread::yield();
  const auto spent = [] {
    rusage usage{};
    ::getrusage(RUSAGE_SELF, &usage);
    return usage.ru_utime.tv_sec * 1000.0 + static_cast<double>(usage.ru_utime.tv_usec) / 1000 +
           usage.ru_stime.tv_sec * 1000.0 + static_cast<double>(usage.ru_stime.tv_usec) / 1000;
  };
  const double before = spent();
  // A wait that ends by its time: a server that does not sleep would use all of it.
  error_of([&] { client_of(server.port())->wait_for("never", 500ms); });
  CHECK(spent() - before < 250);
}

TEST_CASE("tcp server: signals of the process are never its thread's", "[store][tcp]") {
  const StoreServer server(server_spec());
  CHECK(serves(server));  // its thread has begun
  std::size_t found = 0;
  for (const auto& task : std::filesystem::directory_iterator("/proc/self/task")) {
    std::ifstream status(task.path() / "status");
    std::string line, name, blocked;
    while (std::getline(status, line)) {
      if (line.starts_with("Name:\tcol-store")) name = line;
      if (line.starts_with("SigBlk:\t")) blocked = line.substr(8);
    }
    if (name.empty()) continue;
    ++found;
    // All 64 but SIGKILL, SIGSTOP and the two that the C library keeps for itself.
    CHECK(std::stoull(blocked, nullptr, 16) == (~0ULL & ~(1ULL << 8) & ~(1ULL << 18) & ~(1ULL << 31) & ~(1ULL << 32)));
  }
  CHECK(found == 1);
}

TEST_CASE("tcp server: a full store is an error for the setter, and keys can be erased to go on", "[store][tcp]") {
  StoreServerSpec small = server_spec();
  small.max_value_bytes = 1'000'000;
  small.max_total_bytes = 4'000'000;
  const StoreServer server(small);
  const auto store = client_of(server.port());
  const std::string value(900'000, 'v');
  int stored = 0;
  std::string error;
  while ((error = error_of([&] { store->set("k" + std::to_string(stored), value); })).empty()) ++stored;
  CHECK(has(error, "resource: the store is full"));
  CHECK(stored >= 2);
  CHECK(store->num_keys("k") == static_cast<std::size_t>(stored));
  CHECK(store->erase("k0"));
  store->set("again", "v");
  CHECK(store->get("k1") == value);
  CHECK(has(error_of([&] { store->set("long", std::string(1'000'001, 'v')); }), "resource: "));
  CHECK(has(error_of([&] { store->get(std::string(kMaxKeyBytes + 1, 'k')); }), "resource: "));
  CHECK(store->get("again") == "v");
}
