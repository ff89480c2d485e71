// Groups of ranks, and the calls that move data between them.
//
// A rank is one process of a parallel job (or one thread that plays a process). A Group is a named, ordered set of
// ranks with connections of its own. All ranks of a group make the same calls:
//
//   col::Group world = col::init();                           // all ranks of the job
//   std::vector<float> gradients(1000, float(world.rank()));
//   world.allreduce(gradients);                               // every rank now holds the sum over all ranks
//   world.broadcast(gradients, {.root = 2});                  // every rank now holds the data of rank 2
//   col::finalize();
//
// Class Group has, in this order:
//
//   about the group  rank(), size(), name(), backend(), device(), ...
//   collectives      allreduce, reduce, scan, reduce_scatter, broadcast, allgather, gather, scatter, alltoall, barrier
//   messages         send, recv, sendrecv, batch
//   asynchronous     iallreduce, isend, ...: start an operation and return a Work, see <col/work.hpp>
//   coalesce         several collectives that are started together: one launch on GPUs, see <col/coalescing.hpp>
//   calls as data    run(Call), start(Call): all collectives above call these; prepare(Call): see <col/prepared.hpp>
//   objects          broadcast_object, send_object, ...: strings, structs and vectors of any length
//   memory           alloc(): buffers that the ranks of a node share
//   sub-groups       split, subgroup, dup, and shrink after the loss of a rank
//   epochs           renew: the same group without the ranks that were lost, and with those that join, see
//                    <col/renewal.hpp>
//   the end          destroy()
//   insight          explain(), algorithms(), annotate(), record_trace(), trace()
//   several GPUs     allreduce_multigpu, ...: see <col/multi_gpu.hpp>
//
// Many of these calls also exist as free functions, with the names of ray.util.collective. They find the group by its
// name in the current Context.
//
// Rules that hold for all calls
// -----------------------------
// Order. Every rank of a group calls the same collectives in the same order, with equal op, count, dtype and root. The
// asynchronous forms count in this order too. A rank that calls allreduce where another rank calls iallreduce is a
// mismatch.
//
// Blocking. A collective blocks until this rank's part is done. Its output is then complete, and its input may be used
// again. If the timeout passes first, the call throws. It never blocks longer. The timeout is Options::timeout, else
// that of the group (GroupSpec::timeout, else COL_TIMEOUT, else 5 minutes).
//
// Asynchronous forms. An i-form (iallreduce, isend, ...) starts the operation and returns a Work at once. The buffers
// belong to the operation until it has ended. Meanwhile the program may read an input, and may do nothing else with the
// buffers. Any number of operations may be in flight, and ranks may wait for them in different orders.
//
// Errors. A call that fails throws col::Error. There are two kinds:
// - invalid_argument, not_initialized, unavailable: thrown before any data moves. The group stays usable.
// - mismatch, timeout, peer_lost, aborted, resource, io, internal: these break the group. Outputs then hold unspecified
//   values, and inputs are intact. Every later call throws aborted and names the first cause. Destroy the group and
//   make it again, or go on with shrink() or renew().
//
// Memory. A buffer may be in host memory or on a GPU (TensorView::device). Each rank chooses for itself, and buffers of
// both kinds may meet in one call. A group moves one kind: GPU memory if its backend is nccl, host memory otherwise.
// For a buffer of the other kind, the rank makes copies before and after. Such a call is slower, and cannot be captured
// in a CUDA graph.
//
// Numerics. Floats of 8 and 16 bits are summed, multiplied and averaged in float32 over all ranks, and rounded once.
// NaN always propagates through min and max. Integers wrap, and their average rounds toward zero. All ranks get the
// same bits. Every run with the same inputs and the same algorithm gets the same bits too.
//
// Thread safety. Different threads may use different groups at once. Two threads that use one group at once get an
// error (invalid_argument), not a race; with ContextSpec::serialize, the second waits for its turn. To wait for a Work,
// or to test it, is also a use of its group.
//
// In place. Two overlaps of input and output are allowed. Any other overlap is invalid_argument.
// - The output is exactly the input: allreduce, reduce, scan, exscan, alltoall(v).
// - The shorter of the two is this rank's block of the longer one: allgather(v), reduce_scatter(v), gather(v),
//   scatter(v).
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include <col/coalescing.hpp>  // IWYU pragma: export
#include <col/context.hpp>     // IWYU pragma: export
#include <col/error.hpp>
#include <col/export.hpp>
#include <col/job.hpp>
#include <col/multi_gpu.hpp>  // IWYU pragma: export
#include <col/options.hpp>    // IWYU pragma: export
#include <col/plan.hpp>
#include <col/prepared.hpp>  // IWYU pragma: export
#include <col/renewal.hpp>   // IWYU pragma: export
#include <col/store.hpp>
#include <col/types.hpp>
#include <col/work.hpp>  // IWYU pragma: export

namespace col {

class Group;

namespace detail {
// For languages that collect garbage: true if `last` may be the last handle of a group that the program has forgotten
// to destroy. Its context keeps the group, and the program has called it, but has not destroyed it or asked for it by
// name.
COL_EXPORT bool is_forgotten(const Group& last);
// Throws mismatch unless `bytes` is the size of one object of `unit` bytes (exact), or a multiple of it (not exact).
COL_EXPORT void check_object_size(std::size_t bytes, std::size_t unit, bool exact);
}  // namespace detail

// One message of a batch: see Group::batch().
struct COL_EXPORT Message {
  enum class Direction : std::uint8_t { send, recv };
  Direction direction = Direction::send;
  ConstTensorView sent = {};  // for send
  TensorView received = {};   // for recv
  int peer = 0;               // the other rank
  int tag = 0;

