// An allreduce made from an object store and remote calls, as in programs without a collective library.
//
// It emulates what users of Ray write (ray.put, ray.get, a call to worker 0) with processes and Unix sockets of one
// host. It does not measure Ray. Every worker serialises its tensor (a header and a copy), puts it into the store (a
// copy into a socket, a copy out of it), and calls worker 0 with the object's id. Worker 0 gets each object in rank
// order, adds it up, puts the sum, and answers with its id. Every worker, worker 0 too, gets the sum and deserialises
// it (a copy). The store is a thread of rank 0's process, so copies and waits are as between processes, but rank 0
// shares its memory limit with it. The overhead of Ray (Python, scheduling, its RPC) is not there. On the other hand,
// the workers of a node map Ray's own store, which saves them two of the copies of a get.
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <new>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include <col/group.hpp>

#include "colbench/workload/buffer.hpp"
#include "colbench/workload/store_server.hpp"
#include "colbench/workload/store_wire.hpp"
#include "colbench/workload/values.hpp"
#include "colbench/workload/workload.hpp"

namespace col::colbench {
namespace {

// Before the elements of a tensor that was serialised; a cache line, so that they are aligned.
struct alignas(64) TensorHeader {
  std::uint64_t magic = 0x726f736e6574;
  std::uint64_t dtype = static_cast<std::uint64_t>(DType::float32);
  std::uint64_t count = 0;
};

void add_up(float* __restrict sum, const float* __restrict other, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) sum[i] += other[i];
}

void wait_readable(std::span<pollfd> entries, const Deadline& deadline) {
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline.remaining());
  ::poll(entries.data(), entries.size(), static_cast<int>(std::min<std::int64_t>(left.count(), 1000)));
}

std::string seconds_text(Duration duration) {
  return fmt::format("{:.1f} s", std::chrono::duration<double>(duration).count());
}

class StoreWorkload : public Workload {
 public:
  explicit StoreWorkload(const WorkloadSetup& setup);
  ~StoreWorkload() override;

  void prepare(std::uint64_t iteration) override;
  void run() override;
  Check check(std::uint64_t iteration, bool whole) override {
    Check check{.mode = check_mode_};
    if (check_mode_ == "off") return check;
    const bool all = check_mode_ == "all";
    if (all || whole) {
      const std::size_t step = all ? 1 : std::max<std::size_t>(1, count_ / kSampledWhole);
      for (std::size_t index = 0; index < count_; index += step) look_at(index, iteration, check);
    }
    if (!all) {
      for (const std::size_t index : sampled_) look_at(index, iteration, check);
    }
    return check;
  }

 private:
  void set_up();
  void accept_workers(const Listener& listener, const Deadline& deadline);

  void run_rank(const Deadline& deadline) {
    const std::uint64_t own = new_object();
    serialise(input());
    put(own, 1, deadline);
    std::uint64_t sum = 0;
    if (rank_ == 0) {
      sum = sum_up(own, deadline);
    } else {
      worker0_.send({.kind = Frame::Kind::call, .object = own}, {}, deadline);
      sum = worker0_.expect(Frame::Kind::answer, deadline).object;
    }
    get(sum, deadline);
    std::memcpy(output(), deserialised(), tensor_bytes());
  }

  std::uint64_t sum_up(std::uint64_t own, const Deadline& deadline);
  std::vector<std::uint64_t> take_calls(std::uint64_t own, const Deadline& deadline);
  void tell_why(const Error& error) noexcept;
  Error first_cause(const Error& error) noexcept;
  std::uint64_t new_object() { return static_cast<std::uint64_t>(rank_) << 48 | ++objects_; }
  void serialise(const float* tensor) {
    new (message_.data()) TensorHeader{.count = count_};
    std::memcpy(message_.data() + sizeof(TensorHeader), tensor, tensor_bytes());
  }

  const float* deserialised() const {
    TensorHeader header;
    std::memcpy(&header, message_.data(), sizeof header);
    const TensorHeader expected{.count = count_};
    if (header.magic != expected.magic || header.dtype != expected.dtype || header.count != count_)
      throw Error(ErrorCode::mismatch, fmt::format("an object of the store is no tensor of {} elements", count_));
    return reinterpret_cast<const float*>(message_.data() + sizeof(TensorHeader));
  }

  void put(std::uint64_t object, std::uint32_t readers, const Deadline& deadline) {
    const std::span<const std::byte> bytes = message();
    store_.send({.kind = Frame::Kind::put, .argument = readers, .object = object, .length = bytes.size()}, bytes,
                deadline);
    store_.expect(Frame::Kind::done, deadline);
  }

  void get(std::uint64_t object, const Deadline& deadline) {
    store_.send({.kind = Frame::Kind::get, .object = object}, {}, deadline);
    const Frame data = store_.expect(Frame::Kind::data, deadline);
    if (data.length != message_.size())
      throw Error(ErrorCode::mismatch,
                  fmt::format("object {:#x} has {} bytes, not {}", object, data.length, message_.size()));
    store_.receive(message(), deadline);
  }

