// Gloo's own collectives, called in the way that is safe with each of them.
#pragma once

#include <cstddef>
#include <memory>
#include <span>

#include <col/request.hpp>

#include "backend/gloo/transport.hpp"

namespace col::gloo_backend {

// Memory that is kept between calls, because allocating megabytes costs more than filling them.
class Scratch {
 public:
  // At least `bytes` bytes of unspecified content, aligned for every element type; valid until the next call.
  std::byte* get(std::size_t bytes) {
    if (bytes > capacity_) {
      memory_.reset();
      capacity_ = 0;
      memory_ = std::make_unique_for_overwrite<std::byte[]>(bytes);
      capacity_ = bytes;
    }
    return memory_.get();
  }

 private:
  std::unique_ptr<std::byte[]> memory_;
  std::size_t capacity_ = 0;
};

// Rules for all of them: the group layer has checked the request. Inputs are only read. Outputs of ranks that get no
// result are not touched. If there is nothing to move, all ranks still meet (Gloo would divide by zero, or return at
// once).
class Native {
 public:
  explicit Native(std::shared_ptr<Mesh> mesh) : mesh_(std::move(mesh)) {}

  static std::span<const NativeEntry> entries();
  void run(const Request& request);
  // Gives up the mesh without releasing it; for the destructor in a forked process.
  void forget();

 private:
  struct Row;
  static const Row kRows[];

  void allreduce(const Request& request);
  void reduce(const Request& request);
  void fold_in_rank_order(const Request& request, const void* all, void* out) const;
  const void* prepare(const Request& request, DType type, void* work) const;
  void finish(const Request& request, DType type, void* work) const;

  void broadcast(const Request& request);
  void allgather(const Request& request);
  void allgather_into(const Request& request, void* out);
  void allgatherv(const Request& request);
  void gather(const Request& request);
  void gather_into(const Request& request, void* out);
  void scatter(const Request& request);
  void alltoall(const Request& request);
  void alltoallv(const Request& request);
  void barrier(const Request& request);

  std::size_t size() const { return static_cast<std::size_t>(mesh_->size); }
  std::size_t rank() const { return static_cast<std::size_t>(mesh_->rank); }
  bool is_root(const Request& request) const { return mesh_->rank == request.root; }

  std::shared_ptr<Mesh> mesh_;
  Scratch work_;  // a copy of the input that may be changed, or a result that is not in the caller's output
  Scratch all_;   // the inputs of all ranks
};

}  // namespace col::gloo_backend
