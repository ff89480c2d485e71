#include "backend/nccl/multi_channel.hpp"

#include <algorithm>
#include <deque>
#include <numeric>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include "backend/nccl/translate.hpp"

namespace col::nccl_backend {
namespace {

// Gives NCCL `call(block)` for each block in turn, up to the first that it refuses.
template <class Call>
ncclResult_t for_blocks(std::size_t blocks, Call call) {
  ncclResult_t result = ncclSuccess;
  for (std::size_t block = 0; block < blocks && (result == ncclSuccess || result == ncclInProgress); ++block)
    result = call(block);
  return result;
}

// What one GPU does in a collective: as ncclGroupEnd() will start it on all of them.
struct Part {
  const NcclLibrary& nccl;
  const MultiRequest& request;
  std::size_t gpu;     // of this rank's
  std::size_t flat;    // its flat rank
  std::size_t blocks;  // flat ranks
  ncclComm_t comm;
  CUstream stream;
  ncclRedOp_t op;
  NcclArray data = to_nccl(request.dtype, request.count);

  ncclResult_t allreduce() const { return nccl.AllReduce(in(), out(), data.count, data.type, op, comm, stream); }
  ncclResult_t reduce() const {
    return nccl.Reduce(in(), out(), data.count, data.type, op, request.root, comm, stream);
  }
  ncclResult_t broadcast() const {
    return nccl.Broadcast(in(), out(), data.count, data.type, request.root, comm, stream);
  }
  ncclResult_t allgather() const {
    if (request.out.size() == request.devices.size())
      return nccl.AllGather(in(), out(), data.count, data.type, comm, stream);
    // Each block goes straight to its place; NCCL runs them as one.
    return for_blocks(blocks, [&](std::size_t block) {
      return nccl.Broadcast(in(), out(block), data.count, data.type, static_cast<int>(block), comm, stream);
    });
  }
  ncclResult_t reduce_scatter() const {
    if (request.in.size() == request.devices.size())
      return nccl.ReduceScatter(in(), out(), data.count, data.type, op, comm, stream);
    return for_blocks(blocks, [&](std::size_t block) {
      return nccl.Reduce(in(block), block == flat ? out() : nullptr, data.count, data.type, op, static_cast<int>(block),
                         comm, stream);
    });
  }

