// Stores and contexts.
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include <col/group.hpp>
#include <col/store.hpp>

#include "capi/convert.hpp"
#include "capi/guard.hpp"
#include "capi/handles.hpp"
#include "capi/sized.hpp"

namespace col::capi {
namespace {

void check_place(int rank, int size, std::string_view role, std::string_view size_role) {
  if (size < 1) refuse("col_context_spec: {} is {}; it must be at least 1", size_role, size);
  if (rank < 0 || rank >= size)
    refuse("col_context_spec: {} {} does not fit {} {}; ranks count from 0 to {}", role, rank, size_role, size,
           size - 1);
}

Interrupt interrupt_of(const col_context_spec& given) {
  if (given.interrupt == nullptr) return {};
  return [interrupt = given.interrupt, user = given.interrupt_user] {
    const int answer = interrupt(user);
    if (answer == 0) return;
    throw Error(ErrorCode::aborted, fmt::format("the program's interrupt ended the wait: it returned {}", answer));
  };
}

ContextSpec place_of(const col_context_spec& given) {
  const int world_size = given.world_size == 0 ? 1 : given.world_size;
  check_place(given.rank, world_size, "rank", "world_size");
  const bool is_local_known = given.local_world_size != 0;
  if (!is_local_known && given.local_rank != 0)
    refuse("col_context_spec: local_rank is {} without a local_world_size; set both, or neither", given.local_rank);
  if (is_local_known) check_place(given.local_rank, given.local_world_size, "local_rank", "local_world_size");
  if (world_size > 1 && given.store == nullptr)
    refuse("col_context_spec: {} ranks need a store to find one another; open one with col_store_open()", world_size);
  const auto store = given.store != nullptr ? given.store->value : nullptr;
  const Duration timeout = duration_of(given.timeout_ns, "col_context_spec: timeout_ns");
  const std::string job(text_of(given.job_id));
  ContextSpec spec;
  if (!is_local_known) {
    spec = ContextSpec::meet(store, given.rank, world_size, job, timeout, interrupt_of(given));
  } else {
    spec.rank = given.rank;
    spec.world_size = world_size;
    spec.local_rank = given.local_rank;
    spec.local_world_size = given.local_world_size;
    spec.store = store;
    spec.job_id = job;
    spec.timeout = timeout;
    spec.interrupt = interrupt_of(given);
  }
  spec.restart_count = given.restart_count;
  spec.serialize = given.serialize != 0;
  return spec;
}

}  // namespace
}  // namespace col::capi

using namespace col::capi;  // NOLINT(google-build-using-namespace): the functions below have no namespace

extern "C" {

int32_t col_store_open(const col_store_spec* spec, col_store** store, col_error** error) {
  return guarded(error, [&] {
    col_store*& opened = result(store, "store");
    const col_store_spec known = known_part(spec, "col_store_spec");
    check_reserved(known.reserved, "col_store_spec");
    required(known.url, "col_store_spec: url");
    const std::string job = known.job_id == nullptr ? "" : col::store_job(known.job_id, known.restart_count);
    opened = new col_store{
        col::open_store(known.url, {.token = std::string(text_of(known.token)),
                                    .job = job,
                                    .timeout = duration_of(known.timeout_ns, "col_store_spec: timeout_ns")})};
  });
}

void col_store_free(col_store* store) {
  delete store;
}

int32_t col_context_create(const col_context_spec* spec, col_context** context, col_error** error) {
  return guarded(error, [&] {
    col_context*& made = result(context, "context");
    made = new col_context{std::make_shared<col::Context>(place_of(known_part(spec, "col_context_spec")))};
  });
}

int32_t col_context_from_environment(col_context** context, col_error** error) {
  return guarded(error, [&] {
    col_context*& made = result(context, "context");
    made = new col_context{std::make_shared<col::Context>(col::ContextSpec::from_environment())};
  });
}

int32_t col_context_finalize(col_context* context, col_error** error) {
  return guarded(error, [&] { required(context, "context").value->finalize(); });
}

void col_context_free(col_context* context) {
  if (context == nullptr) return;
  col_context_finalize(context, nullptr);
  delete context;
}

int32_t col_finalize(col_error** error) {
  return guarded(error, [] { col::finalize(); });
}

}  // extern "C"