  static Message send(ConstTensorView data, int destination, int tag = 0);
  static Message recv(TensorView data, int source, int tag = 0);
};

// One step that this rank has executed in a collective: see Group::record_trace().
struct TraceEntry {
  // The number of the collective in its group, from 1. A long collective on GPUs may have several numbers.
  std::uint64_t operation = 0;
  Collective collective = Collective::barrier;
  std::string_view algorithm = {};  // valid as long as the group
  std::size_t round = 0;
  // The step of the plan. A backend's own collective has no plan: it has one entry, with an empty step.
  Step step = {};
};

// One collective call as data: see Group::run().
//
// The row of the collective in <col/collective.hpp> says what `in` and `out` hold, and which ranks pass counts. A list
// of counts has one entry for each rank. It belongs to the side that holds the blocks: in_counts for `in`, out_counts
// for `out`. An alltoallv has both lists. A broadcast has its vector in `out`.
struct Call {
  Collective collective = Collective::barrier;
  ConstTensorView in = {};
  TensorView out = {};
  std::span<const std::size_t> in_counts = {}, out_counts = {};
};

// A named, ordered set of ranks. A Group is a cheap handle: copies stand for the same group.
//
// If the program named the group, it stays until destroy() or finalize(), and can be found by its name. If col named it
// (split(), dup(), shrink() without a name), it ends on this rank with its last handle and its last Work, as by
// destroy(). But the other ranks are not told: a rank that still calls the group gets peer_lost. So a program that ends
// without finalize() counts as lost, although it has dropped all its handles.
class COL_EXPORT Group {
 public:
  class State;  // internal

  Group() = default;  // no group: converts to false, and every call on it throws not_initialized
  explicit operator bool() const noexcept { return state_ != nullptr; }

  // ---- About the group ----------------------------------------------------------------------------------------------

  int rank() const;  // this process's number in the group, from 0
  int size() const;  // number of ranks
  std::string_view name() const;
  // The backend that moves the data: "shm", "hosts" (shared memory inside of each host, Gloo between them), "hosts_ucx"
  // (the same with UCX), "gloo", "ucx", "nccl", or "self" (a world of one rank on the CPU).
  std::string_view backend() const;
  // The memory that the group moves without extra copies, and that alloc() gives: a GPU's with backend nccl, otherwise
  // the host's.
  Device device() const;
  // For each rank of this group, in order: its rank in the job, which is its rank in the group of col::init().
  std::vector<int> ranks() const;
  // ranks()[rank]. Throws invalid_argument if `rank` is not a rank of this group.
  int world_rank(int rank) const;
  // The rank in this group of the process with this rank in the job; -1 if it is not a member.
  int rank_of(int world_rank) const;
  // How long the group's calls wait if Options::timeout is zero.
  Duration timeout() const;

  // ---- Collectives --------------------------------------------------------------------------------------------------
  // Each method builds a Call and passes it to run(). The rules at the top of this file hold for all of them.

  // out[i] = op over all ranks of in[i]. All ranks get the same bits. Requires: in.count == out.count, equal dtypes.
  void allreduce(ConstTensorView in, TensorView out, const Options& options = {});
  void allreduce(TensorView inout, const Options& options = {});
  // As allreduce, but only the root gets the result. On other ranks, out is not touched and may be empty.
  void reduce(ConstTensorView in, TensorView out, const Options& options = {});
  void reduce(TensorView inout, const Options& options = {});
  // scan: out[i] = op over in[i] of ranks 0 to this one. exscan: over ranks 0 to the one before this one, and rank 0's
  // out is not touched. ReduceOp::avg divides by size().
  void scan(ConstTensorView in, TensorView out, const Options& options = {});
  void exscan(ConstTensorView in, TensorView out, const Options& options = {});
  // Rank r gets block r of `in`, reduced over all ranks. Requires: in.count == size() * out.count.
  void reduce_scatter(ConstTensorView in, TensorView out, const Options& options = {});
  // The same with different counts: rank r gets counts[r] elements. Requires: the same counts on all ranks, in.count ==
  // their sum, out.count == counts[rank()].
  void reduce_scatterv(ConstTensorView in, TensorView out, std::span<const std::size_t> counts,
                       const Options& options = {});

