#include "colcheck/properties/plain_call.hpp"

#include <algorithm>
#include <numeric>
#include <stdexcept>
#include <vector>

#include <fmt/format.h>

#include "colcheck/engine/call.hpp"
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
  if (c.primitive == Primitive::send_recv) return rotate(group, c, views, options);
  if (c.primitive == Primitive::recv_any) return collect(group, c, views, options);
  if (c.primitive == Primitive::batch) return exchange(group, c, views, options);
  group.sendrecv(views.in, destination_of(c, me, n), views.out, source_of(c, me, n), options);
}

}  // namespace

Options options_of(const Case& c, int rank) {
  return {.op = op_of(c, rank), .root = c.root, .algorithm = c.algorithm, .tag = c.tag};
}

void call_plainly(Group& group, const Case& c, const Views& views, const Options& options) {
  if (!collective_of(c.primitive)) return call_messages(group, c, views, options);
  group.run(call_of(c, views.in, views.out, views.in_counts, views.out_counts), options);
}

std::string difference(std::string_view what, std::span<const std::byte> got, std::span<const std::byte> want) {
  const auto [here, there] = std::mismatch(got.begin(), got.end(), want.begin());
  if (here == got.end()) return {};
  return fmt::format("byte {} of {} is {:#x}, not {:#x}", here - got.begin(), what, std::to_integer<unsigned>(*here),
                     std::to_integer<unsigned>(*there));
}

}  // namespace col::colcheck
