// COL_STORE names a TCP port at which a stranger listens, who accepts and never says a word: a clean error on every
// rank within the timeout.
#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <cerrno>
#include <system_error>

#include <fmt/format.h>

#include <col/store.hpp>

#include "colcheck/engine/mix.hpp"
#include "colcheck/faults/drill.hpp"
#include "colcheck/faults/judge.hpp"
#include "colcheck/properties/list.hpp"

namespace col::colcheck {
namespace {

constexpr Duration kTimeout = std::chrono::seconds(1);
constexpr double kTimeoutSeconds = 1, kEpsilonSeconds = 1;

// The kernel accepts for it; nobody ever reads.
class Stranger {
 public:
  Stranger() : socket_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t length = sizeof address;
    auto* const generic = reinterpret_cast<sockaddr*>(&address);
    constexpr int kBacklog = 64;
    if (!socket_ || ::bind(socket_.get(), generic, length) != 0 || ::listen(socket_.get(), kBacklog) != 0 ||
        ::getsockname(socket_.get(), generic, &length) != 0)
      throw std::system_error(errno, std::generic_category(), "cannot listen on 127.0.0.1");
    port_ = ntohs(address.sin_port);
  }
  int port() const { return port_; }

 private:
  tools::UniqueFd socket_;
  int port_ = 0;
};

void cases(const Selection& selection, std::vector<Case>& all) {
  const std::vector<int> sizes = drill_ranks(selection);
  for (const std::string& backend : selection.backends) {
    if (sizes.empty()) continue;
    Case c;
    c.property = "taken_port";
    c.backend = backend;
    c.seed = mix(selection.seed, all.size());
    c.ranks = sizes.front();
    c.primitive = Primitive::barrier;
    all.push_back(c);
  }
}

Finding run(Rank& /*rank*/, const Case& c) {
  const Stranger stranger;
  Job job({.ranks = c.ranks,
           .arguments = {"--fault-rank", encode(Drill{.c = c})},
           .timeout = kTimeout,
           .environment = {"COL_STORE_TOKEN=" + make_store_token()},
           .store = fmt::format("tcp://127.0.0.1:{}", stranger.port())});
  const JobEnd end = job.finish();
  for (int rank = 0; rank < c.ranks; ++rank) {
    const std::string problem = problem_with_end(end, rank);
    if (!problem.empty()) return Finding::fail(problem);
    const Report& report = *end.ranks[static_cast<std::size_t>(rank)].report;
    const bool clean = report.code == to_string(ErrorCode::timeout) || report.code == to_string(ErrorCode::io) ||
                       report.code == to_string(ErrorCode::mismatch) ||
                       report.code == to_string(ErrorCode::unavailable);
    if (!clean) return Finding::fail(describe(end, rank) + "; expected timeout, io, mismatch or unavailable");
    if (report.seconds > kTimeoutSeconds + kEpsilonSeconds)
      return Finding::fail(describe(end, rank) + "; that is too late");
  }
  return Finding::of(problem_with_traces(end));
}

}  // namespace

const Property kFaultTakenPort{"taken_port", "a store's port that belongs to a silent stranger: a clean error in time",
                               Property::Kind::fault, &cases, &run};

}  // namespace col::colcheck