  float* input() const { return reinterpret_cast<float*>(input_.data()); }
  float* output() const { return reinterpret_cast<float*>(output_.data()); }
  std::size_t tensor_bytes() const { return count_ * sizeof(float); }
  std::span<std::byte> message() const { return {message_.data(), message_.size()}; }
  // Elements that are not sampled keep the values of epoch 0, so that preparing costs little.
  std::uint64_t epoch_of(std::size_t index) const {
    if (check_mode_ == "all") return epoch_;
    return std::binary_search(sampled_.begin(), sampled_.end(), index) ? epoch_ : 0;
  }

  void look_at(std::size_t index, std::uint64_t iteration, Check& check) const {
    std::int64_t sum = 0;
    for (int rank = 0; rank < size_; ++rank) sum += values_.at(rank, 0, index, epoch_of(index));
    ++check.elements;
    const float found = output()[index];
    if (found == static_cast<float>(sum)) return;
    if (check.wrong++ == 0)
      check.first = fmt::format("rank {}, element {} of operation {}: {}, not {}", rank_, index, iteration, found, sum);
  }

  Group group_;
  const int rank_, size_;
  const std::size_t count_;
  const std::string check_mode_;
  const Duration timeout_;
  const Values values_;
  PageBuffer input_, output_;
  PageBuffer message_;                   // a tensor in the form for sending and keeping
  std::unique_ptr<StoreServer> server_;  // rank 0
  Wire store_;
  Wire worker0_;               // others
  std::vector<Wire> workers_;  // rank 0: by rank, from 1
  std::uint64_t objects_ = 0;
  bool broken_ = false;
  std::uint64_t epoch_ = 0;           // of the samples; with "all", of everything
  std::vector<std::size_t> sampled_;  // ascending
};

StoreWorkload::StoreWorkload(const WorkloadSetup& setup)
    : group_(setup.group),
      rank_(group_.rank()),
      size_(group_.size()),
      count_(block_count(setup.spec, size_)),
      check_mode_(setup.check_mode),
      timeout_(setup.timeout),
      values_{.seed = setup.seed, .dtype = DType::float32, .op = ReduceOp::sum},
      input_(count_ * sizeof(float)),
      output_(count_ * sizeof(float)),
      message_(sizeof(TensorHeader) + count_ * sizeof(float)) {
  for (std::size_t i = 0; i < count_; ++i) input()[i] = static_cast<float>(values_.at(rank_, 0, i, 0));
  set_up();
}

StoreWorkload::~StoreWorkload() {
  store_.close();
  worker0_.close();
  workers_.clear();
  // A worker may still be getting the sum.
  if (server_ && !broken_) server_->wait_until_left(timeout_);
}

// ---- Setting up -----------------------------------------------------------------------------------------------------

void StoreWorkload::set_up() {
  const Options options{.timeout = timeout_};
  const Deadline deadline = Deadline::after(timeout_);
  Listener calls;
  std::string store_name, calls_name, why;
  if (rank_ == 0) {
    try {
      Listener store(size_);
      calls = Listener(size_);
      store_name = store.name();
      server_ = std::make_unique<StoreServer>(
          std::move(store), StoreLimits{.object_bytes = message_.size(), .clients = size_, .timeout = timeout_});
      calls_name = calls.name();
    } catch (const std::exception& error) {
      why = error.what();  // the others wait for a name, so they get this reason
    }
  }

  group_.broadcast_object(store_name, options);
  group_.broadcast_object(calls_name, options);
  if (calls_name.empty()) {
    throw Error(ErrorCode::io, fmt::format("rank 0 could not start the object store{}{}", why.empty() ? "" : ": ", why),
                {}, 0);
  }

  store_ = Wire::connect(store_name, "the object store of rank 0", 0);
  if (rank_ == 0) {
    accept_workers(calls, deadline);
  } else {
    worker0_ = Wire::connect(calls_name, "rank 0", 0);
    worker0_.send({.kind = Frame::Kind::hello, .argument = static_cast<std::uint32_t>(rank_)}, {}, deadline);
  }

  // When all are connected the listener of rank 0 may go.
  group_.barrier(options);
}

void StoreWorkload::accept_workers(const Listener& listener, const Deadline& deadline) {
  workers_.resize(static_cast<std::size_t>(size_));
  for (int missing = size_ - 1; missing > 0;) {
    pollfd entry{.fd = listener.fd(), .events = POLLIN, .revents = 0};
    wait_readable({&entry, 1}, deadline);
    tools::UniqueFd fd = listener.accept();
    if (!fd) {
      if (errno != EAGAIN && errno != EINTR)
        throw Error(ErrorCode::io, fmt::format("cannot accept a worker: {}", std::strerror(errno)));
      if (deadline.expired())
        throw Error(ErrorCode::timeout, fmt::format("{} of {} workers did not connect within {}", missing, size_ - 1,
                                                    seconds_text(deadline.budget())));
      continue;
    }
    Wire wire(std::move(fd), "a worker", -1);
    const Frame hello = wire.expect(Frame::Kind::hello, deadline);
    const auto rank = static_cast<std::size_t>(hello.argument);
    if (rank == 0 || rank >= workers_.size() || workers_[rank].fd() >= 0)
      throw Error(ErrorCode::internal, fmt::format("a worker says that it is rank {}", rank));
    workers_[rank] = std::move(wire).renamed(fmt::format("rank {}", rank), static_cast<int>(rank));
    --missing;
  }
}

