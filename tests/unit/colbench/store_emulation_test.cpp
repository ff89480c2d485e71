#include <poll.h>
#include <sys/socket.h>

#include <array>
#include <atomic>
#include <chrono>
#include <cstring>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "colbench/workload/store_server.hpp"
#include "colbench/workload/store_wire.hpp"
#include "colbench/workload/workload.hpp"
#include "support/catch.hpp"
#include "support/ranks.hpp"

using namespace col;
using namespace col::colbench;
using namespace std::chrono_literals;
using col::test::expect;
using col::test::run_threads;

namespace {

Deadline soon() {
  return Deadline::after(10s);
}

std::string bytes_of(std::size_t size, char first) {
  std::string bytes(size, '\0');
  for (std::size_t i = 0; i < size; ++i) bytes[i] = static_cast<char>(first + static_cast<char>(i % 101));
  return bytes;
}

void put(Wire& wire, std::uint64_t object, std::uint32_t readers, const std::string& bytes) {
  wire.send({.kind = Frame::Kind::put, .argument = readers, .object = object, .length = bytes.size()},
            std::as_bytes(std::span(bytes)), soon());
  wire.expect(Frame::Kind::done, soon());
}

std::string get(Wire& wire, std::uint64_t object) {
  wire.send({.kind = Frame::Kind::get, .object = object}, {}, soon());
  std::string bytes(wire.expect(Frame::Kind::data, soon()).length, '\0');
  wire.receive(std::as_writable_bytes(std::span(bytes)), soon());
  return bytes;
}

// What a call throws; nothing when it returns.
template <class Call>
std::optional<Error> error_of_call(const Call& call) {
  try {
    call();
  } catch (const Error& error) {
    return error;
  }
  return std::nullopt;
}

// A store with nothing around it.
struct RunningStore {
  explicit RunningStore(StoreLimits limits = {.object_bytes = 8 << 20, .clients = 8, .timeout = 10s})
      : RunningStore(Listener(8), limits) {}
  RunningStore(Listener listener, StoreLimits limits) : name(listener.name()), server(std::move(listener), limits) {}
  Wire client() const { return Wire::connect(name, "the store", 0); }

  std::string name;
  colbench::StoreServer server;
};

WorkloadSetup setup_of(Context& context, int rank, int ranks, std::size_t count) {
  return {.group = context.init_group({.rank = rank, .world_size = ranks, .backend = Backend::shm}),
          .spec = {.operation = Operation::store, .bytes = count * sizeof(float), .ranks = ranks},
          .seed = 7,
          .check_mode = "all",
          .timeout = 20s};
}

}  // namespace

TEST_CASE("store wire: a frame comes back as it went, and other bytes are none", "[colbench]") {
  const Frame frame{.kind = Frame::Kind::put, .argument = 3, .object = 1ull << 48 | 5, .length = 1ull << 40};
  FrameBytes bytes = encode(frame);
  const auto back = decode(bytes);
  REQUIRE(back);
  CHECK(back->kind == frame.kind);
  CHECK(back->argument == frame.argument);
  CHECK(back->object == frame.object);
  CHECK(back->length == frame.length);
  for (std::size_t at = 0; at < 8; ++at) {
    FrameBytes other = bytes;
    other[at] ^= std::byte{1};
    CHECK_FALSE(decode(other));
  }
  bytes[8] = std::byte{200};  // the kind
  CHECK_FALSE(decode(bytes));
}

TEST_CASE("store wire: a listener has a name that is no file, and both go together", "[colbench]") {
  std::string name;
  {
    const Listener listener(8), other(8);
    name = listener.name();
    CHECK_FALSE(name.empty());
    CHECK(name != other.name());
    CHECK_FALSE(listener.accept());
    Wire wire = Wire::connect(name, "the store", 0);
    CHECK(listener.accept());
    CHECK_FALSE(other.accept());
  }
  const auto error = error_of_call([&] { Wire::connect(name, "the store", 0); });
  REQUIRE(error);
  CHECK(error->code() == ErrorCode::io);
  CHECK(error->message() ==
        "cannot connect to the store: Connection refused; it serves ranks of one network namespace only");
}

