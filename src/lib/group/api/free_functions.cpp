// The free functions: Ray's names over the current context.
#include <cstring>

#include <fmt/format.h>

#include <col/channel.hpp>
#include <col/group.hpp>

#include "core/log.hpp"
#include "group/call/checks.hpp"

namespace col {
namespace {

std::string unavailable_reason(std::string_view backend) {
  BackendFactory* factory = find_backend(backend);
  if (factory == nullptr) return fmt::format("this build of col has no {} backend", backend);
  return factory->unavailable_reason().value_or("");
}

// A list of tensors, one per rank, that a call reads or fills. All must look like `model`; those that are filled must
// not share memory.
struct List {
  std::string_view call;
  const Group& group;
  ConstTensorView model;

  [[noreturn]] void refuse(const std::string& what) const {
    throw Error(ErrorCode::invalid_argument, fmt::format("{}: {}", call, what), group.name(), group.rank());
  }

  template <class View>
  void check(std::span<const View> list) const {
    group::check_tensor(model, "the tensor", {group.name(), group.rank(), group.size()});
    if (list.size() != static_cast<std::size_t>(group.size()))
      refuse(fmt::format("the list has {} tensors, but the group has {} ranks; give one tensor per rank", list.size(),
                         group.size()));
    for (std::size_t r = 0; r < list.size(); ++r) {
      if (list[r].count != model.count || list[r].dtype != model.dtype)
        refuse(fmt::format("tensor {} of the list holds {} {}, but must match the other side's {} {}", r, list[r].count,
                           to_string(list[r].dtype), model.count, to_string(model.dtype)));
      if (list[r].device.type != Device::Type::cpu || (list[r].data == nullptr && list[r].count > 0))
        refuse(fmt::format("tensor {} of the list is not in host memory", r));
    }
  }

  // For a list that is filled.
  void check_filled(std::span<const TensorView> list) const {
    for (std::size_t r = 0; r < list.size(); ++r) {
      group::check_written(list[r], fmt::format("tensor {} of the list", r),
                           {group.name(), group.rank(), group.size()});
      for (std::size_t s = 0; s < r; ++s) {
        if (model.count > 0 && group::overlaps(list[r], list[s]))
          refuse(fmt::format("tensors {} and {} of the list share memory; give each rank's data a place of its own", s,
                             r));
      }
    }
  }

  // One tensor that holds the whole list.
  std::vector<std::byte> storage() const {
    try {
      return std::vector<std::byte>(model.bytes() * static_cast<std::size_t>(group.size()));
    } catch (const std::exception&) {  // bad_alloc or length_error
      throw Error(
          ErrorCode::resource,
          fmt::format("{}: no memory for {} x {} bytes; the method of Group works on one tensor and needs no copy",
                      call, group.size(), model.bytes()),
          group.name(), group.rank());
    }
  }
  TensorView view(std::vector<std::byte>& storage) const {
    return {storage.data(), model.count * static_cast<std::size_t>(group.size()), model.dtype};
  }

