// Stores and contexts.
#include <charconv>
#include <chrono>
#include <memory>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>

#include <col/group.hpp>
#include <col/store.hpp>

#include "capi/convert.hpp"
#include "capi/guard.hpp"
#include "capi/handles.hpp"
#include "capi/sized.hpp"

namespace col::capi {
namespace {

constexpr std::string_view kTcpScheme = "tcp://";
constexpr Duration kDefaultTimeout = std::chrono::minutes(5);

[[noreturn]] void refuse_url(std::string_view url) {
  refuse(
      "col_store_spec: a token belongs to a URL tcp://host:port, and '{}' is none (an address with colons is in "
      "brackets); correct it, or leave the token NULL",
      url);
}

// A TCP store whose token is not that of the environment.
std::shared_ptr<Store> open_with_token(const col_store_spec& spec) {
  const std::string_view url = text_of(spec.url);
  if (!url.starts_with(kTcpScheme)) refuse_url(url);
  const std::string_view endpoint = url.substr(kTcpScheme.size());
  const std::size_t colon = endpoint.rfind(':');
  if (colon == std::string_view::npos) refuse_url(url);
  std::string_view host = endpoint.substr(0, colon);
  if (host.starts_with('[') && host.ends_with(']'))
    host = host.substr(1, host.size() - 2);
  else if (host.find(':') != std::string_view::npos)
    refuse_url(url);
  int port = 0;
  const char* const end = endpoint.data() + endpoint.size();
  const auto [stopped, failed] = std::from_chars(endpoint.data() + colon + 1, end, port);
  if (host.empty() || failed != std::errc() || stopped != end || port < 1 || port > 65535) refuse_url(url);
  const Duration timeout = duration_of(spec.timeout_ns, "col_store_spec: timeout_ns");
  return make_tcp_store(std::string(host), port, spec.token, timeout == Duration::zero() ? kDefaultTimeout : timeout,
                        spec.job_id == nullptr ? "" : store_job(spec.job_id, spec.restart_count));
}

void check_place(int rank, int size, std::string_view role, std::string_view size_role) {
  if (size < 1) refuse("col_context_spec: {} is {}; it must be at least 1", size_role, size);
  if (rank < 0 || rank >= size)
    refuse("col_context_spec: {} {} does not fit {} {}; ranks count from 0 to {}", role, rank, size_role, size,
           size - 1);
}

ContextSpec place_of(const col_context_spec& given) {
  ContextSpec spec;
  spec.rank = given.rank;
  spec.world_size = given.world_size == 0 ? 1 : given.world_size;
  check_place(spec.rank, spec.world_size, "rank", "world_size");
  // Where nobody said which ranks share this host, one record for each rank of the job fits every case.
  const bool is_local_known = given.local_world_size != 0;
  if (!is_local_known && given.local_rank != 0)
    refuse("col_context_spec: local_rank is {} without a local_world_size; set both, or neither", given.local_rank);
  spec.local_rank = is_local_known ? given.local_rank : spec.rank;
  spec.local_world_size = is_local_known ? given.local_world_size : spec.world_size;
  check_place(spec.local_rank, spec.local_world_size, "local_rank", "local_world_size");
  if (given.store != nullptr) spec.store = given.store->value;
  if (spec.world_size > 1 && !spec.store)
    refuse("col_context_spec: {} ranks need a store to find one another; open one with col_store_open()",
           spec.world_size);
  spec.job_id = text_of(given.job_id);
  spec.restart_count = given.restart_count;
  spec.timeout = duration_of(given.timeout_ns, "col_context_spec: timeout_ns");
  spec.serialize = given.serialize != 0;
  if (given.interrupt != nullptr) {
    spec.interrupt = [interrupt = given.interrupt, user = given.interrupt_user] {
      const int answer = interrupt(user);
      if (answer == 0) return;
      throw Error(ErrorCode::aborted, fmt::format("the program's interrupt ended the wait: it returned {}", answer));
    };
  }
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
    opened = new col_store{known.token == nullptr ? col::open_store(known.url) : open_with_token(known)};
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
