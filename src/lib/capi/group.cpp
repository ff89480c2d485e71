// Groups: how they are made, what they are, how they end.
#include <algorithm>
#include <cstring>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <col/channel.hpp>
#include <col/group.hpp>

#include "capi/convert.hpp"
#include "capi/guard.hpp"
#include "capi/handles.hpp"
#include "capi/sized.hpp"

namespace col::capi {
namespace {

// Null if this rank is not part of the group.
col_group* handle_of(Group group, std::shared_ptr<Context> context) {
  if (!group) return nullptr;
  std::string name(group.name()), backend(group.backend());
  return new col_group{std::move(group), std::move(context), std::move(name), std::move(backend)};
}

// A group from another one: of the same context.
col_group* child_of(const col_group& parent, Group child) {
  return handle_of(std::move(child), parent.context);
}

Context& context_or_current(col_context* context) {
  return context == nullptr ? Context::current() : *context->value;
}

std::shared_ptr<Context> kept(const col_context* context) {
  return context == nullptr ? nullptr : context->value;
}

GroupSpec group_spec_of(const col_group_spec* given, const ContextSpec& context) {
  const col_group_spec known = known_part_or_zeros(given, "col_group_spec");
  check_reserved(known.reserved, "col_group_spec");
  if (known.world_size == 0 && known.rank != 0)
    refuse("col_group_spec: rank is {} without a world_size; set both, or neither", known.rank);
  const std::string_view backend = text_of(known.backend);
  GroupSpec spec;
  if (known.name != nullptr) spec.name = known.name;
  spec.rank = known.world_size == 0 ? context.rank : known.rank;
  spec.world_size = known.world_size == 0 ? context.world_size : known.world_size;
  if (find_backend(backend) != nullptr)
    spec.backend_name = backend;
  else if (!backend.empty())
    spec.backend = backend_from_string(backend);
  spec.timeout = duration_of(known.timeout_ns, "col_group_spec: timeout_ns");
  spec.is_high_priority_stream = known.high_priority_stream != 0;
  return spec;
}

std::span<const std::int32_t> ranks_of(const std::int32_t* ranks, std::size_t count, std::string_view role) {
  if (ranks == nullptr && count > 0) refuse("{} is NULL, but its count is {}", role, count);
  return {ranks, count};
}

// `renewal` refers to memory of the caller.
Renewal renewal_of(const col_renewal* given) {
  const col_renewal known = known_part_or_zeros(given, "col_renewal");
  return {.size = known.new_size,
          .min = known.min == 0 ? 1 : known.min,
          .wait = duration_of(known.wait_ns, "col_renewal: wait_ns"),
          .excluded = ranks_of(known.excluded, known.excluded_count, "col_renewal: excluded"),
          .progress = known.progress};
}

std::int32_t give_ranks(const col_group* group, std::vector<int> (Group::*asked)() const, std::int32_t* ranks,
                        std::size_t capacity, std::size_t* count, col_error** error) {
  return guarded(error, [&] {
    std::size_t& found = result(count, "count");
    if (ranks == nullptr && capacity > 0) refuse("ranks is NULL, but its capacity is {}", capacity);
    const std::vector<int> all = (required(group, "group").value.*asked)();
    std::copy_n(all.begin(), std::min(all.size(), capacity), ranks);
    found = all.size();
  });
}

char* copy_of(const std::string& text) {
  char* const copy = new char[text.size() + 1];
  std::memcpy(copy, text.c_str(), text.size() + 1);
  return copy;
}

}  // namespace
}  // namespace col::capi

using namespace col::capi;  // NOLINT(google-build-using-namespace): the functions below have no namespace

