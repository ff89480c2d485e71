// Entry points: making, asking and ending communicators.
#include "support/fake_gpu/cuda/work.hpp"
#include "support/fake_gpu/nccl/group.hpp"
#include "support/fake_gpu/nccl/library.hpp"
#include "support/fake_gpu/nccl/registry.hpp"

using namespace fake_nccl;

namespace {

// Makes the handle known; the job makes the communicator.
ncclResult_t begin_joining(const std::shared_ptr<Communicator>& communicator, ncclComm_t* handle,
                           std::function<void()> job) {
  require_cuda(fake_gpu_retain_device(communicator->device()), "no context");
  *handle = add_communicator(communicator);
  return add_joining({communicator, std::move(job)});
}

ncclResult_t init_rank(ncclComm_t* handle, int size, const ncclUniqueId& id, int rank, const Config& config,
                       int device) {
  require(handle != nullptr, "the communicator's address is null");
  *handle = nullptr;
  require(size >= 1 && rank >= 0 && rank < size,
          "rank " + std::to_string(rank) + " of " + std::to_string(size) + " is out of range");
  if (size > kMostRanks) fail(ncclInvalidUsage, "the stand-in has room for 64 ranks");
  const std::string identity = text_of(id);
  {
    std::lock_guard lock(registry().mutex);
    if (!registry().used.insert({identity, rank}).second) {
      fail(ncclInvalidUsage, "an identity is good for one communicator; rank " + std::to_string(rank) + " used it");
    }
  }
  auto communicator = std::make_shared<Communicator>(device, config);
  return begin_joining(communicator, handle,
                       [communicator, identity, rank, size] { communicator->join(identity, rank, size); });
}

// A spoilt call inside a group spoils the group.
template <typename Body>
ncclResult_t entry_in_group(const char* name, int since, Body body) {
  const ncclResult_t result = entry(name, since, body);
  if (result != ncclSuccess && result != ncclInProgress) spoil_group(result);
  return result;
}

template <typename Ask>
ncclResult_t ask(const char* name, ncclComm_t handle, int* value, Ask question) {
  return entry(name, 0, [&] {
    require(value != nullptr, "the result's address is null");
    auto communicator = find_communicator(handle);
    communicator->require_ready();
    *value = question(*communicator);
    return ncclSuccess;
  });
}

ncclResult_t after_job(const Communicator& communicator) {
  return communicator.config().blocking ? ncclSuccess : ncclInProgress;
}

}  // namespace

ncclResult_t ncclCommInitRankConfig(ncclComm_t* comm, int nranks, ncclUniqueId commId, int rank, ncclConfig_t* config) {
  return entry_in_group("ncclCommInitRankConfig", 21400, [&] {
    require_cuda(fake_gpu_start(), "no driver");
    return init_rank(comm, nranks, commId, rank, read_config(config, {}), fake_gpu_current_device());
  });
}

ncclResult_t ncclCommInitRank(ncclComm_t* comm, int nranks, ncclUniqueId commId, int rank) {
  return entry_in_group("ncclCommInitRank", 0, [&] {
    require_cuda(fake_gpu_start(), "no driver");
    return init_rank(comm, nranks, commId, rank, read_config(nullptr, {}), fake_gpu_current_device());
  });
}

ncclResult_t ncclCommInitAll(ncclComm_t* comms, int ndev, const int* devlist) {
  return entry("ncclCommInitAll", 0, [&] {
    require_cuda(fake_gpu_start(), "no driver");
    require(comms != nullptr && ndev >= 1, "no communicators to make");
    for (int rank = 0; rank < ndev; ++rank) {
      const int device = devlist == nullptr ? rank : devlist[rank];
      require(device >= 0 && device < fake_gpu_device_count(), "no device " + std::to_string(device));
    }
    ncclUniqueId id;
    make_identity(id);
    start_group();
    for (int rank = 0; rank < ndev; ++rank) {
      init_rank(&comms[rank], ndev, id, rank, {}, devlist == nullptr ? rank : devlist[rank]);
    }
    return end_group();
  });
}

ncclResult_t ncclCommSplit(ncclComm_t comm, int color, int key, ncclComm_t* newcomm, ncclConfig_t* config) {
  return entry_in_group("ncclCommSplit", 21800, [&] {
    require(newcomm != nullptr, "the communicator's address is null");
    *newcomm = nullptr;
    auto parent = find_communicator(comm);
    parent->require_ready();
    require(color >= 0 || color == NCCL_SPLIT_NOCOLOR, "the color is negative");
    auto child = std::make_shared<Communicator>(parent->device(), read_config(config, parent->config()),
                                                parent->config().split_share ? parent.get() : nullptr);
    if (!parent->config().blocking && !is_in_group()) {
      // The parent is in progress, and the handle there at the end.
      require_cuda(fake_gpu_retain_device(child->device()), "no context");
      parent->perform([parent, child, color, key, newcomm, board = parent->next_child("split")] {
        if (color == NCCL_SPLIT_NOCOLOR) {
          child->close();
          return child->join_split(*parent, board, color, key);
        }
        try {
          child->join_split(*parent, board, color, key);
        } catch (const Failure& failure) {
          child->set_state(failure.code);
          *newcomm = add_communicator(child);
          throw;
        }
        *newcomm = add_communicator(child);
      });
      return ncclInProgress;
    }
    auto job = [parent, child, color, key, board = parent->next_child("split")] {
      child->join_split(*parent, board, color, key);
    };
    if (color == NCCL_SPLIT_NOCOLOR) return add_joining({parent, job});
    return begin_joining(child, newcomm, job);
  });
}

