// The store that rank 0 serves: how ranks come, go and come back.
#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <atomic>
#include <chrono>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include <col/error.hpp>

#include "core/unique_fd.hpp"
#include "group/adopt/served_store.hpp"
#include "support/catch.hpp"
#include "support/free_port.hpp"
#include "support/ranks.hpp"

using namespace std::chrono_literals;
using col::ErrorCode;
using col::StoreServer;
using namespace col::group::adopt;

namespace {

using Clock = std::chrono::steady_clock;

bool is_free(int port) {
  try {
    StoreServer server({.host = "127.0.0.1", .port = port, .token = "t"});
    return true;
  } catch (const col::Error&) {
    return false;
  }
}

class Job {
 public:
  explicit Job(int world_size) : world_size_(world_size) {}
  int port() const { return port_; }
  std::unique_ptr<ServedStore> rank(int rank, col::Duration timeout = 10s, const std::string& token = "secret") const {
    return std::make_unique<ServedStore>(ServedSpec{.rank = rank,
                                                    .world_size = world_size_,
                                                    .host = "127.0.0.1",
                                                    .port = port_,
                                                    .source = "COL_RDZV_ENDPOINT",
                                                    .token = token,
                                                    .timeout = timeout});
  }

 private:
  int world_size_;
  int port_ = col::test::free_port();
};

// A listener that says `words` to whoever comes, and no more.
class Stranger {
 public:
  explicit Stranger(std::string words) : socket_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof address;
    REQUIRE(::bind(socket_.get(), reinterpret_cast<sockaddr*>(&address), size) == 0);
    REQUIRE(::listen(socket_.get(), 8) == 0);
    REQUIRE(::getsockname(socket_.get(), reinterpret_cast<sockaddr*>(&address), &size) == 0);
    port_ = ntohs(address.sin_port);
    thread_ = std::thread([this, words = std::move(words)] {
      const col::core::UniqueFd client(::accept4(socket_.get(), nullptr, nullptr, SOCK_CLOEXEC));
      if (client) (void)!::send(client.get(), words.data(), words.size(), MSG_NOSIGNAL);
    });
  }
  ~Stranger() {
    ::shutdown(socket_.get(), SHUT_RDWR);
    thread_.join();
  }
  Stranger(const Stranger&) = delete;
  Stranger& operator=(const Stranger&) = delete;
  int port() const { return port_; }

 private:
  col::core::UniqueFd socket_;
  int port_ = 0;
  std::thread thread_;
};

template <class Call>
col::Error error_of(Call call) {
  try {
    call();
  } catch (const col::Error& error) {
    return error;
  }
  throw std::runtime_error("no error");
}

bool names(const col::Error& error, const std::string& text) {
  INFO(error.message());
  return error.message().find(text) != std::string::npos;
}

}  // namespace

TEST_CASE("served store: ranks find in it what others have left, and the port is free in the end", "[adopt]") {
  const Job job(3);
  auto zero = job.rank(0), one = job.rank(1), two = job.rank(2);
  // Who comes first waits for rank 0.
  std::thread early([&] { one->set("from/1", "a"); });
  zero->serve();
  early.join();
  CHECK(zero->get("from/1") == "a");
  CHECK(two->add("count", 3) == 3);
  CHECK(zero->compare_set("count", "3", "4") == "3");
  CHECK(one->num_keys("from/") == 1);
  CHECK(one->erase("from/1"));
  CHECK(zero->num_keys("count") == 1);
  CHECK(two->wait_for("count", 1s) == "4");

  const auto start = Clock::now();
  one->leave(Leaving::finished);
  two->leave(Leaving::finished);
  zero->leave(Leaving::finished);
  CHECK(Clock::now() - start < col::test::kPrompt);
  CHECK(is_free(job.port()));
}

TEST_CASE("served store: rank 0 stays for as long as the others need it", "[adopt]") {
  const Job job(3);
  auto zero = job.rank(0), one = job.rank(1), two = job.rank(2);
  zero->serve();
  zero->set("here", "0");
  one->set("key", "1");
  two->set("other", "2");
  std::atomic<bool> gone{false};
  std::thread end([&] {
    zero->leave(Leaving::finished);
    gone = true;
  });
  two->leave(Leaving::finished);
  for (int i = 0; i < 200; ++i) REQUIRE(one->get("key") == "1");
  CHECK_FALSE(gone);
  one->leave(Leaving::finished);
  end.join();
  CHECK(is_free(job.port()));
}

TEST_CASE("served store: rank 0 that never uses the store serves it all the same", "[adopt]") {
  const Job job(2);
  auto zero = job.rank(0), one = job.rank(1);
  zero->serve();
  std::thread end([&] { zero->leave(Leaving::finished); });
  one->set("key", "1");
  one->leave(Leaving::finished);
  end.join();
  CHECK(is_free(job.port()));
}

TEST_CASE("served store: rank 0 waits within bounds for ranks that never leave, and once", "[adopt][rest]") {
  const Job job(2);
  auto zero = job.rank(0), one = job.rank(1);
  zero->serve();
  zero->set("key", "0");
  CHECK(one->get("key") == "0");
  auto start = Clock::now();
  zero->leave(Leaving::failed);
  CHECK(Clock::now() - start > 900ms);
  CHECK(Clock::now() - start < col::test::kPrompt);
  CHECK(one->get("key") == "0");  // whoever is there still is served on
  start = Clock::now();
  zero->leave(Leaving::finished);
  CHECK(Clock::now() - start < col::test::kPrompt);
  start = Clock::now();
  zero.reset();  // the process ends
  CHECK(Clock::now() - start < col::test::kPrompt);
  CHECK(error_of([&] { one->get("key"); }).code() == ErrorCode::io);
  start = Clock::now();
  one->leave(Leaving::finished);
  CHECK(Clock::now() - start < col::test::kPrompt);
  CHECK(is_free(job.port()));
}

