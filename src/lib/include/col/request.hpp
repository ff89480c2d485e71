// Requests to a backend: connect the ranks of a group (ConnectRequest), and run their calls (Request). Programs that
// use col do not need this file.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <col/collective.hpp>
#include <col/export.hpp>
#include <col/store.hpp>
#include <col/types.hpp>

namespace col {

// One rank's part in one collective. The group layer has checked the arguments: counts fit, dtypes agree, the backend
// takes the device, and `in` and `out` are either the same memory or do not overlap.
//
// Buffers by collective (n = group size):
//   allreduce, reduce     in, out of equal count (out is empty on a non-root of reduce); but see `order`
//   scan, exscan          in, out of equal count
//   broadcast             out, on every rank: read on the root, written elsewhere
//   allgather(v)          out.count = n * in.count, or the sum of out_counts; block r comes from rank r
//   gather(v)             out as for allgather(v) on the root, empty elsewhere
//   reduce_scatter(v)     in.count = n * out.count, or the sum of in_counts; rank r gets the reduced block r
//   scatter(v)            in.count = n * out.count, or the sum of in_counts, on the root; empty elsewhere
//   alltoall(v)           n equal blocks in both, or in_counts and out_counts
//   barrier               no buffer
struct Request {
  Collective collective = Collective::barrier;
  ConstTensorView in = {};
  TensorView out = {};
  std::span<const std::size_t> in_counts = {};  // v-forms: elements per rank, in rank order
  std::span<const std::size_t> out_counts = {};
  Op op = {};
  int root = 0;
  bool is_captured = false;  // `stream` is being captured, as DeviceOps::is_captured() has said for this call
  // Hash of (group, sequence, collective, dtype, reduce op, root, count) and of all earlier calls of the group. Calls
  // that do not match have different fingerprints. So a backend that uses it as the key of its messages never pairs
  // them.
  std::uint64_t fingerprint = 0;
  Stream stream = {};
  // For native entries: the name of one of them. Empty: the backend chooses one that serves `collective`.
  std::string_view algorithm = {};
  // The order in which a reduction combines. By `tree`, the input has any number of contributions, one after the other,
  // each as long as the input is otherwise.
  Order order = Order::any;
  std::size_t contributions = 0;             // with Order::tree: of all ranks, as the call says; 0: it does not say
  std::span<const std::size_t> shares = {};  // likewise, for native entries: how many each rank gives
};

// A collective that a backend implements itself, and how its numerics differ from those of col's plans.
struct NativeEntry {
  Collective collective;
  std::string_view name;        // the name of the algorithm in selection and reports
  bool rounds_per_hop = false;  // narrow floats are rounded at every hop, not once
  bool drops_nan = false;       // min and max may lose a NaN
  bool rank_order = false;      // combines the inputs in rank order, so it serves operators that do not commute
  // takes sum, product, min, max, avg and premul_sum; no bitwise operator and no function of the user
  bool arithmetic_only = false;
  bool built_in_only = false;  // takes no function of the user
  bool asynchronous = false;   // start_native() returns before it has ended
  // True if it can combine this type by this operator. Null: it takes every pair that is defined (see Op).
  bool (*reduces)(const Op& op, DType dtype) noexcept = nullptr;
  // True if it serves Order::tree when rank r gives shares[r] contributions, which all ranks know (Request::shares).
  // Null: it never does.
  bool (*keeps_tree)(std::span<const std::size_t> shares) noexcept = nullptr;
};

// A rank's description of itself, for the others, when a group is made.
struct PeerInfo {
  int rank = 0;         // in the group; errors call the rank by it
  int global_rank = 0;  // in the job
  std::int64_t pid = 0;
  std::string hostname;
  std::string boot_id;  // with equal boot id and network namespace, loopback works
  std::string network_namespace;
  std::string pid_namespace = {};  // with all three equal, ranks can share memory
};

// The host of each of `peers`, as a number: hosts are numbered from 0 as they first appear. Ranks of one host can share
// memory and use loopback. Two containers on one machine that cannot do both are two hosts. A rank whose PeerInfo does
// not say where it is counts as alone on a host.
COL_EXPORT std::vector<int> hosts_of(std::span<const PeerInfo> peers);

struct ConnectRequest {
  std::string_view group;
  int rank = 0;
  int size = 1;
  std::shared_ptr<Store> store;     // private to this group: any key may be used; shared, because backends keep it
  std::span<const PeerInfo> peers;  // in rank order, this rank included
  bool same_host = true;            // every peer is reachable over loopback
  std::uint64_t token = 0;          // equal on all ranks of this group and on no others: proves who has connected
  std::string socket_ifname;        // COL_SOCKET_IFNAME: a name or a comma-separated list; empty: the backend chooses
  // For backends of devices: the channel makes its streams with the highest priority that the device has.
  bool is_high_priority_stream = false;
  // For backends of devices: GroupSpec::nccl_settings.
  std::string settings = {};
};

}  // namespace col