  std::vector<std::byte> pack(std::span<const ConstTensorView> list) const {
    std::vector<std::byte> packed = storage();
    for (std::size_t r = 0; r < list.size(); ++r) {
      if (model.count > 0) std::memcpy(packed.data() + r * model.bytes(), list[r].data, model.bytes());
    }
    return packed;
  }
  void unpack(const std::vector<std::byte>& packed, std::span<const TensorView> list) const {
    for (std::size_t r = 0; r < list.size(); ++r) {
      if (model.count > 0) std::memcpy(list[r].data, packed.data() + r * model.bytes(), model.bytes());
    }
  }
};

}  // namespace

Group init(const InitOptions& options) {
  Context& context = Context::current();
  if (context.is_initialized("default")) return context.group("default");
  return context.init_group({.rank = context.spec().rank,
                             .world_size = context.spec().world_size,
                             .backend = options.backend,
                             .timeout = options.timeout});
}

Group join(std::string_view group_name, Duration timeout) {
  return Context::current().join_group(group_name, timeout);
}

void finalize() {
  Context::current().finalize();
}

std::string_view version() noexcept {
  return COL_VERSION;
}

Group init_collective_group(int world_size, int rank, Backend backend, std::string_view group_name, Duration timeout) {
  return Context::current().init_group({.name = std::string(group_name),
                                        .rank = rank,
                                        .world_size = world_size,
                                        .backend = backend,
                                        .timeout = timeout});
}

void destroy_collective_group(std::string_view group_name) {
  if (!Context::current().destroy_group(group_name))
    core::log::warn("destroy_collective_group: there is no group '{}' in this process", group_name);
}

bool is_group_initialized(std::string_view group_name) {
  return Context::current().is_initialized(group_name);
}

int get_rank(std::string_view group_name) {
  Context& context = Context::current();
  return context.is_initialized(group_name) ? context.group(group_name).rank() : -1;
}

int get_collective_group_size(std::string_view group_name) {
  Context& context = Context::current();
  return context.is_initialized(group_name) ? context.group(group_name).size() : -1;
}

Group get_group(std::string_view group_name) {
  return Context::current().group(group_name);
}

bool gloo_available() {
  return gloo_unavailable_reason().empty();
}
bool nccl_available() {
  return nccl_unavailable_reason().empty();
}
std::string gloo_unavailable_reason() {
  return unavailable_reason("gloo");
}
std::string nccl_unavailable_reason() {
  return unavailable_reason("nccl");
}

void allreduce(TensorView inout, const Options& options) {
  get_group(options.group).allreduce(inout, options);
}
void reduce(TensorView inout, const Options& options) {
  get_group(options.group).reduce(inout, options);
}
void broadcast(TensorView inout, const Options& options) {
  get_group(options.group).broadcast(inout, options);
}
void barrier(const Options& options) {
  get_group(options.group).barrier(options);
}

void send(ConstTensorView data, int destination, const Options& options) {
  get_group(options.group).send(data, destination, options);
}

void recv(TensorView data, int source, const Options& options) {
  get_group(options.group).recv(data, source, options);
}

void allgather(std::span<const TensorView> outputs, ConstTensorView in, const Options& options) {
  Group group = get_group(options.group);
  const List list{"allgather", group, in};
  list.check(outputs);
  list.check_filled(outputs);
  std::vector<std::byte> gathered = list.storage();
  group.allgather(in, list.view(gathered), options);
  list.unpack(gathered, outputs);
}

void gather(std::span<const TensorView> outputs, ConstTensorView in, const Options& options) {
  Group group = get_group(options.group);
  if (group.rank() != options.root) return group.gather(in, {}, options);
  const List list{"gather", group, in};
  list.check(outputs);
  list.check_filled(outputs);
  std::vector<std::byte> gathered = list.storage();
  group.gather(in, list.view(gathered), options);
  list.unpack(gathered, outputs);
}

void scatter(TensorView out, std::span<const ConstTensorView> inputs, const Options& options) {
  Group group = get_group(options.group);
  if (group.rank() != options.root) return group.scatter({}, out, options);
  const List list{"scatter", group, out};
  list.check(inputs);
  std::vector<std::byte> packed = list.pack(inputs);
  group.scatter(list.view(packed), out, options);
}

void reducescatter(TensorView out, std::span<const ConstTensorView> inputs, const Options& options) {
  Group group = get_group(options.group);
  const List list{"reducescatter", group, out};
  list.check(inputs);
  std::vector<std::byte> packed = list.pack(inputs);
  group.reduce_scatter(list.view(packed), out, options);
}

void alltoall(std::span<const TensorView> outputs, std::span<const ConstTensorView> inputs, const Options& options) {
  Group group = get_group(options.group);
  const List list{"alltoall", group, inputs.empty() ? ConstTensorView() : inputs.front()};
  list.check(inputs);
  list.check(outputs);
  list.check_filled(outputs);
  std::vector<std::byte> packed = list.pack(inputs);
  std::vector<std::byte> received = list.storage();
  group.alltoall(list.view(packed), list.view(received), options);
  list.unpack(received, outputs);
}

}  // namespace col