  // Every rank gets the root's elements.
  void broadcast(TensorView inout, const Options& options = {});
  // out holds every rank's `in`, in rank order. Requires: out.count == size() * in.count.
  void allgather(ConstTensorView in, TensorView out, const Options& options = {});
  // The same with different counts: rank r gives counts[r] elements. Requires: the same counts on all ranks, in.count
  // == counts[rank()], out.count == their sum.
  void allgatherv(ConstTensorView in, TensorView out, std::span<const std::size_t> counts, const Options& options = {});
  // The root gets every rank's `in`, in rank order. On other ranks, out is not touched and may be empty.
  void gather(ConstTensorView in, TensorView out, const Options& options = {});
  // The same with different counts: counts[r] elements come from rank r. Only the root reads `counts`.
  void gatherv(ConstTensorView in, TensorView out, std::span<const std::size_t> counts, const Options& options = {});
  // Rank r gets block r of the root's `in`. Other ranks ignore `in`. Requires on the root: in.count == size() *
  // out.count.
  void scatter(ConstTensorView in, TensorView out, const Options& options = {});
  // The same with different counts: counts[r] elements go to rank r. Only the root reads `counts`.
  void scatterv(ConstTensorView in, std::span<const std::size_t> counts, TensorView out, const Options& options = {});
  // Block r of `in` goes to rank r, and block r of `out` comes from rank r. Requires: in.count == out.count, a multiple
  // of size().
  void alltoall(ConstTensorView in, TensorView out, const Options& options = {});
  // The same with different counts: in_counts[r] elements go to rank r, and out_counts[r] elements come from it.
  void alltoallv(ConstTensorView in, std::span<const std::size_t> in_counts, TensorView out,
                 std::span<const std::size_t> out_counts, const Options& options = {});
  // Returns after every rank has entered. First it waits for the collectives that this rank has in flight in the group:
  // after it, no collective uses a buffer. Messages stay in flight.
  void barrier(const Options& options = {});

  // ---- Messages -----------------------------------------------------------------------------------------------------
  // A message goes from one rank to another. Messages between two ranks with equal tags arrive in the order in which
  // they were sent.
  //
  // A send and a recv with different counts or dtypes are a mismatch. Data is never truncated. The receiver gets the
  // error, and so does a sender that still waits. A small message may have been accepted before; its sender then gets
  // the error in its next call that waits.
  //
  // Messages to oneself: the send is kept until the recv that takes it. A blocking recv without an earlier send is
  // invalid_argument.
  //
  // With backend nccl, the tag decides how a message travels:
  // - Tag 0: from GPU to GPU by NCCL, which does its operations one after another. Messages that i-forms have started
  //   begin together, when this rank first waits, tests, or makes another call. A later collective waits for them.
  // - Any other tag: through the host. Such a message waits for nothing else. recv_any takes only these; with tag 0 it
  //   is invalid_argument.

  void send(ConstTensorView data, int destination, const Options& options = {});
  void recv(TensorView data, int source, const Options& options = {});
  // Takes the first message with this tag from any rank, and returns the sender's rank. Every message that may come
  // with this tag must have this count and dtype; another one is a mismatch. A message from oneself counts if it was
  // sent before.
  int recv_any(TensorView data, const Options& options = {});
  // Sends and receives at once. Ranks in a ring that all call it do not deadlock. Requires: the two buffers do not
  // overlap.
  void sendrecv(ConstTensorView send, int destination, TensorView recv, int source, const Options& options = {});
  // All messages at once. They do not deadlock, whatever their order. Ends when all have ended. Ignores options.tag:
  // each message has its own. Requires: a buffer to receive into overlaps no other buffer of the batch.
  void batch(std::span<const Message> messages, const Options& options = {});

  // ---- Asynchronous forms -------------------------------------------------------------------------------------------
  // Each starts the operation of the same name and returns its Work: see the rules at the top of this file.

  Work iallreduce(ConstTensorView in, TensorView out, const Options& options = {});
  Work ireduce(ConstTensorView in, TensorView out, const Options& options = {});
  Work iscan(ConstTensorView in, TensorView out, const Options& options = {});
  Work iexscan(ConstTensorView in, TensorView out, const Options& options = {});
  Work ireduce_scatter(ConstTensorView in, TensorView out, const Options& options = {});
  Work ireduce_scatterv(ConstTensorView in, TensorView out, std::span<const std::size_t> counts,
                        const Options& options = {});
  Work ibroadcast(TensorView inout, const Options& options = {});
  Work iallgather(ConstTensorView in, TensorView out, const Options& options = {});
  Work iallgatherv(ConstTensorView in, TensorView out, std::span<const std::size_t> counts,
                   const Options& options = {});
  Work igather(ConstTensorView in, TensorView out, const Options& options = {});
  Work igatherv(ConstTensorView in, TensorView out, std::span<const std::size_t> counts, const Options& options = {});
  Work iscatter(ConstTensorView in, TensorView out, const Options& options = {});
  Work iscatterv(ConstTensorView in, std::span<const std::size_t> counts, TensorView out, const Options& options = {});
  Work ialltoall(ConstTensorView in, TensorView out, const Options& options = {});
  Work ialltoallv(ConstTensorView in, std::span<const std::size_t> in_counts, TensorView out,
                  std::span<const std::size_t> out_counts, const Options& options = {});
  Work ibarrier(const Options& options = {});

  Work isend(ConstTensorView data, int destination, const Options& options = {});
  Work irecv(TensorView data, int source, const Options& options = {});
  Work irecv_any(TensorView data, const Options& options = {});
  Work ibatch(std::span<const Message> messages, const Options& options = {});

  // The i-forms of collectives that follow are collected until the scope ends, and then started together: see
  // <col/coalescing.hpp>. Throws invalid_argument if the group has such a scope already.
  [[nodiscard]] Coalescing coalesce();

  // ---- Calls as data ------------------------------------------------------------------------------------------------

  // The methods above for programs that have the call as data: tools, tests, bindings to other languages. run() makes
  // the collective that `call` names and blocks. start() is its asynchronous form. Requires: what the method of that
  // name requires. A send or a recv is invalid_argument.
  void run(const Call& call, const Options& options = {});
  Work start(const Call& call, const Options& options = {});
  // Prepares a call that comes again with the same buffers: see <col/prepared.hpp>. Not collective, and does not block.
  // Makes the checks of the call, and throws their errors; resource if there is no memory for it. `call` may name lists
  // of counts, which are copied; the buffers must stay valid as long as calls are started.
  PreparedCall prepare(const Call& call, const Options& options = {});

