#include "support/fake_gpu/nccl/group.hpp"

#include <algorithm>
#include <optional>
#include <thread>

#include "support/fake_gpu/nccl/library.hpp"

namespace fake_nccl {
namespace {

struct GroupLaunch {
  std::shared_ptr<Communicator> communicator;
  std::vector<Operation> operations;
  std::vector<cudaStream_t> streams;
};

struct Group {
  int depth = 0;
  ncclResult_t spoiled = ncclSuccess;
  std::vector<GroupLaunch> launches;  // one for each communicator
  std::vector<Joining> joinings;
};

Group& group() {
  thread_local Group instance;
  return instance;
}

// All join at the same time: one thread may hold several ranks.
ncclResult_t begin(std::vector<Joining> joinings) {
  std::vector<std::optional<Failure>> failures(joinings.size());
  std::vector<std::thread> threads;
  bool in_progress = false;
  for (size_t i = 0; i < joinings.size(); ++i) {
    if (!joinings[i].communicator->config().blocking) {
      joinings[i].communicator->perform(joinings[i].job);
      in_progress = true;
      continue;
    }
    threads.emplace_back([&, i] {
      try {
        joinings[i].job();
      } catch (const Failure& failure) {
        failures[i] = failure;
      }
    });
  }
  for (auto& thread : threads) thread.join();
  std::optional<Failure> first;
  for (size_t i = 0; i < joinings.size(); ++i) {
    if (!failures[i]) continue;
    // As there, the handle stays, for an abort: ncclCommInitRankFunc(), init.cc, and no job has an `undo`.
    if (!joinings[i].communicator->joined()) joinings[i].communicator->set_state(failures[i]->code);
    if (!first) first = failures[i];
  }
  if (first) throw *first;
  return in_progress ? ncclInProgress : ncclSuccess;
}

ncclResult_t begin(std::vector<GroupLaunch> launches) {
  const bool blocking = launches.front().communicator->config().blocking;
  for (const auto& launch : launches) {
    require(launch.communicator->config().blocking == blocking,
            "blocking and non-blocking communicators are in one group");
    launch.communicator->require_ready();
  }
  for (const auto& launch : launches) launch.communicator->begin_connect(launch.operations);
  for (auto& launch : launches) {
    auto communicator = launch.communicator;
    ++launches_so_far();
    const auto collectives = std::count_if(launch.operations.begin(), launch.operations.end(),
                                           [](const Operation& operation) { return !operation.point_to_point(); });
    for (Operation& operation : launch.operations) operation.grouped = static_cast<uint32_t>(collectives);
    communicator->perform([communicator, operations = std::move(launch.operations),
                           streams = std::move(launch.streams)] { communicator->launch(operations, streams); });
  }
  return blocking ? ncclSuccess : ncclInProgress;
}

}  // namespace

void start_group() {
  ++group().depth;
}

bool is_in_group() {
  return group().depth > 0;
}

void spoil_group(ncclResult_t code) {
  Group& own = group();
  if (own.depth > 0 && own.spoiled == ncclSuccess) own.spoiled = code;
}

ncclResult_t end_group() {
  Group& own = group();
  if (own.depth == 0) fail(ncclInvalidUsage, "ncclGroupEnd without ncclGroupStart");
  if (--own.depth > 0) return ncclSuccess;
  const Group whole = std::exchange(own, Group{});
  if (whole.spoiled != ncclSuccess) fail(whole.spoiled, "a call inside the group failed");
  if (!whole.launches.empty() && !whole.joinings.empty()) {
    fail(ncclInvalidUsage, "a group holds operations and initialisations");
  }
  if (!whole.joinings.empty()) return begin(whole.joinings);
  return whole.launches.empty() ? ncclSuccess : begin(whole.launches);
}

ncclResult_t add_operation(const std::shared_ptr<Communicator>& communicator, const Operation& operation,
                           cudaStream_t stream) {
  Group& own = group();
  start_group();
  auto launch = std::find_if(own.launches.begin(), own.launches.end(),
                             [&](const GroupLaunch& other) { return other.communicator == communicator; });
  if (launch == own.launches.end()) {
    own.launches.push_back({communicator, {}, {}});
    launch = std::prev(own.launches.end());
  }
  launch->operations.push_back(operation);
  launch->streams.push_back(stream);
  return end_group();
}

ncclResult_t add_joining(Joining joining) {
  start_group();
  group().joinings.push_back(std::move(joining));
  return end_group();
}

}  // namespace fake_nccl
