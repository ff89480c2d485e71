// An allreduce made from an object store and remote calls, as in programs without a collective library.
//
// It emulates what users of Ray write (ray.put, ray.get, a call to worker 0) with processes and Unix sockets of one
// host. It does not measure Ray. Every worker serialises its tensor (a header and a copy), puts it into the store (a
// copy into a socket, a copy out of it), and calls worker 0 with the object's id. Worker 0 gets each object in rank
// order, adds it up, puts the sum, and answers with its id. Every worker, worker 0 too, gets the sum and deserialises
// it (a copy). The store is a thread of rank 0's process, so copies and waits are as between processes, but rank 0
// shares its memory limit with it. The overhead of Ray (Python, scheduling, its RPC) is not there. On the other hand,
// the workers of a node map Ray's own store, which saves them two of the copies of a get.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <col/group.hpp>

#include "colbench/rank/buffer.hpp"
#include "colbench/rank/values.hpp"
#include "colbench/rank/workload.hpp"
#include "colbench/suite/store_server.hpp"
#include "colbench/suite/store_wire.hpp"

namespace col::colbench {

struct StoreSetup {
  Group group = {};                             // of all ranks
  std::size_t count = 0;                        // float32 elements; at least one
  std::uint64_t seed = 0;                       // of the values, as in Values
  std::string check_mode = "sample";            // "off", "sample", "all"
  Duration timeout = std::chrono::seconds(60);  // of one operation, and of the set-up
};

// Making one is collective: every rank of the group makes one of the same count. Destroying one is not collective. Rank
// 0's destructor waits until the others' are gone, for the timeout at most, and not at all after an error. After an
// error, it can only be destroyed.
//
// Errors: col::Error: timeout, peer_lost (with the rank that has gone), io, resource, internal.
class StoreWorkload : public Workload {
 public:
  explicit StoreWorkload(const StoreSetup& setup);
  ~StoreWorkload() override;

  void prepare(std::uint64_t iteration) override;
  void run() override;
  Check check(std::uint64_t iteration, bool whole) override;

 private:
  void set_up(const StoreSetup& setup);
  void accept_workers(const Listener& listener, const Deadline& deadline);

  void run_rank(const Deadline& deadline);
  std::uint64_t sum_up(std::uint64_t own, const Deadline& deadline);
  std::vector<std::uint64_t> take_calls(std::uint64_t own, const Deadline& deadline);
  void tell_why(const Error& error) noexcept;
  Error first_cause(const Error& error) noexcept;
  std::uint64_t new_object();
  void serialise(const float* tensor);
  const float* deserialised() const;
  void put(std::uint64_t object, std::uint32_t readers, const Deadline& deadline);
  void get(std::uint64_t object, const Deadline& deadline);

  float* input() const { return reinterpret_cast<float*>(input_.data()); }
  float* output() const { return reinterpret_cast<float*>(output_.data()); }
  std::size_t tensor_bytes() const { return count_ * sizeof(float); }
  std::span<std::byte> message() const { return {message_.data(), message_.size()}; }
  std::uint64_t epoch_of(std::size_t index) const;
  void choose_sample(std::uint64_t iteration);
  void look_at(std::size_t index, std::uint64_t iteration, Check& check) const;

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

std::unique_ptr<Workload> make_store_workload(const StoreSetup& setup);

}  // namespace col::colbench