  // ---- Objects ------------------------------------------------------------------------------------------------------
  // An object is a value of a trivially copyable type, a std::string, or a std::vector of a trivially copyable type.
  // Sizes may differ between ranks. The bytes are copied as they are: all ranks need the same architecture and build.

  // Every rank gets the root's object.
  template <class T>
  void broadcast_object(T& object, const Options& options = {});
  // Every rank gets every rank's object, in rank order.
  template <class T>
  std::vector<T> allgather_object(const T& object, const Options& options = {});
  // The root gets every rank's object, in rank order. Other ranks get an empty vector.
  template <class T>
  std::vector<T> gather_object(const T& object, const Options& options = {});
  // Rank r gets objects[r] of the root. The root passes one object for each rank. Other ranks ignore `objects`.
  template <class T>
  T scatter_object(const std::vector<T>& objects, const Options& options = {});
  template <class T>
  void send_object(const T& object, int destination, const Options& options = {});
  template <class T>
  T recv_object(int source, const Options& options = {});

  // ---- Memory -------------------------------------------------------------------------------------------------------

  // Memory for buffers that the ranks of a node share: see alloc() in <col/memory.hpp>.
  [[nodiscard]] void* alloc(std::size_t bytes, const Options& options = {});

  // ---- Sub-groups ---------------------------------------------------------------------------------------------------
  // These make new groups from the ranks of this one, over the same backend. split(), subgroup() and dup() are
  // collective over this group and block. Every rank of this group calls them.

  // Ranks of equal color form a group, ordered by `key`, then by rank. A rank with a negative color joins no group and
  // gets a Group that converts to false. The new names are derived from this group's name.
  Group split(int color, int key = 0);
  // The listed ranks form group `name`, in the order of the list. Other ranks get a Group that converts to false.
  // Requires: the same list and name on all ranks, no rank twice.
  Group subgroup(std::span<const int> ranks, std::string name);
  // A group of all ranks, in the same order.
  Group dup();
  // After the loss of a rank: makes a new group of all ranks except `excluded`, in the same order, with new numbers. An
  // empty `name` means a name derived from this group's.
  //
  // Like ncclCommShrink, and MPI_Comm_shrink of ULFM, it works on a broken group. This group stays as it is: destroy
  // it. Calls in flight in a group that is not broken are not touched. shrink() is collective over the ranks that stay,
  // and blocks. The excluded ranks do not call it, and may have ended.
  //
  // First the ranks agree through the store on whom they exclude. Then they connect again, on every backend. With nccl
  // they make a new communicator, because the old one was destroyed when the group broke. Each of the two steps takes
  // the group's timeout at most.
  //
  // Requires:
  // - `excluded` holds each rank at most once, and not this rank
  // - all ranks that call pass the same ranks and name
  // - an excluded rank takes no part in later calls on this group
  // - under colrun, --keep-going: otherwise the job ends when a rank fails
  //
  // An error of the agreement is the same on all ranks: mismatch (about whom to exclude), timeout (names the ranks that
  // did not come), peer_lost (another rank has died: exclude it too), already_initialized (the name is taken). All
  // ranks can call it again after an error, as after success. A store that a rank serves (several hosts without colrun,
  // or COL_STORE) ends with that rank: io.
  Group shrink(std::span<const int> excluded, std::string name = {});

  // ---- Epochs -------------------------------------------------------------------------------------------------------
  // For groups that init() or init_collective_group() has made, and declared ones: <col/renewal.hpp> has an example.

  // Makes the next epoch of this group, under its name. It has all ranks of this group except lost and `excluded` ones,
  // and processes that wait in join(), in the order in which they came, up to `size`. Collective over the ranks that
  // are alive and stay, and blocks, for the group's timeout at most. It works on a broken group and on one that is not
  // broken. Ranks keep their numbers, and those that join fill the gaps; if a gap would be left, the old ranks are
  // numbered from 0 in the same order, and the new ones come after them.
  //
  // A rank counts as lost if its process has ended, or has called finalize(), and some rank of its host has noticed. A
  // rank that is alive is never left out unless it is `excluded`: if it does not call, all others get a timeout that
  // names it. So an error of a call is no reason to be left out. More ranks may be lost meanwhile.
  //
  // The call ends this group: its Works and prepared calls, and the groups that were made from it, end with `aborted`.
  // So do calls in which other ranks wait in this group: these ranks then call renew(), too. Inputs are intact. A call
  // that was in flight may have succeeded on some ranks and failed on others: `progress` tells them apart. Memory of
  // alloc() stays until it is freed. The name now stands for the new epoch.
  //
  // The ranks decide through the job's store, by one compare_set() for each step. So there are never two next epochs,
  // even if some ranks cannot reach the others. A store that a rank serves (several hosts without colrun, or COL_STORE)
  // ends with that rank: io. Under colrun, --keep-going: otherwise the job ends when a rank fails.
  //
  // Errors that are equal on all ranks that call, also on a late one: mismatch (about size, min or excluded), timeout
  // (names the ranks that did not call), peer_lost (fewer than min are left), invalid_argument (`size` is above the
  // room of the job; `excluded` lists all ranks that are alive), errors of connecting. After these, all can call
  // renew() again, on this group. Errors of this rank alone: aborted (this epoch is over, or the others took this rank
  // for dead or have excluded it: let the process end, or join() again), io (this rank cannot reach the store, without
  // which nobody gets an epoch), invalid_argument (a group that was made from another one; another thread is in
  // renew(); a wrong value; a rank that is listed twice or does not exist).
  Group renew(const Renewal& renewal = {});
  // True if somebody waits to join. Collective, and the same on all ranks: where it is true, they can call renew().
  bool renewal_wanted();
  // The next five are equal on all ranks. epoch() is the number of this group's epoch, or of the group that it was made
  // from. The other four throw invalid_argument on a group that was made from another one.
  std::uint64_t epoch() const;
  // Ranks that were not in the epoch before. In epoch 0, all.
  std::vector<int> newcomers() const;
  // Ranks of the epoch before that are not in this one, by their numbers in the epoch before.
  std::vector<int> lost() const;
  // The rank whose state the others can take: the lowest of the ranks with the most progress. In epoch 0, rank 0.
  int source() const;
  // Renewal::progress of that rank. 0 in epoch 0. Throws invalid_argument if `rank` does not exist.
  std::uint64_t progress(int rank) const;