// ---- The operation --------------------------------------------------------------------------------------------------

void StoreWorkload::run() {
  try {
    run_rank(Deadline::after(timeout_));
  } catch (const Error& error) {
    broken_ = true;
    tell_why(error);
    const Error cause = rank_ == 0 ? error : first_cause(error);
    // A rank that waits for this one must not wait until its deadline.
    store_.close();
    worker0_.close();
    workers_.clear();
    throw cause;
  }
}

// Worker 0's part between its own put and its own get. Returns the sum's id.
std::uint64_t StoreWorkload::sum_up(std::uint64_t own, const Deadline& deadline) {
  const std::vector<std::uint64_t> objects = take_calls(own, deadline);
  for (std::size_t rank = 0; rank < objects.size(); ++rank) {
    get(objects[rank], deadline);
    const float* tensor = deserialised();
    if (rank == 0) {
      std::memcpy(output(), tensor, tensor_bytes());
    } else {
      add_up(output(), tensor, count_);
    }
  }

  const std::uint64_t sum = new_object();
  serialise(output());
  put(sum, static_cast<std::uint32_t>(size_), deadline);
  for (int rank = 1; rank < size_; ++rank)
    workers_[static_cast<std::size_t>(rank)].send({.kind = Frame::Kind::answer, .object = sum}, {}, deadline);
  return sum;
}

std::vector<std::uint64_t> StoreWorkload::take_calls(std::uint64_t own, const Deadline& deadline) {
  std::vector<std::uint64_t> objects(static_cast<std::size_t>(size_), own);
  std::vector<int> waited_for;
  for (int rank = 1; rank < size_; ++rank) waited_for.push_back(rank);
  while (!waited_for.empty()) {
    std::vector<pollfd> entries;
    for (const int rank : waited_for)
      entries.push_back({.fd = workers_[static_cast<std::size_t>(rank)].fd(), .events = POLLIN, .revents = 0});
    wait_readable(entries, deadline);
    std::size_t entry = 0;
    std::erase_if(waited_for, [&](int rank) {
      if (entries[entry++].revents == 0) return false;
      objects[static_cast<std::size_t>(rank)] =
          workers_[static_cast<std::size_t>(rank)].expect(Frame::Kind::call, deadline).object;
      return true;
    });
    if (!waited_for.empty() && deadline.expired())
      throw Error(
          ErrorCode::timeout,
          fmt::format("rank {} has not called within {}; is it stopped?", waited_for.front(), seconds_text(timeout_)),
          {}, waited_for.front());
  }

  return objects;
}

// The workers that wait for an answer would only see that rank 0 is gone.
void StoreWorkload::tell_why(const Error& error) noexcept {
  for (std::size_t rank = 1; rank < workers_.size(); ++rank) {
    try {
      const std::string& text = error.message();
      workers_[rank].send(failed_frame(error.code(), error.rank(), text), std::as_bytes(std::span(text)),
                          Deadline::after(std::chrono::milliseconds(10)));
    } catch (const Error&) {
      // It is the one that has gone.
    }
  }
}

// Rank 0 says why it goes before it takes the store with it.
Error StoreWorkload::first_cause(const Error& error) noexcept {
  try {
    if (error.code() == ErrorCode::peer_lost)
      worker0_.expect(Frame::Kind::answer, Deadline::after(std::chrono::milliseconds(100)));
  } catch (const Error& other) {
    if (other.rank() > 0) return other;
  }

  return error;
}

// ---- Values and checks ----------------------------------------------------------------------------------------------

void StoreWorkload::prepare(std::uint64_t iteration) {
  if (check_mode_ == "off") return;
  // Back to what they were.
  for (const std::size_t index : std::exchange(sampled_, {}))
    input()[index] = static_cast<float>(values_.at(rank_, 0, index, 0));
  epoch_ = iteration + 1;  // epoch 0 belongs to the rest
  constexpr float kNoSum = -1;
  if (check_mode_ == "all") {
    for (std::size_t i = 0; i < count_; ++i) input()[i] = static_cast<float>(values_.at(rank_, 0, i, epoch_));
    std::fill_n(output(), count_, kNoSum);
    return;
  }

  sampled_ = sampled_elements(values_.seed, iteration, count_);
  for (const std::size_t index : sampled_) {
    input()[index] = static_cast<float>(values_.at(rank_, 0, index, epoch_));
    output()[index] = kNoSum;
  }
}

}  // namespace

std::unique_ptr<Workload> make_store_workload(const WorkloadSetup& setup) {
  return std::make_unique<StoreWorkload>(setup);
}

}  // namespace col::colbench