extern "C" {

int32_t col_init(col_group** group, col_error** error) {
  return guarded(error, [&] {
    col_group*& made = result(group, "group");
    made = handle_of(col::init(), nullptr);
  });
}

int32_t col_group_init(col_context* context, const col_group_spec* spec, col_group** group, col_error** error) {
  return guarded(error, [&] {
    col_group*& made = result(group, "group");
    col::Context& owner = context_or_current(context);
    made = handle_of(owner.init_group(group_spec_of(spec, owner.spec())), kept(context));
  });
}

int32_t col_group_get(col_context* context, const char* name, col_group** group, col_error** error) {
  return guarded(error, [&] {
    col_group*& found = result(group, "group");
    found = handle_of(context_or_current(context).group(name == nullptr ? "default" : name), kept(context));
  });
}

int32_t col_group_rank(const col_group* group) {
  return group == nullptr ? -1 : group->value.rank();
}
int32_t col_group_size(const col_group* group) {
  return group == nullptr ? 0 : group->value.size();
}
const char* col_group_name(const col_group* group) {
  return group == nullptr ? nullptr : group->name.c_str();
}
const char* col_group_backend(const col_group* group) {
  return group == nullptr ? nullptr : group->backend.c_str();
}
int64_t col_group_timeout(const col_group* group) {
  return group == nullptr ? 0 : group->value.timeout().count();
}

int32_t col_group_device(const col_group* group, int32_t* type, int32_t* index, col_error** error) {
  return guarded(error, [&] {
    std::int32_t& its_type = result(type, "type");
    std::int32_t& its_index = result(index, "index");
    const col::Device device = required(group, "group").value.device();
    its_type = static_cast<std::int32_t>(device.type);
    its_index = device.index;
  });
}

int32_t col_group_world_rank(const col_group* group, int32_t rank, int32_t* world_rank, col_error** error) {
  return guarded(error, [&] {
    std::int32_t& found = result(world_rank, "world_rank");
    found = required(group, "group").value.world_rank(rank);
  });
}

int32_t col_group_rank_of(const col_group* group, int32_t world_rank, int32_t* rank, col_error** error) {
  return guarded(error, [&] {
    std::int32_t& found = result(rank, "rank");
    found = required(group, "group").value.rank_of(world_rank);
  });
}

int32_t col_group_split(col_group* group, int32_t color, int32_t key, col_group** child, col_error** error) {
  return guarded(error, [&] {
    col_group*& made = result(child, "child");
    col_group& parent = required(group, "group");
    made = child_of(parent, parent.value.split(color, key));
  });
}

int32_t col_group_subgroup(col_group* group, const int32_t* ranks, size_t count, const char* name, col_group** child,
                           col_error** error) {
  return guarded(error, [&] {
    col_group*& made = result(child, "child");
    col_group& parent = required(group, "group");
    made = child_of(parent, parent.value.subgroup(ranks_of(ranks, count, "ranks"), &required(name, "name")));
  });
}

int32_t col_group_dup(col_group* group, col_group** child, col_error** error) {
  return guarded(error, [&] {
    col_group*& made = result(child, "child");
    col_group& parent = required(group, "group");
    made = child_of(parent, parent.value.dup());
  });
}

int32_t col_group_shrink(col_group* group, const int32_t* excluded, size_t count, const char* name, col_group** child,
                         col_error** error) {
  return guarded(error, [&] {
    col_group*& made = result(child, "child");
    col_group& parent = required(group, "group");
    made = child_of(parent, parent.value.shrink(ranks_of(excluded, count, "excluded"), std::string(text_of(name))));
  });
}

int32_t col_group_renew(col_group* group, const col_renewal* renewal, col_group** next, col_error** error) {
  return guarded(error, [&] {
    col_group*& made = result(next, "next");
    col_group& before = required(group, "group");
    made = child_of(before, before.value.renew(renewal_of(renewal)));
  });
}

int32_t col_group_join(col_context* context, const char* name, int64_t timeout_ns, col_group** group,
                       col_error** error) {
  return guarded(error, [&] {
    col_group*& made = result(group, "group");
    const col::Duration timeout = duration_of(timeout_ns, "timeout_ns");
    made =
        handle_of(context_or_current(context).join_group(name == nullptr ? "default" : name, timeout), kept(context));
  });
}

int32_t col_group_renewal_wanted(col_group* group, int32_t* wanted, col_error** error) {
  return guarded(error, [&] {
    std::int32_t& is_wanted = result(wanted, "wanted");
    is_wanted = required(group, "group").value.renewal_wanted() ? 1 : 0;
  });
}

uint64_t col_group_epoch(const col_group* group) {
  return group == nullptr ? 0 : group->value.epoch();
}

int32_t col_group_newcomers(const col_group* group, int32_t* ranks, size_t capacity, size_t* count, col_error** error) {
  return give_ranks(group, &col::Group::newcomers, ranks, capacity, count, error);
}

int32_t col_group_lost(const col_group* group, int32_t* ranks, size_t capacity, size_t* count, col_error** error) {
  return give_ranks(group, &col::Group::lost, ranks, capacity, count, error);
}

int32_t col_group_source(const col_group* group, int32_t* rank, col_error** error) {
  return guarded(error, [&] {
    std::int32_t& found = result(rank, "rank");
    found = required(group, "group").value.source();
  });
}

int32_t col_group_progress(const col_group* group, int32_t rank, uint64_t* progress, col_error** error) {
  return guarded(error, [&] {
    std::uint64_t& found = result(progress, "progress");
    found = required(group, "group").value.progress(rank);
  });
}

int32_t col_group_destroy(col_group* group, col_error** error) {
  return guarded(error, [&] { required(group, "group").value.destroy(); });
}

void col_group_free(col_group* group) {
  delete group;
}

int32_t col_group_explain(const col_group* group, int32_t collective, size_t bytes, uint32_t dtype,
                          const col_options* options, char** text, col_error** error) {
  return guarded(error, [&] {
    char*& words = result(text, "text");
    words = copy_of(
        required(group, "group")
            .value.explain(collective_of(collective), bytes, static_cast<col::DType>(dtype), options_of(options)));
  });
}

int32_t col_group_annotate(col_group* group, const char* label, col_error** error) {
  return guarded(error, [&] { required(group, "group").value.annotate(&required(label, "label")); });
}

int32_t col_group_algorithms(const col_group* group, int32_t collective, char** names, col_error** error) {
  return guarded(error, [&] {
    char*& lines = result(names, "names");
    std::string text;
    for (const std::string& name : required(group, "group").value.algorithms(collective_of(collective)))
      text.append(text.empty() ? "" : "\n").append(name);
    lines = copy_of(text);
  });
}

void col_text_free(char* text) {
  delete[] text;
}

}  // extern "C"