  // ---- The end ------------------------------------------------------------------------------------------------------

  // Leaves the group, as destroy_collective_group(name()) does. Not collective. Ends the operations that are in flight
  // here, which takes a few seconds at most. Afterwards every call on any handle to the group throws not_initialized,
  // except destroy(), which does nothing.
  //
  // Throws mismatch, after it has left, if the ranks made different calls and no call could tell before: for example,
  // if the last call of the group differs. If no rank had a reason to wait, the last rank to leave gets the error.
  void destroy();

  // ---- Insight ------------------------------------------------------------------------------------------------------

  // Explains which algorithm a call would run, and why: its name, the rule that fired, and the rules that were passed
  // over. `bytes` is the size of the whole vector, or of all blocks together. Not collective. Any thread may ask, also
  // while another thread is in a call.
  std::string explain(Collective collective, std::size_t bytes, DType dtype = DType::float32,
                      const Options& options = {}) const;
  // The names that Options::algorithm may have for a collective in this group: first the built-in algorithms, even
  // those that cannot serve a given call, then the backend's own. Not collective. Any thread may ask.
  std::vector<std::string> algorithms(Collective collective) const;
  // Later calls of this rank in this group carry the label: in `coljob`, in reports and in traces. An empty one ends
  // that. 47 bytes of it are kept. Not collective, and never compared: the ranks' labels may differ. Throws
  // invalid_argument for control characters and while another thread's call uses the group; not_initialized.
  void annotate(std::string_view label);
  // Turns the recording of executed steps on or off. Recording costs time and memory: it is for tests and teaching.
  void record_trace(bool on);
  // The steps recorded since record_trace(true) or since the last call of trace(). They are ordered by operation, in
  // the order in which the operations ended. Within an operation, they are in the order in which the steps began. A
  // backend's own collectives leave no steps.
  std::vector<TraceEntry> trace();

  // ---- Several GPUs for each rank -----------------------------------------------------------------------------------
  // <col/multi_gpu.hpp> documents these, beside the free functions of the same names.

  void allreduce_multigpu(std::span<const TensorView> tensors, const Options& options = {});
  void reduce_multigpu(std::span<const TensorView> tensors, const Options& options = {}, int root_tensor = 0);
  void broadcast_multigpu(std::span<const TensorView> tensors, const Options& options = {}, int root_tensor = 0);
  void allgather_multigpu(std::span<const TensorView> outputs, std::span<const ConstTensorView> inputs,
                          const Options& options = {});
  void allgather_multigpu(std::span<const std::vector<TensorView>> outputs, std::span<const ConstTensorView> inputs,
                          const Options& options = {});
  void reducescatter_multigpu(std::span<const TensorView> outputs, std::span<const ConstTensorView> inputs,
                              const Options& options = {});
  void reducescatter_multigpu(std::span<const TensorView> outputs, std::span<const std::vector<ConstTensorView>> inputs,
                              const Options& options = {});
  void send_multigpu(ConstTensorView tensor, int destination, int destination_gpu, const Options& options = {},
                     std::int64_t n_elements = 0);
  void recv_multigpu(TensorView tensor, int source, int source_gpu, const Options& options = {},
                     std::int64_t n_elements = 0);

