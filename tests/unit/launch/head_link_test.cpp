#include "launch/nodes/head_link.hpp"

#include <csignal>
#include <random>
#include <string>
#include <string_view>

#include "launch/nodes/input_frames.hpp"
#include "launch/nodes/input_hosts.hpp"
#include "unit/launch/output_support.hpp"

using namespace col::launch;
using namespace col::test;

namespace {

std::string frame(std::string_view bytes) {
  std::string text(input_frames::kHeadBytes, '\0');
  input_frames::put_head(text, bytes.size());
  return text.append(bytes);
}

// A launcher's end of the way, and the one whose launcher starts it.
struct Way {
  explicit Way(const std::string& begun = {}) : link(from_head.read.get(), begun, true) {
    ::signal(SIGPIPE, SIG_IGN);
    set_non_blocking(from_head.write);
    ranks.reset(::fcntl(link.ranks_end(), F_DUPFD_CLOEXEC, 3));
    set_non_blocking(ranks);
    const UniqueFd null(::open("/dev/null", O_RDONLY | O_CLOEXEC));
    REQUIRE(::dup3(null.get(), link.ranks_end(), O_CLOEXEC) >= 0);
  }
  // Acts on what can be done at once. False when the other launcher is found gone.
  bool work() {
    pollfd events[2];
    for (;;) {
      link.prepare(events[0], events[1]);
      if (::poll(events, 2, 0) == 0) return true;
      if (!link.on_polled(events[0], events[1])) return false;
    }
  }
  std::size_t send(std::string_view text) {
    const ssize_t written = ::write(from_head.write.get(), text.data(), text.size());
    return written < 0 ? 0 : static_cast<std::size_t>(written);
  }
  // What the ranks can read now.
  std::string take() {
    std::string text(1 << 20, '\0');
    const ssize_t length = ::read(ranks.get(), text.data(), text.size());
    at_end = length == 0;
    return text.substr(0, length < 0 ? 0 : static_cast<std::size_t>(length));
  }

  Pipe from_head = make_pipe();
  HeadLink link;
  UniqueFd ranks;
  bool at_end = false;
};

HostSpec host(const char* name, int slots, int node_rank) {
  return {.name = name, .slots = slots, .node_rank = node_rank};
}

}  // namespace

TEST_CASE("head link: ranks read what is in the frames, however these are cut, and then the end", "[launch]") {
  const unsigned seed = std::random_device{}();
  CAPTURE(seed);
  std::mt19937 random(seed);
  const auto below = [&](std::size_t limit) { return random() % limit; };
  std::string bytes, frames;
  while (bytes.size() < 1'000'000) {
    std::string piece(1 + below(input_frames::kMaxBytes), '\0');
    for (char& byte : piece) byte = static_cast<char>(random());
    bytes += piece;
    frames += frame(piece);
  }
  frames += frame("");
  std::size_t sent = below(100'000);
  Way way(frames.substr(0, sent));
  std::string got;
  while (!way.at_end) {
    sent += way.send(std::string_view(frames).substr(sent, 1 + below(100'000)));
    REQUIRE(way.work());
    got += way.take();
  }
  CHECK(sent == frames.size());
  CHECK(got == bytes);
  CHECK(way.work());  // the input's end is not the other launcher's
  way.from_head.write.reset();
  CHECK_FALSE(way.work());
}

TEST_CASE("head link: while ranks do not read no more is taken, and the end of the way is seen", "[launch]") {
  Way way;
  const std::string full = frame(std::string(input_frames::kMaxBytes, 'x'));
  std::size_t sent = 0, all = 0;
  do {
    sent = way.send(full.substr(all % full.size()));
    all += sent;
    REQUIRE(way.work());
  } while (sent > 0);
  CHECK(all < 1'000'000);
  way.from_head.write.reset();
  CHECK_FALSE(way.work());
}

TEST_CASE("head link: what nobody reads any more is thrown away", "[launch]") {
  Way way;
  const std::string some = frame(std::string(30'000, 'x'));
  for (int count = 0; count < 5; ++count) {
    REQUIRE(way.send(some) == some.size());
    REQUIRE(way.work());
  }
  way.ranks.reset();
  for (int count = 0; count < 100; ++count) {
    REQUIRE(way.work());
    REQUIRE(way.send(some) == some.size());
  }
  CHECK(way.work());
}

TEST_CASE("head link: what is no frame ends it", "[launch]") {
  Way way;
  way.send("no frame");
  CHECK_FALSE(way.work());
}

TEST_CASE("input hosts: ranks are dealt out in the order of the list", "[launch]") {
  JobSpec spec;
  spec.programs = {{.command = {"p"}, .ranks = 2}};
  Rendezvous meeting;
  meeting.node_rank = 1;  // ranks 3 and 4
  meeting.remotes = {host("a", 3, 0), host("b", 1, 2), host("c", 2, 3)};
  const auto readers = [&] {
    std::string names = reads_input_here(spec, meeting) ? "here" : "";
    for (const HostSpec& remote : meeting.remotes) names += reads_input(spec, meeting, remote) ? remote.name : "";
    return names;
  };
  const std::string by_rank[] = {"a", "a", "a", "here", "here", "b", "c", "c", ""};
  for (int rank = 0; rank < 9; ++rank) {
    spec.input = {.to = InputSpec::To::rank, .rank = rank};
    CHECK(readers() == by_rank[rank]);
  }
  spec.input = {.to = InputSpec::To::all};
  CHECK(readers() == "hereabc");
  spec.stdin_fd = -1;
  CHECK(readers().empty());
  spec.stdin_fd = 0;
  spec.input = {.to = InputSpec::To::none};
  CHECK(readers().empty());
  // This host is none of those in the list.
  meeting.node_rank = -1;
  spec.programs.front().ranks = 0;
  spec.input = {.to = InputSpec::To::rank, .rank = 3};
  CHECK(readers() == "b");
}
