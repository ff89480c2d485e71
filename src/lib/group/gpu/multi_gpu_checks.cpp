#include <algorithm>
#include <functional>
#include <limits>
#include <set>
#include <utility>

#include <fmt/format.h>

#include "group/gpu/multi_gpu.hpp"

namespace col::group {
namespace {

// One call while it is being checked.
struct CallCheck {
  std::string_view call;
  const Shape& shape;

  template <class... Args>
  [[noreturn]] void refuse(fmt::format_string<Args...> format, Args&&... args) const {
    throw Error(ErrorCode::invalid_argument,
                fmt::format("{}: {}", call, fmt::format(format, std::forward<Args>(args)...)), shape.group, shape.rank);
  }

  // Also an empty one has to say which GPU it is about.
  void tensor(ConstTensorView view, const std::string& role) const {
    if (view.device.type != Device::Type::cuda)
      refuse("{} is in host memory; pass tensors that are in memory of GPUs", role);
    check_tensor(view, fmt::format("{}: {}", call, role), shape);
  }

  void like(ConstTensorView view, const std::string& role, std::size_t count, ConstTensorView model) const {
    if (view.count != count || view.dtype != model.dtype)
      refuse("{} holds {} {}, but must hold {} {}; all tensors of a call are alike", role, view.count,
             to_string(view.dtype), count, to_string(model.dtype));
    if (view.device.index != model.device.index)
      refuse("{} is on GPU {}, but belongs to the tensor on GPU {}; what one GPU gathers or scatters is on it", role,
             view.device.index, model.device.index);
  }

  // What each GPU has one of.
  void tensors(const std::vector<ConstTensorView>& list) const {
    if (list.empty()) refuse("the list of tensors is empty; pass one tensor for each GPU of this rank");
    std::vector<std::pair<int, std::size_t>> users;
    for (std::size_t i = 0; i < list.size(); ++i) {
      tensor(list[i], fmt::format("tensor {}", i));
      if (list[i].count != list.front().count || list[i].dtype != list.front().dtype)
        refuse("tensor {} holds {} {}, tensor 0 {} {}; all tensors of a call are alike", i, list[i].count,
               to_string(list[i].dtype), list.front().count, to_string(list.front().dtype));
      users.emplace_back(list[i].device.index, i);
    }
    std::sort(users.begin(), users.end());
    for (std::size_t u = 1; u < users.size(); ++u) {
      if (users[u].first == users[u - 1].first)
        refuse("tensors {} and {} are both on GPU {}; each is on a GPU of its own", users[u - 1].second,
               users[u].second, users[u].first);
    }
  }
};

// The flat ranks.
std::size_t block_count(std::size_t gpus, const Shape& shape) {
  return gpus * static_cast<std::size_t>(shape.size);
}

void check_blocks(const CallCheck& check, const MultiGpuCall& call, const std::vector<ConstTensorView>& tensors) {
  const auto blocks = call.blocks();
  const std::size_t all = block_count(tensors.size(), check.shape);
  const char* const side = call.collective == Collective::allgather ? "output" : "input";
  const std::size_t given = call.lists ? call.list_lengths.size() : blocks.size();
  if (given != tensors.size())
    check.refuse("there are {} {}{}s for {} GPUs; pass one for each", given, call.lists ? "lists of " : "", side,
                 tensors.size());
  if (!call.lists) {
    if (tensors.front().count > std::numeric_limits<std::size_t>::max() / 16 / all)
      check.refuse("{} elements for each of {} GPUs do not fit into memory", tensors.front().count, all);
    for (std::size_t i = 0; i < blocks.size(); ++i) {
      const std::string role = fmt::format("{} {}", side, i);
      check.tensor(blocks[i], role);
      check.like(blocks[i], role, all * tensors[i].count, tensors[i]);
    }
    return;
  }
  std::size_t block = 0;
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    if (call.list_lengths[i] != all)
      check.refuse("the list of {}s {} has {} tensors; {} GPUs on each of {} ranks make {}", side, i,
                   call.list_lengths[i], tensors.size(), check.shape.size, all);
    for (std::size_t b = 0; b < all; ++b, ++block) {
      const std::string role = fmt::format("{} {} of GPU {}", side, b, i);
      check.tensor(blocks[block], role);
      check.like(blocks[block], role, tensors[i].count, tensors[i]);
    }
  }
}

// A GPU's tensor may be exactly its own block. It shares no memory with other tensors. Blocks that are written share no
// memory either.
void check_overlap(const CallCheck& check, const MultiGpuCall& call, const std::vector<ConstTensorView>& tensors) {
  const auto blocks = call.blocks();
  const std::size_t all = block_count(tensors.size(), check.shape);
  const std::size_t each = call.lists ? all : 1;
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    const ConstTensorView tensor = tensors[i];
    if (tensor.empty()) continue;
    const std::size_t own = static_cast<std::size_t>(check.shape.rank) * tensors.size() + i;
    std::vector<ConstTensorView> parts(blocks.begin() + static_cast<std::ptrdiff_t>(i * each),
                                       blocks.begin() + static_cast<std::ptrdiff_t>((i + 1) * each));
    const ConstTensorView own_block = call.lists ? parts[own] : parts.front().slice(own * tensor.count, tensor.count);
    for (const ConstTensorView& part : parts) {
      if (overlaps(tensor, part) && tensor.data != own_block.data)
        check.refuse(
            "input and output of GPU {} overlap other than in place; use separate buffers, or exactly the "
            "GPU's own block",
            tensor.device.index);
    }
    if (call.collective != Collective::allgather) continue;
    std::sort(parts.begin(), parts.end(),
              [](const ConstTensorView& a, const ConstTensorView& b) { return std::less<>{}(a.data, b.data); });
    for (std::size_t p = 1; p < parts.size(); ++p) {
      if (overlaps(parts[p - 1], parts[p]))
        check.refuse("two outputs of GPU {} share memory; give each block a place of its own", tensor.device.index);
    }
  }
}

}  // namespace