  // ---- Mistakes -----------------------------------------------------------------------------------------------------
  // Calls that do not compile. Each comment says what to write instead. docs/errors.md lists all that the compiler
  // explains.
  // clang-format off
  template <detail::Pointer P, class... More> void allreduce(P&&, More&&...) = delete;  // a pointer has no count: write std::span(pointer, count)
  template <detail::Pointer P, class... More> void reduce(P&&, More&&...) = delete;  // a pointer has no count: write std::span(pointer, count)
  template <detail::Pointer P, class... More> void broadcast(P&&, More&&...) = delete;  // a pointer has no count: write std::span(pointer, count)
  template <detail::Pointer P, class... More> void send(P&&, More&&...) = delete;  // a pointer has no count: write std::span(pointer, count)
  template <detail::Pointer P, class... More> void recv(P&&, More&&...) = delete;  // a pointer has no count: write std::span(pointer, count)
  template <class T, detail::ReductionOperator O> void allreduce(T&&, O&&) = delete;  // the operator is an option: write {.op = col::ReduceOp::max}
  template <class T, detail::ReductionOperator O> void reduce(T&&, O&&) = delete;  // the operator is an option: write {.op = col::ReduceOp::max}
  template <class In, class Out, detail::ReductionOperator O> void allreduce(In&&, Out&&, O&&) = delete;  // the operator is an option: write {.op = col::ReduceOp::max}
  template <class In, class Out, detail::ReductionOperator O> void reduce(In&&, Out&&, O&&) = delete;  // the operator is an option: write {.op = col::ReduceOp::max}
  template <detail::TensorRange R, detail::Integer N> void allreduce(R&&, N&&) = delete;  // a range knows its count: leave it out, or cut it with std::span
  template <detail::TensorRange R, detail::Integer N> void reduce(R&&, N&&) = delete;  // the root is an option: write {.root = 0}
  template <class T, detail::Integer N> requires(!detail::Pointer<T>) void broadcast(T&&, N&&) = delete;  // the root is an option: write {.root = 0}
  template <class In, class Out> requires detail::DifferentElements<In, Out> void allreduce(const In&, const Out&, const Options& = {}) = delete;  // in and out differ in their element type: convert one of them
  template <class In, class Out> requires detail::DifferentElements<In, Out> void scan(const In&, const Out&, const Options& = {}) = delete;  // in and out differ in their element type: convert one of them
  template <class In, class Out> requires detail::DifferentElements<In, Out> void reduce_scatter(const In&, const Out&, const Options& = {}) = delete;  // in and out differ in their element type: convert one of them
  template <class In, class Out> requires detail::DifferentElements<In, Out> void allgather(const In&, const Out&, const Options& = {}) = delete;  // in and out differ in their element type: convert one of them
  template <class In, class Out> requires detail::DifferentElements<In, Out> void alltoall(const In&, const Out&, const Options& = {}) = delete;  // in and out differ in their element type: convert one of them
  // clang-format on

