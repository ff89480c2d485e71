#include "simulation/wide_call.hpp"

#include <array>
#include <chrono>
#include <exception>
#include <utility>

#include <fmt/format.h>

#include "core/clock/clock.hpp"
#include "core/clock/lock.hpp"
#include "simulation/fine_channel.hpp"

namespace col::test {
namespace {

using Kind = Step::Kind;

constexpr int kTimes = 3;         // that a call comes again
constexpr int kBesideRounds = 3;  // of messages of the second thread
constexpr Duration kGlance = std::chrono::milliseconds(1);

// Ended when its scope ends, however that does.
class SecondThread {
 public:
  template <class Body>
  explicit SecondThread(Body body) : thread_(std::move(body)) {}
  ~SecondThread() { thread_.join(); }
  SecondThread(const SecondThread&) = delete;
  SecondThread& operator=(const SecondThread&) = delete;

 private:
  core::Thread thread_;
};

}  // namespace

WideCall::WideCall(const Step& step, int number, const Group& group)
    : step_(step),
      number_(number),
      rank_(group.rank()),
      size_(group.size()),
      root_(step.root % group.size()),
      tag_(1000 + 2 * number) {}

void WideCall::run(Group& group, const std::function<void()>& waits_anew) {
  switch (step_.kind) {
    case Kind::any:
      return take_from_any(group);
    case Kind::own:
      return send_to_oneself(group);
    case Kind::batch:
      return exchange_batch(group);
    case Kind::object:
      return exchange_objects(group);
    case Kind::scope:
      return run_scope(group, waits_anew);
    case Kind::again:
      return run_again(group);
    case Kind::beside:
      return run_beside(group);
    default:
      return;
  }
}

int WideCall::waits() const {
  switch (step_.kind) {
    case Kind::any:
      return size_;
    case Kind::object:
      return 2;
    case Kind::again:
      return kTimes;
    case Kind::beside:
      return 12;  // each of the calls has a turn to wait for, and the other thread's messages come after
    default:
      return 1;
  }
}

// The data that one rank has for another one.
WideCall::Numbers WideCall::values(int from, int to, std::size_t count) const {
  Numbers numbers;
  for (std::size_t i = 0; i < count; ++i)
    numbers.push_back(100'000'000LL * (number_ + 1) + 1'000'000 * from + 10'000 * to +
                      static_cast<std::int64_t>(i % 997));
  return numbers;
}

WideCall::Numbers& WideCall::buffer(Numbers numbers) {
  return buffers_.emplace_back(std::move(numbers));
}

void WideCall::expect(const Numbers& got, const Numbers& wanted, const char* what) {
  if (got != wanted && problem_.empty()) problem_ = fmt::format("{} differs", what);
}

// By calls that block, or by some that are started before.
void WideCall::take_from_any(Group& group) {
  const Options options{.tag = tag_};
  if (rank_ != root_) return group.send(buffer(values(rank_, root_, step_.count)), root_, options);
  std::vector<bool> has_come(static_cast<std::size_t>(size_));
  const auto take = [&](int source, const Numbers& got) {
    if (source < 0 || source >= size_ || source == rank_ || has_come[static_cast<std::size_t>(source)])
      problem_ = fmt::format("a message is from {}", source);
    else
      expect(got, values(source, root_, step_.count), "a message from any rank");
    if (source >= 0 && source < size_) has_come[static_cast<std::size_t>(source)] = true;
  };
  std::vector<std::pair<Work, Numbers*>> started;
  for (int i = 1; i < size_; ++i) {
    Numbers& into = empty(step_.count);
    if (number_ % 2 == 0)
      take(group.recv_any(into, options), into);
    else
      started.emplace_back(group.irecv_any(into, options), &into);
  }
  for (auto& [work, into] : started) {
    work.wait();
    take(work.source(), *into);
  }
}

void WideCall::send_to_oneself(Group& group) {
  const Options options{.tag = tag_};
  Numbers& sent = buffer(values(rank_, rank_, step_.count));
  Numbers& into = empty(step_.count);
  if (number_ % 3 == 0) {
    Work receives = group.irecv(into, rank_, options);
    group.send(sent, rank_, options);
    receives.wait();
  } else {
    group.isend(sent, rank_, options).wait();
    if (number_ % 3 == 1)
      group.recv(into, rank_, options);
    else
      group.recv_any(into, options);
  }
  expect(into, sent, "a message to oneself");
}

void WideCall::exchange_batch(Group& group) {
  std::vector<Message> messages;
  std::vector<Numbers*> received;
  for (int rank = 0; rank < size_; ++rank) {
    received.push_back(&empty(step_.count));
    messages.push_back(Message::send(buffer(values(rank_, rank, step_.count)), rank, tag_));
    messages.push_back(Message::recv(*received.back(), rank, tag_));
  }
  if (number_ % 2 == 0)
    group.batch(messages);
  else
    group.ibatch(messages).wait();
  for (int rank = 0; rank < size_; ++rank)
    expect(*received[static_cast<std::size_t>(rank)], values(rank, rank_, step_.count), "a message of a batch");
}

std::string WideCall::text_of(int rank) const {
  return std::string((step_.count + static_cast<std::size_t>(37 * rank)) % 700, static_cast<char>('a' + rank));
}

void WideCall::exchange_objects(Group& group) {
  const Options options{.root = root_, .tag = tag_};
  const auto check = [&](const std::string& got, int from) {
    if (got != text_of(from)) problem_ = fmt::format("the object of rank {} is {} bytes long", from, got.size());
  };
  std::vector<std::string> all;
  switch (step_.collective) {
    case Collective::broadcast: {
      std::string object = rank_ == root_ ? text_of(root_) : "";
      group.broadcast_object(object, {.root = root_});
      return check(object, root_);
    }
    case Collective::allgather:
      all = group.allgather_object(text_of(rank_));
      break;
    case Collective::gather:
      all = group.gather_object(text_of(rank_), {.root = root_});
      if (rank_ != root_) return;
      break;
    case Collective::scatter: {
      for (int rank = 0; rank < size_ && rank_ == root_; ++rank) all.push_back(text_of(rank));
      return check(group.scatter_object(all, {.root = root_}), rank_);
    }
    default: {
      const int taker = (root_ + 1) % size_;
      if (taker == root_) return;
      if (rank_ == root_) group.send_object(text_of(root_), taker, {.tag = tag_});
      if (rank_ == taker) check(group.recv_object<std::string>(root_, {.tag = tag_}), root_);
      return;
    }
  }
  if (all.size() != static_cast<std::size_t>(size_)) problem_ = fmt::format("{} objects have come", all.size());
  for (int rank = 0; rank < static_cast<int>(all.size()); ++rank) check(all[static_cast<std::size_t>(rank)], rank);
}

// One in four is cancelled, by all ranks.
void WideCall::run_scope(Group& group, const std::function<void()>& waits_anew) {
  Numbers& summed = buffer(values(0, 0, step_.count));
  Numbers& told = buffer(rank_ == root_ ? values(root_, 1, step_.count) : Numbers(step_.count, -1));
  Numbers& gathered = empty(static_cast<std::size_t>(size_));
  Numbers& own = buffer({rank_});
  Coalescing scope = group.coalesce();
  (void)group.iallreduce(summed, summed, {.op = ReduceOp::max});
  Work telling = group.ibroadcast(told, {.root = root_});
  if (step_.collective == Collective::allreduce) (void)group.iallgather(own, gathered);
  if (number_ % 4 == 0) return scope.cancel();
  Work all = scope.end();  // with COL_CHECK=strict, it waits until all have compared the calls
  waits_anew();
  all.wait();
  telling.wait();
  expect(summed, values(0, 0, step_.count), "a reduction of a scope");
  expect(told, values(root_, 1, step_.count), "a broadcast of a scope");
}

void WideCall::run_again(Group& group) {
  const bool scatters = step_.collective == Collective::scatter;
  const std::size_t blocks = scatters && rank_ == root_ ? static_cast<std::size_t>(size_) : 0;
  Numbers& in = empty(blocks * step_.count);
  Numbers& out = empty(step_.count);
  Options options{.root = root_};
  if (step_.is_native) options.algorithm = kOwnAlgorithm;
  for (int time = 0; time < kTimes; ++time) {
    for (std::size_t i = 0; i < in.size(); ++i) in[i] = time + static_cast<std::int64_t>(i / step_.count);
    out.assign(step_.count, !scatters && rank_ == root_ ? time : -1);
    const Call call{.collective = step_.collective, .in = in, .out = out};
    if (step_.is_started)
      group.start(call, options).wait();
    else
      group.run(call, options);
    expect(out, Numbers(step_.count, scatters ? time + rank_ : time), "a call that comes again");
  }
}

// The other one passes messages around, and waits for a moment only as long as the first has calls to make, so that
// both have their turns. Then it waits like any other, and the library knows for whom.
void WideCall::run_beside(Group& group) {
  Numbers& own = buffer(values(rank_, 0, 16));
  Numbers& into = empty(16);
  Numbers& sum = buffer({rank_, 1});
  bool is_alone = false;  // of threads of which one runs at a time
  const auto pass_around = [&, group]() mutable {
    const int next = (rank_ + 1) % size_, before = (rank_ + size_ - 1) % size_;
    try {
      const Deadline deadline = Deadline::after(group.timeout());
      for (int round = 0; round < kBesideRounds && !deadline.expired(); ++round) {
        std::array works = {group.irecv(into, before, {.tag = tag_}), group.isend(own, next, {.tag = tag_})};
        bool have_ended = false;
        while (!have_ended && !is_alone && !deadline.expired()) {
          have_ended = wait_all(works, kGlance);
          core::yield();
        }
        if (!have_ended && is_alone) wait_all(works);
      }
    } catch (const std::exception&) {  // the first thread hears of it
    }
  };
  const SecondThread second(pass_around);
  group.barrier();
  group.allreduce(sum);
  expect(sum, {static_cast<std::int64_t>(size_) * (size_ - 1) / 2, size_}, "a sum beside messages");
  is_alone = true;
}

}  // namespace col::test