std::vector<ConstTensorView> MultiGpuCall::tensors() const {
  return collective == Collective::allgather ? in : std::vector<ConstTensorView>(out.begin(), out.end());
}

std::vector<ConstTensorView> MultiGpuCall::blocks() const {
  if (collective == Collective::reduce_scatter) return in;
  return collective == Collective::allgather ? std::vector<ConstTensorView>(out.begin(), out.end())
                                             : std::vector<ConstTensorView>();
}

std::vector<int> devices_of(const MultiGpuCall& call) {
  std::vector<int> devices;
  for (const ConstTensorView& tensor : call.tensors()) devices.push_back(tensor.device.index);
  return devices;
}

void check(const MultiGpuCall& call, const Options& options, const Shape& shape) {
  const CallCheck check{call.name, shape};
  const auto tensors = call.tensors();
  check.tensors(tensors);
  if (row_of(call.collective).rooted) {
    check_peer(options.root, fmt::format("{}: root", call.name), shape);
    if (call.root_tensor < 0 || static_cast<std::size_t>(call.root_tensor) >= tensors.size())
      check.refuse("root tensor {} is not in the list: there are tensors 0 to {}", call.root_tensor,
                   tensors.size() - 1);
  }
  if (call.collective == Collective::allgather || call.collective == Collective::reduce_scatter) {
    check_blocks(check, call, tensors);
    check_overlap(check, call, tensors);
  }
  // What a reduction asks of its operator is what it asks of any.
  if (row_of(call.collective).reduces())
    group::check(
        {.collective = Collective::allreduce, .in = call.out.front(), .out = call.out.front(), .op = options.op},
        shape);
}

void check(const MultiGpuMessage& message, const Shape& shape) {
  const CallCheck check{message.name, shape};
  check.tensor(message.view, "the tensor");
  check_peer(message.peer, fmt::format("{}: {}", message.name, message.sending ? "destination" : "source"), shape);
  if (message.peer == shape.rank)
    check.refuse("rank {} is this rank itself{}; copy from GPU to GPU with cudaMemcpyPeer()", message.peer,
                 message.peer_device == message.view.device.index ? ", and the GPU the tensor's own" : "");
  if (message.elements < 0) check.refuse("n_elements is {}; it counts elements, and 0 means all", message.elements);
  if (static_cast<std::uint64_t>(message.elements) > message.view.count)
    check.refuse("n_elements is {}, and the tensor has {}", message.elements, message.view.count);
}

std::string describe(const MultiGpuCall& call, const Options& options, std::uint64_t connections) {
  const auto tensors = call.tensors();
  std::string text = fmt::format("{}{} of {} {} on each of {} GPUs a rank", call.name, call.lists ? " with lists" : "",
                                 tensors.front().count, to_string(tensors.front().dtype), tensors.size());
  if (row_of(call.collective).reduces()) text += fmt::format(", {}", options.op.name());
  if (row_of(call.collective).rooted) text += fmt::format(", root {} tensor {}", options.root, call.root_tensor);
  return text + fmt::format(", over connections {}", connections);
}

}  // namespace col::group
