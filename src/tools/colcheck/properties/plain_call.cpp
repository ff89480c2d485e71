#include "colcheck/properties/plain_call.hpp"

#include <algorithm>
#include <numeric>
#include <stdexcept>
#include <vector>

#include <fmt/format.h>

#include "common/gpu.hpp"

namespace col::colcheck {
namespace {

Bytes bytes_of(TensorView view) {
  Bytes bytes(view.bytes());
  if (view.device.type == Device::Type::cuda)
    tools::copy_from_gpu(bytes, view.data, view.device.index);
  else if (!bytes.empty())
    std::copy_n(static_cast<const std::byte*>(view.data), bytes.size(), bytes.data());
  return bytes;
}

void set_bytes(TensorView view, const Bytes& bytes) {
  if (view.device.type == Device::Type::cuda)
    tools::copy_to_gpu(view.data, bytes, view.device.index);
  else if (!bytes.empty())
    std::copy_n(bytes.data(), bytes.size(), static_cast<std::byte*>(view.data));
}

// Blocking sends may wait for their receives: one rank of every cycle of the rotation receives first.
void rotate(Group& group, const Case& c, const Views& views, const Options& options) {
  const int n = group.size(), me = group.rank(), shift = shift_of(c, n);
  const bool receives_first = shift != 0 && me < std::gcd(shift, n);
  for (const bool receiving : {receives_first, !receives_first}) {
    if (receiving)
      group.recv(views.out, source_of(c, me, n), options);
    else
      group.send(views.in, destination_of(c, me, n), options);
  }
}

void collect(Group& group, const Case& c, const Views& views, const Options& options) {
  group.send(views.in, c.root, options);
  if (group.rank() != c.root) return;
  const auto size = static_cast<std::size_t>(group.size());
  const std::size_t count = views.out.count / size;
  std::vector<std::size_t> sources;
  for (std::size_t i = 0; i < size; ++i)
    sources.push_back(static_cast<std::size_t>(group.recv_any(views.out.slice(i * count, count), options)));
  std::vector<std::size_t> sorted = sources;
  std::sort(sorted.begin(), sorted.end());
  for (std::size_t r = 0; r < size; ++r) {
    if (sorted[r] != r) throw std::runtime_error("recv_any did not get one message from each rank");
  }
  std::vector<Bytes> arrived;
  for (std::size_t i = 0; i < size; ++i) arrived.push_back(bytes_of(views.out.slice(i * count, count)));
  for (std::size_t i = 0; i < size; ++i) set_bytes(views.out.slice(sources[i] * count, count), arrived[i]);
}

void exchange(Group& group, const Case& c, const Views& views, const Options& options) {
  const auto size = static_cast<std::size_t>(group.size());
  const std::size_t sent = views.in.count / size, received = views.out.count / size;
  std::vector<Message> messages;
  for (std::size_t r = 0; r < size; ++r) {
    messages.push_back(Message::recv(views.out.slice(r * received, received), static_cast<int>(r), c.tag));
    messages.push_back(Message::send(views.in.slice(r * sent, sent), static_cast<int>(r), c.tag));
  }
  group.batch(messages, options);
}

void call_messages(Group& group, const Case& c, const Views& views, const Options& options) {
  const int n = group.size(), me = group.rank();
  switch (c.primitive) {
    case Primitive::send_recv:
      return rotate(group, c, views, options);
    case Primitive::sendrecv:
      return group.sendrecv(views.in, destination_of(c, me, n), views.out, source_of(c, me, n), options);
    case Primitive::recv_any:
      return collect(group, c, views, options);
    default:
      return exchange(group, c, views, options);
  }
}

}  // namespace

Options options_of(const Case& c, int rank) {
  return {.op = op_of(c, rank), .root = c.root, .algorithm = c.algorithm, .tag = c.tag};
}

void call_plainly(Group& group, const Case& c, const Views& views, const Options& options) {
  const auto& [in, out, in_counts, out_counts] = views;
  switch (c.primitive) {
    case Primitive::allreduce:
      return group.allreduce(in, out, options);
    case Primitive::reduce:
      return group.reduce(in, out, options);
    case Primitive::scan:
      return group.scan(in, out, options);
    case Primitive::exscan:
      return group.exscan(in, out, options);
    case Primitive::reduce_scatter:
      return group.reduce_scatter(in, out, options);
    case Primitive::reduce_scatterv:
      return group.reduce_scatterv(in, out, in_counts, options);
    case Primitive::broadcast:
      return group.broadcast(out, options);
    case Primitive::allgather:
      return group.allgather(in, out, options);
    case Primitive::allgatherv:
      return group.allgatherv(in, out, out_counts, options);
    case Primitive::gather:
      return group.gather(in, out, options);
    case Primitive::gatherv:
      return group.gatherv(in, out, out_counts, options);
    case Primitive::scatter:
      return group.scatter(in, out, options);
    case Primitive::scatterv:
      return group.scatterv(in, in_counts, out, options);
    case Primitive::alltoall:
      return group.alltoall(in, out, options);
    case Primitive::alltoallv:
      return group.alltoallv(in, in_counts, out, out_counts, options);
    case Primitive::barrier:
      return group.barrier(options);
    default:
      return call_messages(group, c, views, options);
  }
}

std::string difference(std::string_view what, std::span<const std::byte> got, std::span<const std::byte> want) {
  const auto [here, there] = std::mismatch(got.begin(), got.end(), want.begin());
  if (here == got.end()) return {};
  return fmt::format("byte {} of {} is {:#x}, not {:#x}", here - got.begin(), what, std::to_integer<unsigned>(*here),
                     std::to_integer<unsigned>(*there));
}

}  // namespace col::colcheck