 private:
  const void* in() const { return request.in[gpu].data; }
  void* out() const { return request.out[gpu].data; }
  const void* in(std::size_t block) const { return request.in[gpu * blocks + block].data; }
  void* out(std::size_t block) const { return request.out[gpu * blocks + block].data; }
};

struct MultiRow {
  Collective collective;
  ncclResult_t (Part::*start)() const;
};
constexpr MultiRow kMultiRows[] = {
    {Collective::allreduce, &Part::allreduce},           {Collective::reduce, &Part::reduce},
    {Collective::broadcast, &Part::broadcast},           {Collective::allgather, &Part::allgather},
    {Collective::reduce_scatter, &Part::reduce_scatter},
};

// Requires: it is one of these.
const MultiRow& multi_row_of(Collective collective) {
  return *std::ranges::find(kMultiRows, collective, &MultiRow::collective);
}

}  // namespace

NcclMultiChannel::NcclMultiChannel(const GpuDevice& device, const NcclLibrary& nccl, Place place, Host host)
    : device_(device), nccl_(nccl), place_(std::move(place)), host_(std::move(host)) {}

std::vector<Communicator*> NcclMultiChannel::communicators() const {
  std::vector<Communicator*> all;
  const auto add = [&all](const Kept& kept) {
    for (const Connected& connected : kept) {
      const auto some = connected.set->communicators();
      all.insert(all.end(), some.begin(), some.end());
    }
  };
  add(sets_);
  for (const auto& [peer, kept] : pairs_) add(kept);
  return all;
}

// ---- Checks

void NcclMultiChannel::refuse(const MultiRequest& request, const std::string& what, int rank) const {
  throw Error(ErrorCode::invalid_argument, fmt::format("{}: {}", request.call, what), place_.group, rank);
}

void NcclMultiChannel::check(const MultiRequest& request) const {
  if (row_of(request.collective).reduces()) {
    try {
      Operator::require(request.op, request.dtype);
    } catch (const Error& error) {
      throw Error(error.code(), fmt::format("{}: {}", request.call, error.message()), place_.group, place_.rank);
    }
  }
  for (const int device : request.devices) {
    if (const auto problem = GpuDevice::why_none(device_.cuda(), device)) refuse(request, *problem, place_.rank);
  }
  check_default_streams(request);
  const std::size_t gpus = request.devices.size();
  for (std::size_t i = 0; i < request.in.size(); ++i)
    check_memory(request, request.in[i], request.devices[i / (request.in.size() / gpus)]);
  for (std::size_t i = 0; i < request.out.size(); ++i)
    check_memory(request, request.out[i], request.devices[i / (request.out.size() / gpus)]);
  if (!row_of(request.collective).is_message) return;
  const int seen = place_.devices[static_cast<std::size_t>(request.peer)];
  if (request.peer_device >= 0 && request.peer_device < seen) return;
  refuse(request,
         fmt::format("there is no GPU {} on rank {}, which sees {}, numbered from 0 as its own process numbers them",
                     request.peer_device, request.peer, seen),
         request.peer);
}

// For connections that are there: those of others are made in the call.
void NcclMultiChannel::check_default_streams(const MultiRequest& request) const {
  const auto check = [&](const Kept& kept) {
    for (const Connected& connected : kept) {
      if (!connected.set->is_of(request.devices)) continue;
      for (std::size_t i = 0; i < connected.set->size(); ++i) require_default_open(connected.set->device(i));
    }
  };
  try {
    if (!row_of(request.collective).is_message) return check(sets_);
    const auto pairs = pairs_.find(request.peer);
    if (pairs != pairs_.end()) check(pairs->second);
  } catch (const Error& error) {
    throw Error(error.code(), fmt::format("{}: {}", request.call, error.message()), place_.group, place_.rank);
  }
}

void NcclMultiChannel::check_memory(const MultiRequest& request, ConstTensorView data, int device) const {
  if (data.empty()) return;
  const GpuDevice::Scope scope(device_);
  const std::optional<int> found = device_of(data.data, data.bytes(), device_.cuda());
  if (found == device) return;
  refuse(request,
         found ? fmt::format("a tensor that should be on GPU {} is in memory of GPU {}; give views the device that "
                             "their memory is on, and a GPU's blocks that GPU's memory",
                             device, *found)
               : std::string("the memory is no memory of a GPU, or not to its end, though its view says so"),
         place_.rank);
}

// ---- Connections

std::uint64_t NcclMultiChannel::connections(std::span<const int> devices) const {
  for (const Connected& connected : sets_) {
    if (connected.set->is_of(devices)) return connected.number;
  }
  return next_set_;
}

Meeting NcclMultiChannel::meeting(std::string_view prefix, std::vector<int> ranks, std::size_t place) const {
  return Meeting({.group = place_.group,
                  .store = make_prefix_store(place_.store, prefix),
                  .ranks = std::move(ranks),
                  .place = place,
                  .advice = "give each rank GPUs of its own: colrun --gpus-per-rank, or tensors on other devices",
                  .look = host_.look});
}

std::unique_ptr<DeviceSet> NcclMultiChannel::connect(std::span<const int> devices, Meeting meeting, std::string terms,
                                                     int first, int size, WaitContext& wait) const {
  auto set = std::make_unique<DeviceSet>(device_.cuda(), devices, place_.priority, host_.look);
  Offer offer{.terms = nccl_.version_term() + terms, .devices = device_.cuda().devices, .why_alone = nccl_.why_alone()};
  for (std::size_t i = 0; i < set->size(); ++i) offer.seats.push_back(seat_of(set->device(i), place_.boot_id, nccl_));
  const Meeting::Table table = meeting.exchange(
      offer, [this] { return make_id(nccl_); }, wait);
  set->connect(nccl_,
               {.id = table.id,
                .rank = first,
                .size = size,
                .has_shared_gpus = table.has_shared_gpus,
                .name = place_.group + ", several GPUs",
                .settings = place_.settings},
               wait);
  meeting.leave(wait);
  return set;
}

DeviceSet& NcclMultiChannel::set_of(std::span<const int> devices, WaitContext& wait) {
  const auto known =
      std::find_if(sets_.begin(), sets_.end(), [&](const Connected& one) { return one.set->is_of(devices); });
  if (known != sets_.end()) {
    sets_.splice(sets_.begin(), sets_, known);
    return *sets_.front().set;
  }
  std::vector<int> ranks(static_cast<std::size_t>(place_.size));
  std::iota(ranks.begin(), ranks.end(), 0);
  const auto gpus = static_cast<int>(devices.size());
  const std::uint64_t number = next_set_++;
  sets_.push_front(
      {.number = number,
       .set = connect(devices,
                      meeting(fmt::format("set/{}", number), std::move(ranks), static_cast<std::size_t>(place_.rank)),
                      fmt::format("{} GPUs on each rank", gpus), place_.rank * gpus, place_.size * gpus, wait)});
  if (sets_.size() > kMostSets) sets_.pop_back();  // now that all ranks are here, and end it together
  return *sets_.front().set;
}

DeviceSet& NcclMultiChannel::pair_of(const MultiRequest& request, WaitContext& wait) {
  Kept& kept = pairs_[request.peer];
  const auto known = std::find_if(kept.begin(), kept.end(), [&](const Connected& one) {
    return one.peer_device == request.peer_device && one.set->is_of(request.devices);
  });
  if (known != kept.end()) {
    kept.splice(kept.begin(), kept, known);
    return *kept.front().set;
  }
  const int low = std::min(place_.rank, request.peer), high = std::max(place_.rank, request.peer);
  const int place = place_.rank == low ? 0 : 1;
  const int low_device = place == 0 ? request.devices.front() : request.peer_device;
  const int high_device = place == 0 ? request.peer_device : request.devices.front();
  const std::uint64_t number = ++pairs_so_far_[request.peer];
  kept.push_front(
      {.peer_device = request.peer_device,
       .set = connect(
           request.devices,
           meeting(fmt::format("pair/{}/{}/{}", low, high, number), {low, high}, static_cast<std::size_t>(place)),
           fmt::format("GPU {} of rank {} with GPU {} of rank {}", low_device, low, high_device, high), place, 2,
           wait)});
  if (kept.size() > kMostPairs) kept.pop_back();
  return *kept.front().set;
}

// ---- Calls

void NcclMultiChannel::run(const MultiRequest& request, WaitContext& wait) {
  host_.guarded(request.call, [&] {
    if (row_of(request.collective).is_message)
      run_message(request, wait);
    else
      run_collective(request, wait);
  });
}

void NcclMultiChannel::run_collective(const MultiRequest& request, WaitContext& wait) {
  const MultiRow& row = multi_row_of(request.collective);
  DeviceSet& set = set_of(request.devices, wait);
  const std::size_t gpus = set.size();
  const std::size_t blocks = gpus * static_cast<std::size_t>(place_.size);
  const std::size_t first = gpus * static_cast<std::size_t>(place_.rank);
  std::deque<Operator> operators;
  for (std::size_t i = 0; i < gpus && row_of(request.collective).reduces(); ++i)
    operators.emplace_back(set.communicator(i), request.op, request.dtype);
  set.run(
      fmt::format("cannot start the {}", to_string(request.collective)),
      [&](std::size_t gpu, ncclComm_t comm, CUstream stream) {
        const ncclRedOp_t op = operators.empty() ? ncclSum : operators[gpu].get();
        return (Part{nccl_, request, gpu, first + gpu, blocks, comm, stream, op}.*row.start)();
      },
      wait);
}

void NcclMultiChannel::run_message(const MultiRequest& request, WaitContext& wait) {
  DeviceSet& set = pair_of(request, wait);
  const int peer = place_.rank < request.peer ? 1 : 0;
  const NcclArray data = to_nccl(request.dtype, request.count);
  set.run(
      "cannot start the message",
      [&](std::size_t /*gpu*/, ncclComm_t comm, CUstream stream) {
        return request.collective == Collective::send
                   ? nccl_.Send(request.in.front().data, data.count, data.type, peer, comm, stream)
                   : nccl_.Recv(request.out.front().data, data.count, data.type, peer, comm, stream);
      },
      wait);
}

}  // namespace col::nccl_backend
