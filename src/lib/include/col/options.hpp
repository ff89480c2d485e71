// Options: the settings of one call, besides its data.
#pragma once

#include <cstddef>
#include <string_view>

#include <col/export.hpp>
#include <col/types.hpp>

namespace col {

// Every call takes Options as its last argument. Write only what differs from the default: {.op = col::ReduceOp::max}.
struct Options {
  // The group, for the free functions. A method of Group throws invalid_argument when this names another group.
  std::string_view group = "default";
  Op op = ReduceOp::sum;  // how a reduction combines two elements
  int root = 0;           // the root of a rooted collective: a rank of the group
  // The algorithm. Empty: col chooses (docs/selection.md). Otherwise one of: a built-in algorithm ("ring",
  // "knomial:radix=8"), an algorithm of the backend, or a plan from a file ("file:my.json"). An algorithm that cannot
  // serve the call is invalid_argument, and the message says why.
  std::string_view algorithm = {};
  Duration timeout = {};  // how long the call may block; zero: the group's timeout (Group::timeout())
  // The CUDA stream, for buffers in GPU memory only. The call runs after the work that the stream already holds.
  // Without one, it runs after what the legacy default stream holds, and so after all blocking streams. Streams made
  // with cudaStreamNonBlocking, as PyTorch's side streams are, take no part in that order: name the one that wrote the
  // data. cudaStreamPerThread is invalid_argument, because calls are moved on by other threads, too.
  //
  // If the stream is being captured, the call becomes part of the CUDA graph. The call waits until all ranks capture
  // theirs, and throws mismatch if they differ. After that, its blocking form does not wait, and its Work has nothing
  // to wait for. On first use, NCCL does more than a graph can hold: make such a call once before the capture. The
  // group must outlive its graphs. Messages cannot be captured: unavailable. While any stream is captured in the global
  // mode, make no group, and outside of the capture make no call in a group that has graphs: NCCL would spoil the
  // capture (docs/gpu.md).
  Stream stream = {};
  int tag = 0;  // messages: a send pairs only with a recv of equal tag
  // Use only algorithms that combine every element in rank order. The result then depends neither on the count nor on
  // the choice of the algorithm.
  bool deterministic = false;
  // For floats of 8 and 16 bits: send partial sums in their own type, not in float32, rounded at every hop. This is a
  // quarter or half of the bytes. An algorithm that sends no partial sums (shared, inside a node) gains nothing from
  // it, and still rounds only once.
  bool compress = false;
  // The order in which a reduction combines contributions. `any`: the group's order (ContextSpec::order, COL_ORDER), or
  // none in particular. `deterministic` is the same as `rank`; together with another order it is invalid_argument.
  //
  // tree: of allreduce, reduce and reduce_scatter(v), not of scans. The input of a rank has k contributions, one after
  // the other, with a k >= 0 of its own: k times the result in elements (reduce_scatter: of all blocks). In place, k is
  // 1. All types and operators, a user's that does not commute too. Floats of 8 and 16 bits are added in float32 and
  // rounded once; avg divides by V at the end; a user's function works on the user's type; `compress` is
  // invalid_argument. So is an algorithm that is named and does not keep the order.
  // exact: invalid_argument so far.
  Order order = Order::any;
  // With Order::tree: how many contributions all ranks give together, V. Where they give another number, or none, all
  // of them get a mismatch that says who gave what. Zero: nobody says it. A rank knows only its own k, so the ranks
  // first tell one another theirs, in 8 bytes (reduce: 16): one more round for up to 16 ranks, ceil(log2 ranks) for
  // more. Blocking calls that name V do so once: what each rank gave in the first of them holds for all later ones of
  // the group that name the same V, and a rank that gives another number gets invalid_argument; leave it out where
  // shares change. (Of a reduce, only where no rank gives none: such a rank cannot tell how long the result is.)
  std::size_t contributions = 0;
};

}  // namespace col
