// declare_group(): a group that is written down by a process which is no rank of it.
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include <fmt/format.h>

#include <col/group.hpp>

#include "core/joined.hpp"
#include "group/join/join.hpp"
#include "group/join/member.hpp"

namespace col {
namespace {

std::shared_ptr<Store> scope_of_job(std::shared_ptr<Store> store, std::string_view name, std::string_view job_id,
                                    int restart_count) {
  if (!store)
    throw Error(ErrorCode::invalid_argument, "a group is declared in a store; pass the one that its ranks use", name);
  if (name.empty()) throw Error(ErrorCode::invalid_argument, "a group needs a name; \"default\" is the usual one");
  ContextSpec job;
  job.job_id = job_id;
  job.restart_count = restart_count;
  job.store = std::move(store);
  return group::job_scope(job);
}

void check_ranks(const GroupDeclaration& group) {
  if (group.ranks.empty())
    throw Error(ErrorCode::invalid_argument, "no rank is listed; list the job's ranks, in the order of the group",
                group.name);
  std::set<int> seen;
  for (const int rank : group.ranks) {
    if (rank < 0)
      throw Error(ErrorCode::invalid_argument, fmt::format("rank {} is listed; the ranks of a job count from 0", rank),
                  group.name);
    if (!seen.insert(rank).second)
      throw Error(ErrorCode::invalid_argument, fmt::format("rank {} is listed twice; list each rank once", rank),
                  group.name);
  }
}

}  // namespace

void declare_group(std::shared_ptr<Store> store, const GroupDeclaration& group) {
  const auto scope = scope_of_job(std::move(store), group.name, group.job_id, group.restart_count);
  check_ranks(group);
  const std::string backend = group.backend_name.empty() ? std::string(to_string(group.backend)) : group.backend_name;
  const group::GroupRecord record{fmt::format("declared {:016x}", group::random_nonce()),
                                  static_cast<int>(group.ranks.size()), backend, group.ranks};
  const std::string key = group::record_key(group.name);
  for (std::optional<std::string> expected;;) {
    const auto before = scope->compare_set(key, expected, record.encode());
    if (before == expected) return;
    if (before && !before->empty()) {
      const auto other = group::GroupRecord::decode(*before);
      if (other.global_ranks == record.global_ranks && other.backend == record.backend) return;
      throw Error(ErrorCode::already_initialized,
                  fmt::format("the group is there already, with ranks {} and backend {}; destroy it on its rank 0, or "
                              "call undeclare_group, before you declare another one of that name",
                              core::joined(other.global_ranks, ", "), other.backend),
                  group.name);
    }
    expected = before;
  }
}

bool undeclare_group(std::shared_ptr<Store> store, std::string_view name, std::string_view job_id, int restart_count) {
  return group::end_record(*scope_of_job(std::move(store), name, job_id, restart_count), name);
}

}  // namespace col