ncclResult_t ncclCommShrink(ncclComm_t comm, int* excludeRanksList, int excludeRanksCount, ncclComm_t* newcomm,
                            ncclConfig_t* config, int shrinkFlags) {
  return entry_in_group("ncclCommShrink", 22700, [&] {
    require(newcomm != nullptr, "the communicator's address is null");
    *newcomm = nullptr;
    auto parent = find_communicator(comm);
    require(shrinkFlags == NCCL_SHRINK_DEFAULT || shrinkFlags == NCCL_SHRINK_ABORT, "unknown flags");
    require(excludeRanksList != nullptr && excludeRanksCount >= 1, "no rank is excluded");
    const std::set<int> excluded(excludeRanksList, excludeRanksList + excludeRanksCount);
    require(*excluded.begin() >= 0 && *excluded.rbegin() < parent->size() &&
                excluded.size() == static_cast<size_t>(excludeRanksCount),
            "an excluded rank is out of range or named twice");
    require(!excluded.contains(parent->rank()), "an excluded rank shrinks");
    if (shrinkFlags == NCCL_SHRINK_ABORT) {
      parent->revoke();
    } else {
      parent->require_ready();
    }
    std::string identity = parent->next_child("shrink");
    int rank = parent->rank();
    for (int gone : excluded) {
      identity += "x" + std::to_string(gone);
      if (gone < parent->rank()) --rank;
    }
    const int size = parent->size() - excludeRanksCount;
    auto child = std::make_shared<Communicator>(parent->device(), read_config(config, parent->config()));
    return begin_joining(child, newcomm, [child, identity, rank, size] { child->join(identity, rank, size); });
  });
}

ncclResult_t ncclCommFinalize(ncclComm_t comm) {
  return entry("ncclCommFinalize", 21400, [&] {
    auto communicator = find_communicator(comm);
    communicator->require_ready();
    if (communicator->revoked()) fail(ncclInvalidUsage, "a revoked communicator cannot be finalized");
    if (communicator->finalized()) fail(ncclInvalidArgument, "the communicator was finalized before");
    communicator->perform([communicator] { communicator->finalize(); });
    return after_job(*communicator);
  });
}

ncclResult_t ncclCommDestroy(ncclComm_t comm) {
  return entry("ncclCommDestroy", 0, [&] {
    if (comm == nullptr) return ncclSuccess;
    auto communicator = find_communicator(comm);
    communicator->require_nobody_inside("ncclCommDestroy");
    communicator->wait_for_jobs("ncclCommDestroy");
    if (communicator->joined() && !communicator->revoked() && !communicator->finalized()) communicator->finalize();
    communicator->join_threads();
    communicator->await_streams();
    communicator->close();
    remove_communicator(comm);
    return ncclSuccess;
  });
}

ncclResult_t ncclCommAbort(ncclComm_t comm) {
  return entry("ncclCommAbort", 0, [&] {
    if (comm == nullptr) return ncclSuccess;
    auto communicator = find_communicator(comm);
    communicator->abort();
    remove_communicator(comm);
    return ncclSuccess;
  });
}

ncclResult_t ncclCommRevoke(ncclComm_t comm, int revokeFlags) {
  return entry("ncclCommRevoke", 22807, [&] {
    require(revokeFlags == NCCL_REVOKE_DEFAULT, "unknown flags");
    auto communicator = find_communicator(comm);
    if (communicator->finalized()) fail(ncclInvalidUsage, "a finalized communicator cannot be revoked");
    communicator->accept_revoke();
    // What waits in another thread comes out: socket.cc:730.
    if (communicator->config().blocking)
      communicator->revoke();
    else
      communicator->perform([communicator] { communicator->revoke(); });
    return after_job(*communicator);
  });
}

ncclResult_t ncclCommGetAsyncError(ncclComm_t comm, ncclResult_t* asyncError) {
  return entry("ncclCommGetAsyncError", 0, [&] {
    require(asyncError != nullptr, "the result's address is null");
    *asyncError = find_communicator(comm)->state();
    return ncclSuccess;
  });
}

ncclResult_t ncclCommCount(const ncclComm_t comm, int* count) {
  return ask("ncclCommCount", comm, count, [](const Communicator& communicator) { return communicator.size(); });
}

ncclResult_t ncclCommUserRank(const ncclComm_t comm, int* rank) {
  return ask("ncclCommUserRank", comm, rank, [](const Communicator& communicator) { return communicator.rank(); });
}