TEST_CASE("store server: objects stay until their last reader has got them", "[colbench]") {
  const RunningStore store;
  Wire writer = store.client(), reader = store.client();
  const std::string large = bytes_of(3 << 20, 'a'), small = bytes_of(5, 'x');
  put(writer, 1, 2, large);
  put(writer, 2, 1, small);
  put(writer, 3, 1, "");
  CHECK(get(reader, 2) == small);
  CHECK(get(reader, 1) == large);
  CHECK(get(writer, 1) == large);
  CHECK(get(reader, 3).empty());
  for (const std::uint64_t gone : {1, 2, 3, 99}) {
    const auto error = error_of_call([&] { get(reader, gone); });
    REQUIRE(error);
    CHECK(error->code() == ErrorCode::invalid_argument);
    CHECK(error->message().find("is not in the object store") != std::string::npos);
  }
  put(writer, 1, 1, small);  // the id is free again, and the connection good
  CHECK(get(reader, 1) == small);
}

TEST_CASE("store server: memory that is used again holds the new bytes, to the last one", "[colbench]") {
  const RunningStore store;
  Wire wire = store.client();
  for (const std::size_t size : {1000u, 700u, 1000u, 600u, 1u, 1000u}) {
    const std::string bytes = bytes_of(size, static_cast<char>('a' + size % 7));
    put(wire, size, 1, bytes);
    CHECK(get(wire, size) == bytes);
  }
}

TEST_CASE("store server: a client that sends no frame is told so and dropped; others go on", "[colbench]") {
  RunningStore store;
  Wire good = store.client(), bad = store.client();
  put(good, 1, 2, "kept");
  const std::string noise(kFrameBytes, '#');
  REQUIRE(::send(bad.fd(), noise.data(), noise.size(), MSG_NOSIGNAL) == static_cast<ssize_t>(noise.size()));
  const auto told = error_of_call([&] { bad.expect(Frame::Kind::done, soon()); });
  REQUIRE(told);
  CHECK(told->message() == "the object store was sent what is no frame");
  const auto dropped = error_of_call([&] { bad.receive(soon()); });
  REQUIRE(dropped);
  CHECK(dropped->code() == ErrorCode::peer_lost);
  CHECK(get(good, 1) == "kept");
  CHECK(store.server.failure().empty());
}

TEST_CASE("store server: refuses what it does not know, what is too large, and what it has", "[colbench]") {
  const RunningStore store;
  struct Wrong {
    Frame frame;
    const char* says;
  };
  Wire first = store.client();
  put(first, 5, 1, "x");
  const std::array<Wrong, 5> all = {
      {{{.kind = Frame::Kind::call, .object = 1}, "takes put and get"},
       {{.kind = Frame::Kind::get, .object = 5, .length = 3}, "takes put and get"},
       {{.kind = Frame::Kind::put, .argument = 1, .object = 1, .length = 9 << 20}, "takes 8388608 at most"},
       {{.kind = Frame::Kind::put, .argument = 0, .object = 1, .length = 1}, "has no readers"},
       {{.kind = Frame::Kind::put, .argument = 1, .object = 5, .length = 1}, "is in the object store already"}}};
  for (const Wrong& wrong : all) {
    INFO(wrong.says);
    Wire wire = store.client();
    const std::string bytes(wrong.frame.length, 'p');
    // The store may close while the bytes are on their way: the reason arrives all the same.
    const auto error = error_of_call([&] {
      wire.send(wrong.frame, std::as_bytes(std::span(bytes)), soon());
      wire.expect(Frame::Kind::done, soon());
    });
    REQUIRE(error);
    INFO(error->what());
    CHECK(error->message().find(wrong.says) != std::string::npos);
  }
  CHECK(get(first, 5) == "x");
}

TEST_CASE("store server: a client that stops in the middle of a put is dropped, and holds up nobody", "[colbench]") {
  RunningStore store({.object_bytes = 1000, .clients = 2, .timeout = 100ms});
  Wire stuck = store.client(), good = store.client();
  const FrameBytes header = encode({.kind = Frame::Kind::put, .argument = 1, .object = 1, .length = 1000});
  REQUIRE(::send(stuck.fd(), header.data(), header.size(), MSG_NOSIGNAL) == static_cast<ssize_t>(header.size()));
  put(good, 2, 1, "moves on");
  CHECK(get(good, 2) == "moves on");
  const auto dropped = error_of_call([&] { stuck.receive(soon()); });
  REQUIRE(dropped);
  CHECK(dropped->code() == ErrorCode::peer_lost);
  put(good, 1, 1, "the id was never taken");
  CHECK_FALSE(store.server.wait_until_left(0s));
  good.close();
  CHECK(store.server.wait_until_left(10s));
}

TEST_CASE("store wire: a wait ends at its deadline and says for whom it waited", "[colbench]") {
  const RunningStore store;
  Wire wire = store.client();
  const auto error = error_of_call([&] { wire.receive(Deadline::after(20ms)); });
  REQUIRE(error);
  CHECK(error->code() == ErrorCode::timeout);
  CHECK(error->message().find("the store") != std::string::npos);
}