 private:
  friend class Coalescing;
  friend class Context;
  friend class RegisteredMemory;
  friend class Work;
  friend bool detail::is_forgotten(const Group& last);
  explicit Group(std::shared_ptr<State> state);
  State& state() const;
  // The object forms call these.
  std::vector<std::byte> broadcast_bytes(std::span<const std::byte> bytes, const Options& options);
  std::vector<std::vector<std::byte>> allgather_bytes(std::span<const std::byte> bytes, const Options& options);
  std::vector<std::vector<std::byte>> gather_bytes(std::span<const std::byte> bytes, const Options& options);
  std::vector<std::byte> scatter_bytes(const std::vector<std::span<const std::byte>>& blocks, const Options& options);
  void send_bytes(std::span<const std::byte> bytes, int destination, const Options& options);
  std::vector<std::byte> recv_bytes(int source, const Options& options);
  std::shared_ptr<State> state_;  // shared by all copies of the handle, its Works, and the context if that keeps it
};

// ---- The named collectives as calls ---------------------------------------------------------------------------------

inline void Group::allreduce(TensorView inout, const Options& options) {
  allreduce(inout, inout, options);
}
inline void Group::reduce(TensorView inout, const Options& options) {
  reduce(inout, inout, options);
}
inline void Group::allreduce(ConstTensorView in, TensorView out, const Options& options) {
  run({Collective::allreduce, in, out}, options);
}
inline Work Group::iallreduce(ConstTensorView in, TensorView out, const Options& options) {
  return start({Collective::allreduce, in, out}, options);
}
inline void Group::reduce(ConstTensorView in, TensorView out, const Options& options) {
  run({Collective::reduce, in, out}, options);
}
inline Work Group::ireduce(ConstTensorView in, TensorView out, const Options& options) {
  return start({Collective::reduce, in, out}, options);
}
inline void Group::scan(ConstTensorView in, TensorView out, const Options& options) {
  run({Collective::scan, in, out}, options);
}
inline Work Group::iscan(ConstTensorView in, TensorView out, const Options& options) {
  return start({Collective::scan, in, out}, options);
}
inline void Group::exscan(ConstTensorView in, TensorView out, const Options& options) {
  run({Collective::exscan, in, out}, options);
}
inline Work Group::iexscan(ConstTensorView in, TensorView out, const Options& options) {
  return start({Collective::exscan, in, out}, options);
}
inline void Group::reduce_scatter(ConstTensorView in, TensorView out, const Options& options) {
  run({Collective::reduce_scatter, in, out}, options);
}
inline Work Group::ireduce_scatter(ConstTensorView in, TensorView out, const Options& options) {
  return start({Collective::reduce_scatter, in, out}, options);
}
inline void Group::allgather(ConstTensorView in, TensorView out, const Options& options) {
  run({Collective::allgather, in, out}, options);
}
inline Work Group::iallgather(ConstTensorView in, TensorView out, const Options& options) {
  return start({Collective::allgather, in, out}, options);
}
inline void Group::gather(ConstTensorView in, TensorView out, const Options& options) {
  run({Collective::gather, in, out}, options);
}
inline Work Group::igather(ConstTensorView in, TensorView out, const Options& options) {
  return start({Collective::gather, in, out}, options);
}
inline void Group::scatter(ConstTensorView in, TensorView out, const Options& options) {
  run({Collective::scatter, in, out}, options);
}
inline Work Group::iscatter(ConstTensorView in, TensorView out, const Options& options) {
  return start({Collective::scatter, in, out}, options);
}
inline void Group::alltoall(ConstTensorView in, TensorView out, const Options& options) {
  run({Collective::alltoall, in, out}, options);
}
inline Work Group::ialltoall(ConstTensorView in, TensorView out, const Options& options) {
  return start({Collective::alltoall, in, out}, options);
}
inline void Group::broadcast(TensorView inout, const Options& options) {
  run({Collective::broadcast, {}, inout}, options);
}
inline Work Group::ibroadcast(TensorView inout, const Options& options) {
  return start({Collective::broadcast, {}, inout}, options);
}
inline void Group::reduce_scatterv(ConstTensorView in, TensorView out, std::span<const std::size_t> counts,
                                   const Options& options) {
  run({Collective::reduce_scatterv, in, out, counts}, options);
}
inline Work Group::ireduce_scatterv(ConstTensorView in, TensorView out, std::span<const std::size_t> counts,
                                    const Options& options) {
  return start({Collective::reduce_scatterv, in, out, counts}, options);
}
inline void Group::allgatherv(ConstTensorView in, TensorView out, std::span<const std::size_t> counts,
                              const Options& options) {
  run({Collective::allgatherv, in, out, {}, counts}, options);
}
inline Work Group::iallgatherv(ConstTensorView in, TensorView out, std::span<const std::size_t> counts,
                               const Options& options) {
  return start({Collective::allgatherv, in, out, {}, counts}, options);
}
inline void Group::gatherv(ConstTensorView in, TensorView out, std::span<const std::size_t> counts,
                           const Options& options) {
  run({Collective::gatherv, in, out, {}, counts}, options);
}
inline Work Group::igatherv(ConstTensorView in, TensorView out, std::span<const std::size_t> counts,
                            const Options& options) {
  return start({Collective::gatherv, in, out, {}, counts}, options);
}
inline void Group::scatterv(ConstTensorView in, std::span<const std::size_t> counts, TensorView out,
                            const Options& options) {
  run({Collective::scatterv, in, out, counts}, options);
}
inline Work Group::iscatterv(ConstTensorView in, std::span<const std::size_t> counts, TensorView out,
                             const Options& options) {
  return start({Collective::scatterv, in, out, counts}, options);
}
inline void Group::alltoallv(ConstTensorView in, std::span<const std::size_t> in_counts, TensorView out,
                             std::span<const std::size_t> out_counts, const Options& options) {
  run({Collective::alltoallv, in, out, in_counts, out_counts}, options);
}
inline Work Group::ialltoallv(ConstTensorView in, std::span<const std::size_t> in_counts, TensorView out,
                              std::span<const std::size_t> out_counts, const Options& options) {
  return start({Collective::alltoallv, in, out, in_counts, out_counts}, options);
}
inline void Group::barrier(const Options& options) {
  run({Collective::barrier, {}, {}}, options);
}
inline Work Group::ibarrier(const Options& options) {
  return start({Collective::barrier, {}, {}}, options);
}

// ---- Free functions on the current context, with the names of ray.util.collective -----------------------------------

// A backend that the program names here wins over COL_BACKEND. Both win over the choice that GroupSpec::backend
// describes.
struct InitOptions {
  Backend backend = Backend::automatic;
  Duration timeout = {};  // for making the group, and for its calls; zero: the context's
};
// Joins group "default" with the ranks that the environment gives (from colrun or another launcher: see
// ContextSpec::from_environment), else as a world of one. A second call returns the same group. In a process that was
// forked from a rank, it throws not_initialized: see Context::current(). In a spare of colrun, it does what join()
// does: it returns when the others have taken this process in by renew(), and Group::epoch() is then not 0.
COL_EXPORT Group init(const InitOptions& options = {});
// Context::join_group() of the current context.
COL_EXPORT Group join(std::string_view group_name = "default", Duration timeout = {});
// Context::finalize() of the current context. Call it when a rank is done: its peers then know that it did not crash.
COL_EXPORT void finalize();
// "0.1.0"
COL_EXPORT std::string_view version() noexcept;

// Context::init_group() of the current context.
COL_EXPORT Group init_collective_group(int world_size, int rank, Backend backend = Backend::automatic,
                                       std::string_view group_name = "default", Duration timeout = {});
// Leaves the group, as Group::destroy() does. Logs a warning for an unknown name, as Ray does.
COL_EXPORT void destroy_collective_group(std::string_view group_name = "default");
COL_EXPORT bool is_group_initialized(std::string_view group_name = "default");
// -1 when the group is not initialized in this process.
COL_EXPORT int get_rank(std::string_view group_name = "default");
COL_EXPORT int get_collective_group_size(std::string_view group_name = "default");
// The handle of the group, for out-of-place calls and v-forms. Joins the group if needed, as Context::group() does.
COL_EXPORT Group get_group(std::string_view group_name = "default");

COL_EXPORT bool gloo_available();
// Starts the CUDA driver, if there is one. Processes that are forked afterwards cannot use CUDA.
COL_EXPORT bool nccl_available();
// The reason why the backend is not available, in words; empty when it is.
COL_EXPORT std::string gloo_unavailable_reason();
COL_EXPORT std::string nccl_unavailable_reason();

// In place, on the group that options.group names. Each does what the method of Group does.
COL_EXPORT void allreduce(TensorView inout, const Options& options = {});
COL_EXPORT void reduce(TensorView inout, const Options& options = {});
COL_EXPORT void broadcast(TensorView inout, const Options& options = {});
// clang-format off
template <class T, detail::ReductionOperator O> void allreduce(T&&, O&&) = delete;  // the operator is an option: write {.op = col::ReduceOp::max}
template <class T, detail::ReductionOperator O> void reduce(T&&, O&&) = delete;  // the operator is an option: write {.op = col::ReduceOp::max}
template <detail::Pointer P, class... More> void allreduce(P&&, More&&...) = delete;  // a pointer has no count: write std::span(pointer, count)
template <detail::Pointer P, class... More> void broadcast(P&&, More&&...) = delete;  // a pointer has no count: write std::span(pointer, count)
// clang-format on
// outputs[r] gets rank r's `in`. Requires: outputs.size() == group size. Every output has the count and dtype of `in`,
// and no two outputs overlap.
COL_EXPORT void allgather(std::span<const TensorView> outputs, ConstTensorView in, const Options& options = {});
// `out` gets the reduction of inputs[rank] over all ranks. Requires: inputs.size() == group size. Every input has the
// count and dtype of `out`.
COL_EXPORT void reducescatter(TensorView out, std::span<const ConstTensorView> inputs, const Options& options = {});
// On the root, outputs[r] gets rank r's `in`. Other ranks ignore `outputs`.
COL_EXPORT void gather(std::span<const TensorView> outputs, ConstTensorView in, const Options& options = {});
// `out` gets inputs[rank] of the root. Other ranks ignore `inputs`.
COL_EXPORT void scatter(TensorView out, std::span<const ConstTensorView> inputs, const Options& options = {});
// outputs[r] gets inputs[rank] of rank r.
COL_EXPORT void alltoall(std::span<const TensorView> outputs, std::span<const ConstTensorView> inputs,
                         const Options& options = {});
COL_EXPORT void barrier(const Options& options = {});
COL_EXPORT void send(ConstTensorView data, int destination, const Options& options = {});
COL_EXPORT void recv(TensorView data, int source, const Options& options = {});

// ---- Objects: the definitions of the templates ----------------------------------------------------------------------

namespace detail {

template <class T>
struct ObjectBytes {
  static_assert(std::is_trivially_copyable_v<T>,
                "an object must be trivially copyable, a std::string, or a std::vector of a trivially copyable type; "
                "serialise anything else into a std::string");
  static std::span<const std::byte> view(const T& object) { return std::as_bytes(std::span(&object, 1)); }
  static void assign(T& object, std::span<const std::byte> bytes) {
    check_object_size(bytes.size(), sizeof(T), true);
    std::memcpy(&object, bytes.data(), sizeof(T));
  }
};

template <class Range>
struct RangeBytes {
  using Element = typename Range::value_type;
  static_assert(std::is_trivially_copyable_v<Element>, "the elements must be trivially copyable");
  static std::span<const std::byte> view(const Range& object) {
    return std::as_bytes(std::span(object.data(), object.size()));
  }
  static void assign(Range& object, std::span<const std::byte> bytes) {
    check_object_size(bytes.size(), sizeof(Element), false);
    object.resize(bytes.size() / sizeof(Element));
    if (!bytes.empty()) std::memcpy(object.data(), bytes.data(), bytes.size());
  }
};

template <>
struct ObjectBytes<std::string> : RangeBytes<std::string> {};
template <class T>
struct ObjectBytes<std::vector<T>> : RangeBytes<std::vector<T>> {};

template <class T>
std::vector<T> objects_from(const std::vector<std::vector<std::byte>>& blocks) {
  std::vector<T> objects(blocks.size());
  for (std::size_t i = 0; i < blocks.size(); ++i) ObjectBytes<T>::assign(objects[i], blocks[i]);
  return objects;
}

}  // namespace detail

template <class T>
void Group::broadcast_object(T& object, const Options& options) {
  const std::vector<std::byte> bytes = broadcast_bytes(detail::ObjectBytes<T>::view(object), options);
  if (rank() != options.root) detail::ObjectBytes<T>::assign(object, bytes);
}

template <class T>
std::vector<T> Group::allgather_object(const T& object, const Options& options) {
  return detail::objects_from<T>(allgather_bytes(detail::ObjectBytes<T>::view(object), options));
}

template <class T>
std::vector<T> Group::gather_object(const T& object, const Options& options) {
  return detail::objects_from<T>(gather_bytes(detail::ObjectBytes<T>::view(object), options));
}

template <class T>
T Group::scatter_object(const std::vector<T>& objects, const Options& options) {
  std::vector<std::span<const std::byte>> blocks;
  if (rank() == options.root) {
    for (const T& object : objects) blocks.push_back(detail::ObjectBytes<T>::view(object));
  }
  T object{};
  detail::ObjectBytes<T>::assign(object, scatter_bytes(blocks, options));
  return object;
}

template <class T>
void Group::send_object(const T& object, int destination, const Options& options) {
  send_bytes(detail::ObjectBytes<T>::view(object), destination, options);
}

template <class T>
T Group::recv_object(int source, const Options& options) {
  T object{};
  detail::ObjectBytes<T>::assign(object, recv_bytes(source, options));
  return object;
}

}  // namespace col
