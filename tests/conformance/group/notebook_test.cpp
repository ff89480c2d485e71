// A course's notebook as a user of this library would write it: workers that send to each other and keep a log, and an
// allreduce by Ray, by bidirectional exchange (BDE) and on minimum spanning trees (MST). Its tests add ones, once, on 8
// workers; these give each rank its own numbers, go three rounds in place, and take numbers of ranks for which the
// notebook's own exchange pairs ranks that do not expect each other.
#include <algorithm>
#include <map>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include <col/col.hpp>

#include "conformance/group/worlds.hpp"

namespace col::test {
namespace {

// "send" or "recv", this rank, the other: an entry of the notebook's comm_log.
using Entry = std::tuple<std::string, int, int>;
using Log = std::vector<Entry>;

std::string text(const Log& log) {
  std::string all;
  for (const auto& [what, rank, peer] : log) all += fmt::format("[{} {} {}] ", what, rank, peer);
  return all;
}

class Worker {
 public:
  Worker(Group group, std::vector<float> message) : group_(std::move(group)), message_(std::move(message)) {}

  int rank() const { return group_.rank(); }
  int world_size() const { return group_.size(); }
  const std::vector<float>& message() const { return message_; }

  void do_send(int target) {
    group_.send(message_, target);
    log_.emplace_back("send", rank(), target);
  }
  std::vector<float> do_recv(int source) {
    std::vector<float> buffer(message_.size());
    group_.recv(buffer, source);
    log_.emplace_back("recv", rank(), source);
    return buffer;
  }
  std::vector<float> do_send_recv(int source, int target) {
    if (rank() == target) return do_recv(source);
    do_send(target);
    return message_;
  }

  // In place. What the library sent and received is the log.
  void all_reduce(std::string_view algorithm) {
    group_.record_trace(true);
    col::allreduce(message_, {.algorithm = algorithm});
    std::vector<TraceEntry> trace = group_.trace();
    group_.record_trace(false);
    // What a round receives may have been posted in the one before.
    std::stable_sort(trace.begin(), trace.end(), [](const auto& a, const auto& b) { return a.round < b.round; });
    log_.clear();
    for (const TraceEntry& entry : trace) {
      expect(entry.collective == Collective::allreduce);
      expect(algorithm.empty() || entry.algorithm == algorithm, std::string(entry.algorithm));
      if (entry.step.kind == Step::Kind::send || entry.step.kind == Step::Kind::recv)
        log_.emplace_back(to_string(entry.step.kind), rank(), entry.step.peer);
    }
  }

  Log take_log() { return std::exchange(log_, {}); }