TEST_CASE("store workload: every rank gets the sum, whatever the count, again and again", "[colbench]") {
  for (const int ranks : {1, 2, 4, 5}) {
    for (const std::size_t count : {1u, 3u, 70'001u}) {
      const auto outcomes = run_threads(ranks, [&](int rank, Context& context) {
        const auto workload = make_store_workload(setup_of(context, rank, ranks, count));
        for (std::uint64_t iteration = 0; iteration < 3; ++iteration) {
          workload->prepare(iteration);
          workload->run();
          const Check check = workload->check(iteration, false);
          expect(check.wrong == 0, check.first);
          expect(check.elements == count);
        }
      });
      INFO(ranks << " ranks, " << count << " elements\n" << col::test::show(outcomes));
      CHECK(col::test::all_good(outcomes));
    }
  }
}

TEST_CASE("store workload: the sampled check looks at new values in every iteration", "[colbench]") {
  const auto outcomes = run_threads(3, [&](int rank, Context& context) {
    WorkloadSetup setup = setup_of(context, rank, 3, 1000);
    setup.check_mode = "sample";
    const auto workload = make_store_workload(setup);
    workload->prepare(0);
    workload->run();
    const Check good = workload->check(0, false);
    expect(good.wrong == 0, good.first);
    expect(good.elements >= 2 && good.elements <= 16);
    const Check whole = workload->check(0, true);
    expect(whole.wrong == 0, whole.first);
    expect(whole.elements >= 1000);
    // An operation that does nothing.
    workload->prepare(1);
    const Check stale = workload->check(1, false);
    expect(stale.wrong == stale.elements, "stale data went unnoticed");
    expect(stale.first.find("operation 1") != std::string::npos, stale.first);
  });
  INFO(col::test::show(outcomes));
  CHECK(col::test::all_good(outcomes));
}

TEST_CASE("store workload: when a worker goes away the others are told who it was", "[colbench]") {
  const auto outcomes = run_threads(4, [&](int rank, Context& context) {
    const auto workload = make_store_workload(setup_of(context, rank, 4, 1000));
    workload->prepare(0);
    workload->run();
    context.group("default").barrier();  // until all have the first sum
    if (rank == 2) return;               // and with it its connections
    const auto error = error_of_call([&] {
      workload->prepare(1);
      workload->run();
    });
    expect(error.has_value(), "the operation worked without rank 2");
    expect(error->code() == ErrorCode::peer_lost, error->what());
    expect(error->rank() == 2, error->what());
  });
  INFO(col::test::show(outcomes));
  CHECK(col::test::all_good(outcomes));
  for (const auto& outcome : outcomes) CHECK(outcome.seconds < 10);
}

TEST_CASE("store workload: when worker 0 goes away the others notice", "[colbench]") {
  const auto outcomes = run_threads(3, [&](int rank, Context& context) {
    auto workload = make_store_workload(setup_of(context, rank, 3, 1000));
    if (rank == 0) {
      workload->prepare(0);
      // It leaves when the others have called, and waits until they have gone.
      workload.reset();
      return;
    }
    const auto error = error_of_call([&] {
      workload->prepare(0);
      workload->run();
    });
    expect(error.has_value(), "the operation worked without rank 0");
    expect(error->code() == ErrorCode::peer_lost, error->what());
    expect(error->rank() == 0, error->what());
  });
  INFO(col::test::show(outcomes));
  CHECK(col::test::all_good(outcomes));
  for (const auto& outcome : outcomes) CHECK(outcome.seconds < 10);
}

TEST_CASE("store workload: a worker that never calls is named when time is up", "[colbench]") {
  std::atomic<bool> ended = false;
  const auto outcomes = run_threads(3, [&](int rank, Context& context) {
    WorkloadSetup setup = setup_of(context, rank, 3, 10);
    setup.timeout = rank == 0 ? Duration(1s) : Duration(20s);
    const auto workload = make_store_workload(setup);
    workload->prepare(0);
    if (rank == 1) {
      ended.wait(false);
      return;
    }
    const auto error = error_of_call([&] { workload->run(); });
    if (rank == 0) {
      ended = true;
      ended.notify_all();
    }
    expect(error.has_value(), "the operation worked without rank 1");
    expect(error->code() == ErrorCode::timeout, error->what());
    expect(error->rank() == 1, error->what());
  });
  INFO(col::test::show(outcomes));
  CHECK(col::test::all_good(outcomes));
}
