// Whether other hosts live: what one connection tells, and that ranks which are only busy, or leave, are not taken for
// lost. A host that freezes and a link that is cut are for tests/system/nodes_faults.sh.
#include "backend/gloo/heartbeat.hpp"

#include <array>
#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <linux/tcp.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include "core/unique_fd.hpp"
#include "support/catch.hpp"
#include "unit/gloo/mesh.hpp"

namespace {

using namespace col;
using namespace col::test;
using namespace std::chrono_literals;
using gloo_backend::HeartbeatSpec;
using gloo_backend::HostFault;
using gloo_backend::PulseOf;

// Two ends of a TCP connection on this host.
struct Line {
  core::UniqueFd own, other;
  std::uint64_t written = 0, read = 0;
  PulseOf pulse = {};
  PulseOf::Time now{std::chrono::hours(1)};

  Line() {
    const core::UniqueFd listener(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof address;
    auto* const generic = reinterpret_cast<sockaddr*>(&address);
    REQUIRE(::bind(listener.get(), generic, size) == 0);
    REQUIRE(::listen(listener.get(), 1) == 0);
    REQUIRE(::getsockname(listener.get(), generic, &size) == 0);
    own.reset(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    REQUIRE(::connect(own.get(), generic, size) == 0);
    other.reset(::accept4(listener.get(), nullptr, nullptr, SOCK_CLOEXEC));
    REQUIRE(other);
  }
  void say() { written += static_cast<std::uint64_t>(::send(own.get(), "alive", 5, MSG_NOSIGNAL)); }
  std::optional<HostFault> look(const HeartbeatSpec& spec, Duration pause = {}) {
    return pulse.look(spec, now, pause, own.get(), read, written);
  }
  // Until the kernel has heard nothing for that long.
  void wait_for_silence(Duration time) const {
    for (tcp_info info{}; std::chrono::milliseconds(info.tcpi_last_ack_recv) <= time; ::usleep(1000)) {
      socklen_t size = sizeof info;
      REQUIRE(::getsockopt(own.get(), IPPROTO_TCP, TCP_INFO, &info, &size) == 0);
    }
  }
};

}  // namespace

TEST_CASE("gloo heartbeat: who has never said that it lives is not expected to say so", "[gloo]") {
  const HeartbeatSpec spec;
  Line line;
  line.say();
  CHECK_FALSE(line.look(spec));
  CHECK_FALSE(line.pulse.deadline(spec, line.now));
  line.now += std::chrono::hours(1);
  CHECK_FALSE(line.look(spec));
}

TEST_CASE(
    "gloo heartbeat: a silent host whose kernel answers is stopped, one whose kernel is silent, too, is lost sooner",
    "[gloo]") {
  // Whether the kernel's last answer is late counts by this machine's time, in which a busy one may stand still.
  const HeartbeatSpec spec{.host_timeout = 1h};
  Line line;
  line.pulse.hear(line.now);
  REQUIRE(line.pulse.deadline(spec, line.now) == line.now + spec.most_silence());
  SECTION("it answers") {
    line.say();
    line.now += spec.most_silence();
    CHECK_FALSE(line.look(spec));
    REQUIRE(line.pulse.deadline(spec, line.now) > line.now);
    line.now = *line.pulse.deadline(spec, line.now);
    line.say();
    CHECK(line.look(spec) == HostFault::stopped);
  }
  SECTION("it does not") {
    const HeartbeatSpec quick{.host_timeout = 500ms};
    line.now += quick.most_silence() - 1ns;
    CHECK_FALSE(line.look(quick));
    line.now += 1ns;
    line.wait_for_silence(quick.latest_answer());
    CHECK(line.look(quick) == HostFault::unreachable);
  }
  SECTION("anything that is read is a sign of life") {
    line.now += spec.most_silence() - 1ns;
    line.read += 1;
    CHECK_FALSE(line.look(spec));
    CHECK(*line.pulse.deadline(spec, line.now) > line.now);
  }
  SECTION("while this process stands still, nobody is silent") {
    line.now += std::chrono::hours(1);
    CHECK_FALSE(line.look(spec, std::chrono::hours(1)));
    CHECK(*line.pulse.deadline(spec, line.now) > line.now);
  }
  SECTION("what was heard when it went on does not count for the future") {
    line.now += std::chrono::hours(1);
    line.pulse.hear(line.now);
    CHECK_FALSE(line.look(spec, std::chrono::hours(1)));
    line.say();
    line.now += spec.most_silence();
    CHECK_FALSE(line.look(spec));
    line.now = *line.pulse.deadline(spec, line.now);
    line.say();
    CHECK(line.look(spec) == HostFault::stopped);
  }
}

TEST_CASE("gloo heartbeat: a rank that computes is not lost, and one that stays stands for its host when others leave",
          "[gloo]") {
  constexpr int kSize = 8;  // too many to be connected whole
  // The threads that say that a host lives share the processors with those that compute.
  const HeartbeatSpec spec{.host_timeout = 2s};
  const auto store = make_memory_store();
  require_well(run_each(kSize, [&](int rank) {
    auto channel =
        connect({.rank = rank, .size = kSize, .store = store, .hosts = {0, 0, 1, 1, 2, 2, 3, 3}, .heartbeat = spec});
    std::int32_t word = rank;
    const TensorView view{&word, 1, DType::int32};
    // The even ranks, which stand for their hosts, leave, but for the first one.
    if (rank != 0 && rank % 2 == 0) return;
    const auto end = std::chrono::steady_clock::now() + 2 * spec.host_timeout;
    while (std::chrono::steady_clock::now() < end) {
    }
    if (rank == 0) {
      for (int peer = 1; peer < kSize; peer += 2) {
        recv(*channel, peer, 1, view);
        expect(word == peer, "content");
        send(*channel, peer, 2, view);
      }
    } else {
      send(*channel, 0, 1, view);
      recv(*channel, 0, 2, view);
    }
  }));
}
