#include "backend/gloo/native.hpp"

#include <array>
#include <cstdint>
#include <numeric>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <gloo/allgather.h>
#include <gloo/allgatherv.h>
#include <gloo/alltoall.h>
#include <gloo/barrier.h>
#include <gloo/broadcast.h>
#include <gloo/gather.h>
#include <gloo/scatter.h>

#include "backend/gloo/native_support.hpp"
#include "backend/gloo/slots.hpp"
#include "core/hash.hpp"

namespace col::gloo_backend {
namespace {

bool has_element(const Op& /*op*/, DType dtype) noexcept {
  return has_element_of(size_of(dtype));
}

// What the packaged Gloo does. None of them is marked rounds_per_hop or drops_nan: the reduction functions are ours,
// and 16-bit floats travel as float32.
constexpr std::array kEntries = {
    NativeEntry{.collective = Collective::allreduce, .name = kRing, .reduces = &has_element},
    NativeEntry{.collective = Collective::allreduce, .name = kBcube, .reduces = &has_element},
    NativeEntry{.collective = Collective::reduce, .name = kRing, .reduces = &has_element},
    NativeEntry{Collective::broadcast, "gloo_binomial"},
    NativeEntry{Collective::allgather, kRing},
    NativeEntry{Collective::allgatherv, kRing},
    NativeEntry{Collective::gather, "gloo_linear"},
    NativeEntry{Collective::scatter, "gloo_linear"},
    NativeEntry{Collective::alltoall, "gloo_linear"},
    NativeEntry{Collective::alltoallv, "gloo_linear"},
    NativeEntry{Collective::barrier, "gloo_dissemination"},
};

std::size_t block_offset(std::span<const std::size_t> counts, std::size_t rank, DType dtype) {
  return std::accumulate(counts.begin(), counts.begin() + static_cast<std::ptrdiff_t>(rank), std::size_t{0}) *
         size_of(dtype);
}

}  // namespace

std::span<const NativeEntry> Native::entries() {
  return kEntries;
}

void Native::forget() {
  [[maybe_unused]] auto* const mesh = new std::shared_ptr<Mesh>(std::move(mesh_));
}

void Native::run(const Request& request) {
  switch (request.collective) {
    case Collective::allreduce:
      return allreduce(request);
    case Collective::reduce:
      return reduce(request);
    case Collective::broadcast:
      return broadcast(request);
    case Collective::allgather:
      return allgather(request, request.in.data, request.out.data);
    case Collective::allgatherv:
      return allgatherv(request);
    case Collective::gather:
      return gather(request, request.in.data, request.out.data);
    case Collective::scatter:
      return scatter(request);
    case Collective::alltoall:
      return alltoall(request);
    case Collective::alltoallv:
      return alltoallv(request);
    case Collective::barrier:
      return barrier(request);
    default:
      break;
  }
  throw Error(ErrorCode::unavailable, fmt::format("gloo has no {} of its own", to_string(request.collective)));
}

// ---- Moving
// ----------------------------------------------------------------------------------------------------------

void Native::broadcast(const Request& request) {
  if (request.out.empty()) return barrier(request);
  ::gloo::BroadcastOptions options(mesh_);
  options.setOutput<std::uint8_t>(buffer_of(*mesh_, request.out.data, request.out.bytes()));
  options.setRoot(request.root);
  options.setTag(collective_tag(request.fingerprint, request.out.bytes()));
  ::gloo::broadcast(options);
}

void Native::allgather(const Request& request, const void* in, void* out) {
  const std::size_t bytes = request.in.bytes();
  if (bytes == 0) return barrier(request);
  ::gloo::AllgatherOptions options(mesh_);
  // Without an input Gloo takes this rank's block of the output: the in-place form.
  if (in != bytes_at(out, rank() * bytes)) options.setInput<std::uint8_t>(buffer_of(*mesh_, in, bytes));
  options.setOutput<std::uint8_t>(buffer_of(*mesh_, out, size() * bytes));
  options.setTag(collective_tag(request.fingerprint, bytes));
  ::gloo::allgather(options);
}

void Native::allgatherv(const Request& request) {
  if (request.out.empty()) return barrier(request);
  const DType dtype = request.out.dtype;
  // All counts have to agree, or a block would be longer than the place for it.
  core::Hash counts_hash;
  for (const std::size_t count : request.out_counts) counts_hash.add(count);
  std::vector<std::size_t> bytes;
  for (const std::size_t count : request.out_counts) bytes.push_back(count * size_of(dtype));
  ::gloo::AllgathervOptions options(mesh_);
  if (request.in.data != bytes_at(request.out.data, block_offset(request.out_counts, rank(), dtype)))
    options.setInput<std::uint8_t>(buffer_of(*mesh_, request.in.data, request.in.bytes()));
  options.setOutput<std::uint8_t>(buffer_of(*mesh_, request.out.data, request.out.bytes()), std::move(bytes));
  options.setTag(collective_tag(request.fingerprint, counts_hash.value()));
  ::gloo::allgatherv(options);
}

void Native::gather(const Request& request, const void* in, void* out) {
  const std::size_t bytes = request.in.bytes();
  if (bytes == 0) return barrier(request);
  ::gloo::GatherOptions options(mesh_);
  options.setInput<std::uint8_t>(buffer_of(*mesh_, in, bytes));
  if (is_root(request)) options.setOutput<std::uint8_t>(buffer_of(*mesh_, out, size() * bytes));
  options.setRoot(request.root);
  options.setTag(collective_tag(request.fingerprint, bytes));
  ::gloo::gather(options);
}

void Native::scatter(const Request& request) {
  const std::size_t bytes = request.out.bytes();
  if (bytes == 0) return barrier(request);
  ::gloo::ScatterOptions options(mesh_);
  if (is_root(request)) {
    std::vector<Buffer> blocks;
    blocks.reserve(size());
    for (std::size_t r = 0; r < size(); ++r) {
      blocks.push_back(buffer_of(*mesh_, bytes_at(request.in.data, r * bytes), bytes));
    }
    options.setInputs<std::uint8_t>(std::move(blocks));
  }
  options.setOutput<std::uint8_t>(buffer_of(*mesh_, request.out.data, bytes));
  options.setRoot(request.root);
  options.setTag(collective_tag(request.fingerprint, bytes));
  ::gloo::scatter(options);
}

void Native::alltoall(const Request& request) {
  const std::size_t bytes = request.out.bytes();
  if (bytes == 0) return barrier(request);
  const void* in = request.in.data;
  if (in == request.out.data) {
    void* const saved = work_.get(bytes);
    copy(saved, in, bytes);
    in = saved;
  }
  ::gloo::AlltoallOptions options(mesh_);
  options.setInput<std::uint8_t>(buffer_of(*mesh_, in, bytes));
  options.setOutput<std::uint8_t>(buffer_of(*mesh_, request.out.data, bytes));
  options.setTag(collective_tag(request.fingerprint, bytes));
  ::gloo::alltoall(options);
}

// As Gloo does it, but each block in a slot of its length. Two ranks can disagree on a block that only they exchange,
// and Gloo would fill the receiver's block only in part, in silence. Empty blocks are sent too: so all ranks meet.
void Native::alltoallv(const Request& request) {
  const std::size_t element_bytes = size_of(request.out.dtype);
  const void* in = request.in.data;
  if (in != nullptr && in == request.out.data) {
    void* const saved = work_.get(request.in.bytes());
    copy(saved, in, request.in.bytes());
    in = saved;
  }
  const Buffer send = buffer_of(*mesh_, in, request.in.bytes());
  const Buffer recv = buffer_of(*mesh_, request.out.data, request.out.bytes());
  for (std::size_t distance = 1; distance < size(); ++distance) {
    const std::size_t source = (rank() + size() - distance) % size();
    const std::size_t bytes = request.out_counts[source] * element_bytes;
    recv->recv(static_cast<int>(source), message_slot(request.fingerprint, bytes),
               block_offset(request.out_counts, source, request.out.dtype), bytes);
  }
  for (std::size_t distance = 1; distance < size(); ++distance) {
    const std::size_t destination = (rank() + distance) % size();
    const std::size_t bytes = request.in_counts[destination] * element_bytes;
    send->send(static_cast<int>(destination), message_slot(request.fingerprint, bytes),
               block_offset(request.in_counts, destination, request.in.dtype), bytes);
  }
  copy(bytes_at(request.out.data, block_offset(request.out_counts, rank(), request.out.dtype)),
       bytes_at(in, block_offset(request.in_counts, rank(), request.in.dtype)),
       request.in_counts[rank()] * element_bytes);
  for (std::size_t i = 1; i < size(); ++i) {
    recv->waitRecv();
    send->waitSend();
  }
}

void Native::barrier(const Request& request) {
  ::gloo::BarrierOptions options(mesh_);
  options.setTag(collective_tag(request.fingerprint, 0));
  ::gloo::barrier(options);
}

}  // namespace col::gloo_backend