 private:
  Group group_;
  std::vector<float> message_;
  Log log_;
};

// ---- What the notebook's own code would log

void notebook_bde(int rank, int left, int right, Log& log) {
  if (left == right) return;
  const int size = right - left + 1, middle = (left + right) / 2;
  const bool is_lower = rank <= middle;
  const int partner = is_lower ? rank + size / 2 : rank - size / 2;
  for (const char* what : {"send", "recv"}) log.emplace_back(what, rank, partner);
  if (!is_lower) std::swap(log.back(), log[log.size() - 2]);
  is_lower ? notebook_bde(rank, left, middle, log) : notebook_bde(rank, middle + 1, right, log);
}

// The half that `rank` is in, and the root of that half: `root` itself, or the other end.
struct Half {
  int root, left, right;
};
Half half_of(int rank, int root, int other, int left, int right) {
  const int middle = (left + right) / 2;
  const bool is_lower = rank <= middle;
  return {is_lower == (root <= middle) ? root : other, is_lower ? left : middle + 1, is_lower ? middle : right};
}

void notebook_broadcast(int rank, int root, int left, int right, Log& log) {
  if (left == right) return;
  const int other = root <= (left + right) / 2 ? right : left;
  if (rank == root) log.emplace_back("send", rank, other);
  if (rank == other) log.emplace_back("recv", rank, root);
  const Half half = half_of(rank, root, other, left, right);
  notebook_broadcast(rank, half.root, half.left, half.right, log);
}

void notebook_reduce(int rank, int root, int left, int right, Log& log) {
  if (left == right) return;
  const int other = root <= (left + right) / 2 ? right : left;
  const Half half = half_of(rank, root, other, left, right);
  notebook_reduce(rank, half.root, half.left, half.right, log);
  if (rank == other) log.emplace_back("send", rank, root);
  if (rank == root) log.emplace_back("recv", rank, other);
}

Log notebook_log(std::string_view algorithm, int rank, int ranks) {
  Log log;
  if (algorithm == "mst") {
    notebook_reduce(rank, 0, 0, ranks - 1, log);
    notebook_broadcast(rank, 0, 0, ranks - 1, log);
  } else {
    notebook_bde(rank, 0, ranks - 1, log);
  }
  return log;
}

// Whether every send of the notebook's code has its recv.
bool pairs(std::string_view algorithm, int ranks) {
  std::map<std::pair<int, int>, int> open;
  for (int r = 0; r < ranks; ++r) {
    for (const auto& [what, rank, peer] : notebook_log(algorithm, r, ranks))
      what == "send" ? ++open[{rank, peer}] : --open[{peer, rank}];
  }
  return std::all_of(open.begin(), open.end(), [](const auto& entry) { return entry.second == 0; });
}

// Ours exchanges with the nearest rank first, the notebook's with the farthest: exchange by exchange, the other way
// round. With full duplex there is no first and second in an exchange.
Log as_exchanges(Log log, bool full_duplex) {
  Log turned;
  for (std::size_t i = log.size(); i >= 2; i -= 2) {
    if (full_duplex)
      std::sort(log.begin() + static_cast<std::ptrdiff_t>(i) - 2, log.begin() + static_cast<std::ptrdiff_t>(i));
    turned.push_back(log[i - 2]);
    turned.push_back(log[i - 1]);
  }
  return turned;
}

void expect_log(const Log& log, std::string_view algorithm, int rank, int ranks) {
  const bool is_exchange = algorithm != "mst";
  if (is_exchange && !pairs(algorithm, ranks)) return;  // the notebook's code would not end
  const bool full_duplex = algorithm == "bde";
  Log want = notebook_log(algorithm, rank, ranks), got = log;
  if (is_exchange) want = as_exchanges(std::move(want), full_duplex);
  if (is_exchange) got = as_exchanges(as_exchanges(std::move(got), full_duplex), false);
  expect(got == want, fmt::format("{} logged {} and not {}", algorithm, text(got), text(want)));
}

// ---- The notebook's tests

std::vector<float> message_of(int rank, std::size_t length) {
  std::vector<float> message(length);
  for (std::size_t i = 0; i < length; ++i) message[i] = static_cast<float>((rank + 1) * 10 + static_cast<int>(i));
  return message;
}

void test_p2p(Group& group, Context&) {
  for (const auto& [source, target] : {std::pair{0, 1}, std::pair{1, 0}, std::pair{group.size() - 1, 0}}) {
    if (group.rank() != source && group.rank() != target) continue;
    Worker worker(group, message_of(group.rank(), 20));
    expect(worker.do_send_recv(source, target) == message_of(source, 20));
    const bool sends = group.rank() == source;
    expect(worker.take_log() == Log{{sends ? "send" : "recv", group.rank(), sends ? target : source}});
  }
}

void test_all_reduces(Group& group, Context&) {
  const int n = group.size();
  for (const std::size_t length : {5u, 20u, 1000u}) {
    std::vector<float> sum(length);
    for (int r = 0; r < n; ++r) {
      const auto message = message_of(r, length);
      for (std::size_t i = 0; i < length; ++i) sum[i] += message[i];
    }
    for (const std::string_view algorithm : {"", "bde", "bde_half", "mst"}) {
      Worker worker(group, message_of(group.rank(), length));
      for (int round = 0; round < 3; ++round) {
        worker.all_reduce(algorithm);
        // From the second round on, all ranks begin with the same numbers.
        std::vector<float> want = sum;
        for (float& value : want) value *= static_cast<float>(round == 0 ? 1 : round == 1 ? n : n * n);
        expect(worker.message() == want, fmt::format("{} with {} ranks, round {}", algorithm, n, round));
        if (!algorithm.empty()) expect_log(worker.take_log(), algorithm, group.rank(), n);
      }
    }
  }
}

TEST_CASE("notebook: its exchange pairs all ranks of 2, 4 and 8, and not those of 3, 6 and 7", "[group]") {
  for (const int n : {2, 4, 8}) CHECK(pairs("bde", n));
  for (const int n : {3, 6, 7}) CHECK(!pairs("bde", n));
  for (int n = 1; n < 20; ++n) CHECK(pairs("mst", n));
}

TEST_CASE("notebook: test_p2p", "[group]") {
  for (const int n : {2, 8}) threads_on_each_backend(n, test_p2p);
  processes_on_each_backend(3, test_p2p);
}

TEST_CASE("notebook: test_ray_all_reduce, test_bde_all_reduce and test_mst_all_reduce, as threads", "[group]") {
  for (const int n : {2, 3, 4, 6, 7, 8}) threads_on_each_backend(n, test_all_reduces);
}

TEST_CASE("notebook: test_ray_all_reduce, test_bde_all_reduce and test_mst_all_reduce, as processes", "[group]") {
  for (const int n : {3, 6}) processes_on_each_backend(n, test_all_reduces);
}

}  // namespace
}  // namespace col::test
