#include "backend/nccl/multi_channel.hpp"

#include <algorithm>
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

// The tensors of one GPU.
template <class View>
std::vector<View> of_gpu(std::span<const View> all, std::size_t gpus, std::size_t gpu) {
  const std::size_t each = all.size() / gpus;
  const auto some = all.subspan(gpu * each, each);
  return {some.begin(), some.end()};
}

// What one GPU does in a collective, with copies of all that it needs.
struct Part {
  Part(const NcclLibrary& library, const MultiRequest& request, std::size_t gpu)
      : nccl(library),
        in(of_gpu(request.in, request.devices.size(), gpu)),
        out(of_gpu(request.out, request.devices.size(), gpu)),
        root(request.root),
        data(to_nccl(request.dtype, request.count)) {}

  const NcclLibrary& nccl;
  std::vector<ConstTensorView> in;
  std::vector<TensorView> out;
  int root;
  NcclArray data;
  std::size_t flat = 0;    // its flat rank
  std::size_t blocks = 0;  // flat ranks
  ncclComm_t comm = nullptr;
  CUstream stream = nullptr;
  std::optional<Operator> own_op = {};  // of a collective that reduces

  ncclResult_t allreduce() const {
    return nccl.AllReduce(first_in(), first_out(), data.count, data.type, op(), comm, stream);
  }
  ncclResult_t reduce() const {
    return nccl.Reduce(first_in(), first_out(), data.count, data.type, op(), root, comm, stream);
  }
  ncclResult_t broadcast() const {
    return nccl.Broadcast(first_in(), first_out(), data.count, data.type, root, comm, stream);
  }
  ncclResult_t allgather() const {
    if (out.size() == 1) return nccl.AllGather(first_in(), first_out(), data.count, data.type, comm, stream);
    // Each block goes straight to its place; NCCL runs them as one.
    return for_blocks(blocks, [&](std::size_t block) {
      return nccl.Broadcast(first_in(), out[block].data, data.count, data.type, static_cast<int>(block), comm, stream);
    });
  }
  ncclResult_t reduce_scatter() const {
    if (in.size() == 1) return nccl.ReduceScatter(first_in(), first_out(), data.count, data.type, op(), comm, stream);
    return for_blocks(blocks, [&](std::size_t block) {
      return nccl.Reduce(in[block].data, block == flat ? first_out() : nullptr, data.count, data.type, op(),
                         static_cast<int>(block), comm, stream);
    });
  }

 private:
  const void* first_in() const { return in.front().data; }
  void* first_out() const { return out.front().data; }
  ncclRedOp_t op() const { return *own_op; }
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
  auto set = std::make_unique<DeviceSet>(device_.cuda(), devices, place_.priority, host_.look, host_.rest);
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
  set.run(
      fmt::format("cannot start the {}", to_string(request.collective)),
      [&](std::size_t gpu, ncclComm_t comm, CUstream stream) -> NcclCall {
        Part part(nccl_, request, gpu);
        part.flat = first + gpu;
        part.blocks = blocks;
        part.comm = comm;
        part.stream = stream;
        if (row_of(request.collective).reduces()) part.own_op.emplace(set.communicator(gpu), request.op, request.dtype);
        return [start = row.start, part = std::move(part)] { return (part.*start)(); };
      },
      wait);
}

void NcclMultiChannel::run_message(const MultiRequest& request, WaitContext& wait) {
  DeviceSet& set = pair_of(request, wait);
  const int peer = place_.rank < request.peer ? 1 : 0;
  const NcclArray data = to_nccl(request.dtype, request.count);
  set.run(
      "cannot start the message",
      [&](std::size_t /*gpu*/, ncclComm_t comm, CUstream stream) -> NcclCall {
        const bool sends = request.collective == Collective::send;
        const void* const from = sends ? request.in.front().data : nullptr;
        void* const to = sends ? nullptr : request.out.front().data;
        return [&nccl = nccl_, sends, from, to, data, peer, comm, stream] {
          return sends ? nccl.Send(from, data.count, data.type, peer, comm, stream)
                       : nccl.Recv(to, data.count, data.type, peer, comm, stream);
        };
      },
      wait);
}

}  // namespace col::nccl_backend
