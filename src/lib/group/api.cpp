// The free functions: Ray's names over the current context.
#include <cstring>

#include <fmt/format.h>

#include <col/backend.hpp>
#include <col/group.hpp>

#include "core/log.hpp"
#include "group/checks.hpp"

namespace col {
namespace {

std::string unavailable_reason(std::string_view backend) {
  BackendFactory* factory = find_backend(backend);
  if (factory == nullptr) return fmt::format("this build of col has no {} backend", backend);
  return factory->unavailable_reason().value_or("");
}

Group group_of(const Options& options) {
  return Context::current().group(options.group);
}

void check_list(std::span<const TensorView> outputs, ConstTensorView in, const Group& group) {
  group::check_tensor(in, "the input", {group.name(), group.rank(), group.size()});
  const auto refuse = [&](const std::string& what) {
    throw Error(ErrorCode::invalid_argument, "allgather: " + what, group.name(), group.rank());
  };
  if (outputs.size() != static_cast<std::size_t>(group.size()))
    refuse(fmt::format("the list has {} tensors, but the group has {} ranks; give one tensor per rank", outputs.size(),
                       group.size()));
  for (std::size_t r = 0; r < outputs.size(); ++r) {
    if (outputs[r].count != in.count || outputs[r].dtype != in.dtype)
      refuse(fmt::format("tensor {} of the list holds {} {}, but must match the input's {} {}", r, outputs[r].count,
                         to_string(outputs[r].dtype), in.count, to_string(in.dtype)));
    if (outputs[r].device.type != Device::Type::cpu || (outputs[r].data == nullptr && outputs[r].count > 0))
      refuse(fmt::format("tensor {} of the list is not in host memory", r));
    for (std::size_t s = 0; s < r; ++s) {
      if (in.count > 0 && group::overlaps(outputs[r], outputs[s]))
        refuse(
            fmt::format("tensors {} and {} of the list share memory; give each rank's data a place of its own", s, r));
    }
  }
}

}  // namespace

Group init() {
  Context& context = Context::current();
  if (context.is_initialized("default")) return context.group("default");
  return context.init_group({.rank = context.spec().rank, .world_size = context.spec().world_size});
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
  group_of(options).allreduce(inout, options);
}
void reduce(TensorView inout, const Options& options) {
  group_of(options).reduce(inout, options);
}
void broadcast(TensorView inout, const Options& options) {
  group_of(options).broadcast(inout, options);
}
void barrier(const Options& options) {
  group_of(options).barrier(options);
}

void send(ConstTensorView data, int destination, const Options& options) {
  group_of(options).send(data, destination, options);
}

void recv(TensorView data, int source, const Options& options) {
  group_of(options).recv(data, source, options);
}

void allgather(std::span<const TensorView> outputs, ConstTensorView in, const Options& options) {
  Group group = group_of(options);
  check_list(outputs, in, group);
  std::vector<std::byte> gathered;
  try {
    gathered.resize(in.bytes() * outputs.size());
  } catch (const std::exception&) {  // bad_alloc or length_error
    throw Error(
        ErrorCode::resource,
        fmt::format("allgather: no memory for {} x {} bytes; gather into one tensor with Group::allgather, which "
                    "needs no copy",
                    outputs.size(), in.bytes()),
        group.name(), group.rank());
  }
  group.allgather(in, {gathered.data(), in.count * outputs.size(), in.dtype}, options);
  for (std::size_t r = 0; r < outputs.size(); ++r) {
    if (in.count > 0) std::memcpy(outputs[r].data, gathered.data() + r * in.bytes(), in.bytes());
  }
}

}  // namespace col