TEST_CASE("served store: a rank comes back to a server that is there still", "[adopt]") {
  const Job job(2);
  auto zero = job.rank(0), one = job.rank(1);
  zero->serve();
  zero->set("key", "0");
  one->set("key", "1");
  one->leave(Leaving::finished);
  CHECK_FALSE(one->erase("key"));  // is not worth coming back for
  one->set("again", "1");
  const auto start = Clock::now();
  zero->leave(Leaving::finished);
  CHECK(Clock::now() - start < col::test::kPrompt);
  CHECK(zero->get("again") == "1");
  one->leave(Leaving::finished);
  zero->leave(Leaving::finished);
  CHECK(is_free(job.port()));
}

TEST_CASE("served store: a rank comes back before rank 0 does, and waits for it", "[adopt]") {
  const Job job(2);
  auto zero = job.rank(0), one = job.rank(1);
  for (int round = 0; round < 20; ++round) {
    zero->serve();
    const std::string value = std::to_string(round);
    // At once after it has left: rank 0 may be there, about to stop, or gone.
    std::thread other([&] {
      one->set("one/" + value, value);
      one->wait_for("zero/" + value, col::test::kDeadline);
      one->leave(Leaving::finished);
    });
    zero->wait_for("one/" + value, col::test::kDeadline);
    zero->set("zero/" + value, value);
    zero->leave(Leaving::finished);
    other.join();
  }
  CHECK(is_free(job.port()));
}

TEST_CASE("served store: ranks as processes end and begin again at any time", "[adopt]") {
  const Job job(4);
  const auto outcomes = col::test::run_processes(4, [&](int rank, col::Context&) {
    const auto store = job.rank(rank);
    store->serve();
    for (int round = 0; round < 10; ++round) {
      store->set(std::to_string(round) + "/" + std::to_string(rank), "here");
      for (int other = 0; other < 4; ++other)
        store->wait_for(std::to_string(round) + "/" + std::to_string(other), col::test::kDeadline);
      store->leave(Leaving::finished);
    }
  });
  INFO(col::test::show(outcomes));
  CHECK(col::test::all_good(outcomes));
  CHECK(is_free(job.port()));
}

TEST_CASE("served store: a rank 0 that never serves is a timeout that says where and who", "[adopt]") {
  const Job job(2);
  const auto one = job.rank(1, 200ms);
  auto error = error_of([&] { one->set("key", "1"); });
  CHECK(error.code() == ErrorCode::timeout);
  CHECK(names(error, "rank 0"));
  CHECK(names(error, "127.0.0.1:" + std::to_string(job.port())));
  CHECK(names(error, "COL_RDZV_ENDPOINT"));
  // A wait has its own limit.
  const auto patient = job.rank(1, 60s);
  const auto start = Clock::now();
  CHECK(error_of([&] { patient->wait_for("key", 200ms); }).code() == ErrorCode::timeout);
  CHECK(Clock::now() - start < col::test::kPrompt);
}

TEST_CASE("served store: a port that is taken is unavailable, and named", "[adopt]") {
  const Job job(2);
  StoreServer other({.host = "127.0.0.1", .port = job.port(), .token = "another"});
  const auto zero = job.rank(0);
  const auto error = error_of([&] { zero->serve(); });
  CHECK(error.code() == ErrorCode::unavailable);
  CHECK(names(error, std::to_string(job.port())));
  CHECK(names(error, "COL_RDZV_ENDPOINT"));
  // The other ranks see that it is another job's.
  const auto refused = error_of([&] { job.rank(1)->set("key", "1"); });
  CHECK(refused.code() == ErrorCode::mismatch);
  CHECK(names(refused, "COL_RDZV_ENDPOINT"));
  CHECK_FALSE(names(refused, "secret"));
}

TEST_CASE("served store: a stranger at the port is no store", "[adopt]") {
  const Stranger stranger("SSH-2.0-OpenSSH_9.2\r\n");
  ServedStore one({.rank = 1,
                   .world_size = 2,
                   .host = "127.0.0.1",
                   .port = stranger.port(),
                   .source = "MASTER_ADDR",
                   .token = "secret",
                   .timeout = 10s});
  const auto error = error_of([&] { one.set("key", "1"); });
  CHECK(error.code() == ErrorCode::mismatch);
  CHECK(names(error, "SSH-2.0"));
  CHECK(names(error, "COL_RDZV_ENDPOINT"));
}

TEST_CASE("served store: a forked process is in no store, and its end changes nothing", "[adopt]") {
  const Job job(2);
  auto zero = job.rank(0), one = job.rank(1);
  zero->serve();
  one->set("key", "1");
  const auto outcomes = col::test::run_processes(1, [&](int, col::Context&) {
    one->leave(Leaving::finished);
    zero->leave(Leaving::finished);
    one->get("key");
  });
  CHECK(outcomes[0].code == ErrorCode::not_initialized);
  CHECK(zero->get("key") == "1");
  one->leave(Leaving::finished);
  zero->leave(Leaving::finished);
  CHECK(is_free(job.port()));
}
