// Groups of ranks and the collectives on them.
//
// Two ways to say the same: methods of Group, and free functions with Ray's names that find the group by name in the
// current context.
//
// Collectives block until this rank's part is done: its output is complete, and its input may be reused. They end with
// an error after the timeout (Options::timeout, else COL_TIMEOUT, else 5 minutes), never later. Every rank of a group
// must call the same collectives in the same order with equal op, count, dtype and root.
//
// Each has an i-form that starts it and returns a Work at once; until that has ended, the buffers belong to the call
// (an input may be read, nothing else). The i-forms count in the order above, and a rank that calls allreduce where
// another calls iallreduce is a mismatch. Any number may be in flight, and ranks may wait for them in different orders.
//
// Errors common to all: invalid_argument, not_initialized and unavailable, before any data moves: the group stays
// usable. Then mismatch, timeout, peer_lost, aborted, resource, io, internal: after one of these the group is broken,
// outputs hold unspecified values, inputs are intact, and later calls throw aborted naming the first cause; destroy the
// group and create it anew.
//
// Memory: buffers may be in host memory or on a GPU (TensorView::device), on each rank as it likes, also in one call.
// A group moves one kind, GPUs' when its backend is nccl and the host's otherwise, and a rank copies buffers of the
// other kind to and fro: those calls are slower, and none of them can be captured in a CUDA graph.
//
// Numerics: 16-bit floats are summed, multiplied and averaged in float32 over all ranks and rounded once; NaN always
// propagates through min and max; integers wrap, and their average rounds toward zero. All ranks get the same bits, and
// so does every run with the same inputs and the same algorithm.
//
// Thread safety: different groups may be used from different threads at once. One group used by two threads at once is
// an error (invalid_argument), not a race; that includes the Works of the group.
//
// In place: an output may be exactly the input (allreduce, reduce, scan, exscan, alltoall(v)), or the shorter of the
// two may be this rank's block of the longer (allgather(v), reduce_scatter(v), gather(v), scatter(v)). Any other
// overlap is invalid_argument.
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

#include <col/error.hpp>
#include <col/export.hpp>
#include <col/job.hpp>
#include <col/plan.hpp>
#include <col/store.hpp>
#include <col/types.hpp>

namespace col {

class Context;

namespace detail {
// Throws mismatch when `bytes` cannot be an object of `unit` bytes, or (not exact) several of them.
COL_EXPORT void check_object_size(std::size_t bytes, std::size_t unit, bool exact);
}  // namespace detail

// Per-call options; write what differs: {.op = ReduceOp::max, .root = 2}.
struct Options {
  std::string_view group = "default";  // free functions; a method refuses another group's name
  Op op = ReduceOp::sum;               // reductions
  int root = 0;                        // rooted collectives
  // Empty: chosen (docs/selection.md). Else a built-in one, "ring" or "knomial:radix=8", one of the backend's own, or
  // "file:my.json". One that cannot serve the call is invalid_argument and says why.
  std::string_view algorithm = {};
  Duration timeout = {};  // zero: the context's
  // Device memory only: the call comes after what the stream holds. A call in a stream that is being captured becomes
  // part of the graph, and its blocking form and its Work have nothing to wait for; before that, it waits until all
  // ranks capture theirs, and throws mismatch where they differ. NCCL does more on first use than a graph can hold:
  // make such a call once before. The group outlives its graphs. Messages cannot be captured: unavailable.
  Stream stream = {};
  int tag = 0;  // send and recv: only equal tags pair
  // Only algorithms that combine every element in rank order, whatever the count and the algorithm table.
  bool deterministic = false;
  // 16-bit floats: partial sums travel in 16 bits, rounded at every hop; half the bytes. An algorithm that sends no
  // partial sums (shared, inside a node) has nothing to gain from it, and rounds once all the same.
  bool compress = false;
};

// The handle of something started by an i-form. Copies mean the same operation.
//
// A Work that is dropped goes on, and uses its buffers: keep them until barrier() of the group returns (collectives) or
// the group is destroyed (messages, too). An error shows in the next call of the group.
//
// Operations move on inside every call, wait and test of this process, on whatever group: those of a group that another
// thread is in a call of, by that thread. With COL_PROGRESS=thread they also move on while the process does something
// else. So a reduction of the user's may run in a wait for something else; it must not use the group that runs it.
class [[nodiscard]] [[gnu::visibility("default")]] Work {  // gcc 12 takes COL_EXPORT beside no other attribute
 public:
  Work() = default;  // of an operation that has ended

  // Blocks until the operation has ended, at most for its timeout counted from now. Throws its error, every time.
  void wait();
  // The same for `budget` at most: false when it has not ended by then; it goes on.
  bool wait_for(Duration budget);
  // Whether it has ended. Does not block. Throws its error.
  bool test();
  // What it has failed with; nothing after success, and as long as it has not ended. Does not block, move it on, or
  // throw it. Throws invalid_argument while a call of the group is under way, as source() does.
  std::optional<Error> error() const;
  // After the end of a receive: the rank that the message came from; else -1.
  int source() const;

 private:
  friend class Group;
  struct Handle;
  explicit Work(std::shared_ptr<Handle> handle);
  std::shared_ptr<Handle> handle_;  // shared by the copies; null when there is nothing to wait for
};

// One message of a batch.
struct COL_EXPORT Message {
  enum class Direction : std::uint8_t { send, recv };
  Direction direction = Direction::send;
  ConstTensorView sent = {};
  TensorView received = {};
  int peer = 0;
  int tag = 0;

  static Message send(ConstTensorView data, int destination, int tag = 0);
  static Message recv(TensorView data, int source, int tag = 0);
};

// A step that this rank has executed in a collective.
struct TraceEntry {
  std::uint64_t operation = 0;  // number of the collective in its group, from 1; long ones on GPUs may have several
  Collective collective = Collective::barrier;
  std::string_view algorithm = {};  // valid for as long as the group
  std::size_t round = 0;
  Step step = {};  // of a backend's own collective, which has no plan, this is empty and its entry the only one
};

// A named, ordered set of ranks. A cheap handle: copies mean the same group.
// One collective call as data. What each side holds, and who passes counts, says its row in <col/collective.hpp>: a
// list for all ranks in the one that belongs to the side with blocks, alltoallv's in both. A broadcast has its vector
// in `out`.
struct Call {
  Collective collective = Collective::barrier;
  ConstTensorView in = {};
  TensorView out = {};
  std::span<const std::size_t> in_counts = {}, out_counts = {};
};

class COL_EXPORT Group {
 public:
  class State;  // internal

  Group() = default;  // no group: false, and every call on it throws not_initialized
  explicit operator bool() const noexcept { return state_ != nullptr; }

  int rank() const;
  int size() const;
  std::string_view name() const;
  // What moves the data: "shm", "gloo", "nccl", or "self" in a world of one on the CPU.
  std::string_view backend() const;
  // Whose memory the group moves without copies, and alloc() gives: the host's, or, with backend nccl, a GPU's.
  Device device() const;
  // The ranks in the job (those of col::init()'s group) of this group's ranks, in its order.
  std::vector<int> ranks() const;
  // ranks()[rank]. Requires: a rank of this group (else invalid_argument).
  int world_rank(int rank) const;
  // The rank here of that rank of the job; -1 when it is no member.
  int rank_of(int world_rank) const;
  // How long its calls wait where Options::timeout does not say.
  Duration timeout() const;

  // Leaves the group, as destroy_collective_group(name()) does: not collective; ends what is in flight here, for a few
  // seconds at most; afterwards every handle to it throws not_initialized, but for this call, which does nothing then.
  // Throws mismatch, after it has left, when the ranks have made different calls and that could not be told before: in
  // the last call of a group, say. Of ranks that found nothing to wait for, the last one to leave is told.
  void destroy();

  // The collective of that name: run() blocks, start() is its i-form. What the methods below are made of, for who has a
  // call as data. Requires: a collective (for send and recv invalid_argument), and what the method of that name
  // requires.
  void run(const Call& call, const Options& options = {});
  Work start(const Call& call, const Options& options = {});

  // out[i] = op over all ranks of in[i]. Same bits on all ranks. Requires: in.count == out.count, equal dtypes.
  void allreduce(ConstTensorView in, TensorView out, const Options& options = {});
  void allreduce(TensorView inout, const Options& options = {});
  Work iallreduce(ConstTensorView in, TensorView out, const Options& options = {});
  // As allreduce, on the root only: out elsewhere is not touched, and may be empty.
  void reduce(ConstTensorView in, TensorView out, const Options& options = {});
  void reduce(TensorView inout, const Options& options = {});
  Work ireduce(ConstTensorView in, TensorView out, const Options& options = {});
  // out[i] = op over the ranks 0 to this one of in[i]; exscan: 0 to the one before, and rank 0's out is not touched.
  // avg divides by size().
  void scan(ConstTensorView in, TensorView out, const Options& options = {});
  Work iscan(ConstTensorView in, TensorView out, const Options& options = {});
  void exscan(ConstTensorView in, TensorView out, const Options& options = {});
  Work iexscan(ConstTensorView in, TensorView out, const Options& options = {});
  // Block r of `in`, reduced over all ranks, goes to rank r. Requires: in.count == size() * out.count.
  void reduce_scatter(ConstTensorView in, TensorView out, const Options& options = {});
  Work ireduce_scatter(ConstTensorView in, TensorView out, const Options& options = {});
  // The same with counts that differ: rank r gets counts[r] elements. Requires: the same counts on all ranks, in.count
  // == their sum, out.count == counts[rank()].
  void reduce_scatterv(ConstTensorView in, TensorView out, std::span<const std::size_t> counts,
                       const Options& options = {});
  Work ireduce_scatterv(ConstTensorView in, TensorView out, std::span<const std::size_t> counts,
                        const Options& options = {});

  // Every rank gets the root's elements.
  void broadcast(TensorView inout, const Options& options = {});
  Work ibroadcast(TensorView inout, const Options& options = {});
  // out holds every rank's `in`, in rank order. Requires: out.count == size() * in.count.
  void allgather(ConstTensorView in, TensorView out, const Options& options = {});
  Work iallgather(ConstTensorView in, TensorView out, const Options& options = {});
  // The same with counts that differ: rank r gives counts[r] elements. Requires: the same counts on all ranks,
  // in.count == counts[rank()], out.count == their sum.
  void allgatherv(ConstTensorView in, TensorView out, std::span<const std::size_t> counts, const Options& options = {});
  Work iallgatherv(ConstTensorView in, TensorView out, std::span<const std::size_t> counts,
                   const Options& options = {});
  // The root gets every rank's `in`, in rank order; out elsewhere is not touched, and may be empty.
  void gather(ConstTensorView in, TensorView out, const Options& options = {});
  Work igather(ConstTensorView in, TensorView out, const Options& options = {});
  // The same with counts that differ. `counts` is looked at on the root only: counts[r] elements come from rank r.
  void gatherv(ConstTensorView in, TensorView out, std::span<const std::size_t> counts, const Options& options = {});
  Work igatherv(ConstTensorView in, TensorView out, std::span<const std::size_t> counts, const Options& options = {});
  // Rank r gets block r of the root's `in` (ignored elsewhere). Requires on the root: in.count == size() * out.count.
  void scatter(ConstTensorView in, TensorView out, const Options& options = {});
  Work iscatter(ConstTensorView in, TensorView out, const Options& options = {});
  // The same with counts that differ. `counts` is looked at on the root only: counts[r] elements go to rank r.
  void scatterv(ConstTensorView in, std::span<const std::size_t> counts, TensorView out, const Options& options = {});
  Work iscatterv(ConstTensorView in, std::span<const std::size_t> counts, TensorView out, const Options& options = {});
  // Block r of `in` goes to rank r; block r of `out` comes from it. Requires: in.count == out.count, a multiple of
  // size().
  void alltoall(ConstTensorView in, TensorView out, const Options& options = {});
  Work ialltoall(ConstTensorView in, TensorView out, const Options& options = {});
  // The same with counts that differ: in_counts[r] elements go to rank r, out_counts[r] come from it.
  void alltoallv(ConstTensorView in, std::span<const std::size_t> in_counts, TensorView out,
                 std::span<const std::size_t> out_counts, const Options& options = {});
  Work ialltoallv(ConstTensorView in, std::span<const std::size_t> in_counts, TensorView out,
                  std::span<const std::size_t> out_counts, const Options& options = {});
  // Returns after every rank has entered. The collectives that this rank has in flight in the group end first, so that
  // none of their buffers is in use afterwards. Messages stay in flight.
  void barrier(const Options& options = {});
  Work ibarrier(const Options& options = {});

  // Point to point. A send and a recv of unequal count or dtype are a mismatch, never a truncation: on the receiver,
  // and on a sender that still waits (a small message may have been accepted already; its sender then learns of it in
  // its next call that waits). Messages between two ranks with equal tags arrive in the order in which they were sent.
  // To oneself: a send is kept until the recv that takes it; a blocking recv of what was not sent before is
  // invalid_argument.
  // In a group of backend nccl, messages with tag 0 go from GPU to GPU by NCCL, which does one thing after another:
  // those that an i-form has started begin together, when this rank first waits, tests, or makes another call, and a
  // collective that comes after them waits for them. Those with another tag go through the host, and wait for nothing;
  // recv_any takes those only (with tag 0 it is invalid_argument).
  void send(ConstTensorView data, int destination, const Options& options = {});
  Work isend(ConstTensorView data, int destination, const Options& options = {});
  void recv(TensorView data, int source, const Options& options = {});
  Work irecv(TensorView data, int source, const Options& options = {});
  // Takes the next message with this tag from whichever rank sends one first, and returns that rank. Every message that
  // may come with the tag must have this count and dtype: another is a mismatch. One from oneself counts when it was
  // sent before.
  int recv_any(TensorView data, const Options& options = {});
  Work irecv_any(TensorView data, const Options& options = {});
  // Both at once, without deadlock in a ring. Requires: the two buffers do not overlap.
  void sendrecv(ConstTensorView send, int destination, TensorView recv, int source, const Options& options = {});
  // All at once, without deadlock whatever their order; ends when all have. `options.tag` is not looked at. Requires: a
  // buffer to receive into overlaps no other buffer of the batch.
  void batch(std::span<const Message> messages, const Options& options = {});
  Work ibatch(std::span<const Message> messages, const Options& options = {});

  // Several GPUs a rank, with Ray's names. Every rank passes one tensor for each GPU that it drives, as many on every
  // rank: with k of them on each of n ranks, tensor i of rank r takes part as flat rank r * k + i of n * k. These calls
  // count among the collectives of the group, in the same order, and end as they do; one is begun when those in flight
  // have ended. Blocking: when one returns, it has ended on all GPUs of this rank. It comes after what the default
  // stream of each GPU has been given.
  //
  // Requires a group of backend nccl; unavailable on others. The tensors of a call are in memory of GPUs, each on
  // another one, which its view's device names (an empty one's too), with equal count and dtype on all ranks. Anything
  // else is invalid_argument, before data moves, and the group stays usable; so is Options::stream, and an
  // Options::algorithm other than "nccl". What NCCL does not reduce by, or not as COL_NUMERICS and `deterministic` ask,
  // is unavailable.
  //
  // The GPUs of all ranks are connected by the first call that names them, in their order; the connections are kept for
  // the next such call, for eight lists of GPUs, of which the one that was used longest ago goes first. Ranks that do
  // not pass equally many tensors, or of which one passes a list of GPUs that it has used before where another passes a
  // new one, are a mismatch, which breaks the group. So does a GPU that two ranks pass, which is unavailable. The
  // timeout of a call covers the connecting.
  //
  // In place: tensors[i] = op over all tensors of all ranks. Same bits everywhere.
  void allreduce_multigpu(std::span<const TensorView> tensors, const Options& options = {});
  // The same for one tensor alone: number `root_tensor` of rank options.root. No other is touched.
  void reduce_multigpu(std::span<const TensorView> tensors, const Options& options = {}, int root_tensor = 0);
  // Every tensor gets the elements of number `root_tensor` of rank options.root.
  void broadcast_multigpu(std::span<const TensorView> tensors, const Options& options = {}, int root_tensor = 0);
  // outputs[i], which is on the GPU of inputs[i], gets the inputs of all flat ranks, in their order. Requires: one
  // output for each input, of n * k times its count; they may overlap only where inputs[i] is exactly the own block of
  // outputs[i].
  void allgather_multigpu(std::span<const TensorView> outputs, std::span<const ConstTensorView> inputs,
                          const Options& options = {});
  // The same into lists: outputs[i][f] gets the input of flat rank f. Requires: n * k tensors in each list, like
  // inputs[i] and on its GPU. No copies are made. All ranks use the same one of the two forms.
  void allgather_multigpu(std::span<const std::vector<TensorView>> outputs, std::span<const ConstTensorView> inputs,
                          const Options& options = {});
  // outputs[i] gets its flat rank's block of the reduction over all inputs. Requires: one input for each output, on its
  // GPU, of n * k times its count; they may overlap only where outputs[i] is exactly the own block of inputs[i].
  void reducescatter_multigpu(std::span<const TensorView> outputs, std::span<const ConstTensorView> inputs,
                              const Options& options = {});
  // The same from lists: outputs[i] gets the reduction of block f, its flat rank, of all lists. Requires: n * k tensors
  // in each list, like outputs[i] and on its GPU. No copies are made. All ranks use the same one of the two forms.
  void reducescatter_multigpu(std::span<const TensorView> outputs, std::span<const std::vector<ConstTensorView>> inputs,
                              const Options& options = {});
  // One message from the GPU of `tensor` to a GPU of another rank, which receives it with recv_multigpu on that GPU and
  // names this one. GPUs are numbered as the processes that have them number theirs. `n_elements` are the first that
  // are sent, or received; 0: all. Blocking: the send until its memory may be changed, which may be when the recv has
  // come; the recv until the data is there. Messages between two ranks pair in the order of their calls, whatever the
  // GPUs. Two that differ in count, dtype or a GPU are a mismatch, at the latest a second after they hang, or, with
  // COL_CHECK=strict, before anything moves. Connections between two GPUs are made and kept as above, eight for each
  // other rank. Rank and GPU that there are not, a message to oneself (copy it with cudaMemcpyPeer), a negative
  // n_elements or one beyond the tensor are invalid_argument, and the group stays usable.
  void send_multigpu(ConstTensorView tensor, int destination, int destination_gpu, const Options& options = {},
                     std::int64_t n_elements = 0);
  void recv_multigpu(TensorView tensor, int source, int source_gpu, const Options& options = {},
                     std::int64_t n_elements = 0);

  // New groups from the ranks of this one, over its backend. Collective over this group, blocking; every rank of it
  // calls it.
  //
  // Ranks of equal color form a group, in the order of `key`, then of rank; a negative color joins none and gets a
  // Group that is false. The names are derived from this group's.
  Group split(int color, int key = 0);
  // The ranks listed, in that order, as group `name`; the others get a Group that is false. Requires: the same list and
  // name on all ranks, no rank twice.
  Group subgroup(std::span<const int> ranks, std::string name);
  // All ranks in the same order.
  Group dup();
  // The ranks but for those `excluded`, in their order and numbered anew, as a group of their own: to go on with when a
  // rank was lost. As ncclCommShrink and MPI_Comm_shrink of ULFM, it may be called on a group that is broken, and the
  // group stays as it is: destroy it. Collective over the ranks that stay, blocking; the others do not call it, and may
  // have ended. An empty `name`: one derived from this group's.
  //
  // The ranks first agree through the store whom they leave out, and then connect anew, on every backend: with nccl too
  // a new communicator is made, as the old one went when the group broke. Each of the two takes the group's timeout at
  // most. Calls in flight in a group that is not broken are left as they are.
  //
  // Requires: each rank at most once, and not this one; the same ranks and name on all that call; a rank that was left
  // out takes no part in later calls on this group. An error of the agreement is the same on all: mismatch (who leaves
  // out whom), timeout (names who has not come), peer_lost (another one has died: leave it out as well),
  // already_initialized (the name is taken). Then, as after success, all of them can call it again. Under colrun it
  // needs --keep-going: the job ends otherwise when a rank fails. A store that a rank serves (several hosts without
  // colrun, or COL_STORE) ends with that rank: io.
  Group shrink(std::span<const int> excluded, std::string name = {});

  // Objects: any trivially copyable type, std::string, or a std::vector of a trivially copyable type. Sizes may differ
  // between ranks. Bytes are copied as they are: for ranks of one architecture and build.
  template <class T>
  void broadcast_object(T& object, const Options& options = {});
  template <class T>
  std::vector<T> allgather_object(const T& object, const Options& options = {});
  // On the root, every rank's object in rank order; elsewhere nothing.
  template <class T>
  std::vector<T> gather_object(const T& object, const Options& options = {});
  // Rank r gets objects[r] of the root, which has one for each rank; `objects` elsewhere is not looked at.
  template <class T>
  T scatter_object(const std::vector<T>& objects, const Options& options = {});
  template <class T>
  void send_object(const T& object, int destination, const Options& options = {});
  template <class T>
  T recv_object(int source, const Options& options = {});

  // Memory for buffers that the ranks of a node share: see alloc() in <col/memory.hpp>.
  [[nodiscard]] void* alloc(std::size_t bytes, const Options& options = {});

  // Why a call would run the algorithm that it would run: its name, the rule that fired, those passed over. `bytes` is
  // the whole vector, or all blocks together. Not collective; any thread may ask, also while another is in a call.
  std::string explain(Collective collective, std::size_t bytes, DType dtype = DType::float32,
                      const Options& options = {}) const;
  // What Options::algorithm may name for a collective in this group: the built-in ones, whether or not they can serve a
  // given call, then the backend's own. Not collective; any thread may ask.
  std::vector<std::string> algorithms(Collective collective) const;
  // From here on, what this rank executes is recorded (or no longer). Costs time and memory: for tests and teaching.
  void record_trace(bool on);
  // What has been recorded since record_trace(true) or the last call: by operation, in the order in which they ended,
  // and within one, step by step as they were begun. A backend's own collectives leave no trace.
  std::vector<TraceEntry> trace();

  // Mistakes, and what to write instead. docs/errors.md lists all that the compiler explains.
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
  friend class Context;
  friend class Work;
  explicit Group(std::shared_ptr<State> state);
  State& state() const;
  // What the object forms are made of.
  std::vector<std::byte> broadcast_bytes(std::span<const std::byte> bytes, const Options& options);
  std::vector<std::vector<std::byte>> allgather_bytes(std::span<const std::byte> bytes, const Options& options);
  std::vector<std::vector<std::byte>> gather_bytes(std::span<const std::byte> bytes, const Options& options);
  std::vector<std::byte> scatter_bytes(const std::vector<std::span<const std::byte>>& blocks, const Options& options);
  void send_bytes(std::span<const std::byte> bytes, int destination, const Options& options);
  std::vector<std::byte> recv_bytes(int source, const Options& options);
  std::shared_ptr<State> state_;  // shared: handles are copied freely, and a context keeps one in its registry
};

// What init_group needs to know.
struct COL_EXPORT GroupSpec {
  std::string name = "default";
  int rank = 0;
  int world_size = 1;
  // automatic: what COL_BACKEND names; else nccl when all ranks have a GPU current in the calling thread
  // (cudaSetDevice) and NCCL serves them: each its own, or, from NCCL 2.30.3 on and with NCCL_MULTI_RANK_GPU_ENABLE=1
  // on all ranks, shared ones; else shm when they share a host, else gloo.
  Backend backend = Backend::automatic;
  std::string backend_name = {};  // a backend added with register_backend; overrides `backend`
  Duration timeout = {};          // for making the group, and for its collectives; zero: the context's
  // Whether what the group does on GPUs runs in streams of the highest priority that the device has, so that it gets
  // ahead of the program's kernels; as of the same name in torch's options for NCCL. Calls in a stream of the caller's
  // that is being captured keep that one's priority. Groups made from this one take it over. Backends that move host
  // memory have no streams, and do not look at it; the ranks need not agree about it.
  bool is_high_priority_stream = false;
};

// Where this process, or this thread that plays a rank, stands in its job. from_environment() fills it from COL_*, or
// from the variables of another launcher.
struct COL_EXPORT ContextSpec {
  int rank = 0;
  int world_size = 1;
  int local_rank = 0;
  int local_world_size = 1;
  std::string job_id = {};
  int restart_count = 0;
  std::shared_ptr<Store> store = {};          // needed for worlds above one
  std::shared_ptr<ControlPage> control = {};  // may be null: then the death of a local rank is noticed later
  Duration timeout = {};                      // zero: 5 minutes
  // Who has said so: "colrun" (COL_*), "torchrun", "slurm", "openmpi", "mpich", "pmi" (another launcher that speaks
  // PMI), "kubernetes"; empty in a world of one that nobody has told anything.
  std::string launcher = {};

  // Takes COL_* when they are set, else the first complete set of another launcher's variables (docs/environment.md),
  // else a world of one. Throws invalid_argument naming the variable and what it should be.
  //
  // Does not wait for other ranks. Under another launcher and without COL_STORE it makes, or joins, a directory of the
  // job's own on this host, and may wait for COL_TIMEOUT (else 5 minutes) at most: for other processes of this user
  // that are just doing so, and, under MPICH, for the launcher to name the job. With ranks on several hosts, rank 0
  // serves the store from here on (COL_RDZV_ENDPOINT). Errors then: timeout; unavailable, when nothing tells where rank
  // 0 is, its port is taken, or the launcher does not answer; io or resource, when the directory cannot be used.
  static ContextSpec from_environment();
};

// A registry of groups with the store and settings to make them. A process has one, made from the environment at its
// first use; a thread can have its own through Context::Scope (ranks as threads, tests).
//
// Thread safe.
class COL_EXPORT Context {
 public:
  explicit Context(ContextSpec spec);
  ~Context();  // destroys the groups that are left
  Context(const Context&) = delete;
  Context& operator=(const Context&) = delete;

  // The innermost Scope's context in this thread, else the process's.
  static Context& current();

  // Makes a context current in this thread for the life of the Scope.
  class COL_EXPORT Scope {
   public:
    explicit Scope(Context& context) noexcept;
    ~Scope();
    Scope(const Scope&) = delete;
    Scope& operator=(const Scope&) = delete;

   private:
    Context* previous_;
  };

  const ContextSpec& spec() const noexcept;

  // Joins the group: collective, blocks until all `world_size` ranks have joined, or the timeout. Verifies that they
  // agree on name, world size, backend and job; a disagreement is `mismatch` on every rank and names the odd one.
  // Errors: already_initialized (name taken here, or the rank was started twice), invalid_argument, unavailable,
  // timeout.
  Group init_group(const GroupSpec& spec);
  // The group of that name. One that this process has not joined yet is adopted when COL_GROUP_* or a record in the
  // store says how (blocking, as init_group); else not_initialized.
  Group group(std::string_view name);
  bool is_initialized(std::string_view name) const;
  // Leaves the group, as Group::destroy() does. Returns false when there is none of that name.
  bool destroy_group(std::string_view name);
  // Destroys all groups and says in the control page that this rank left in good order; then throws the mismatch that
  // Group::destroy() would have thrown. Idempotent.
  void finalize();

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

// ---- Over the current context, with the names of ray.util.collective

// Joins group "default": with the ranks that the environment tells of (colrun, or another launcher; see
// ContextSpec::from_environment), else as a world of one. Called again, it returns the same group.
//
// What the program itself wants: a backend named here wins over COL_BACKEND, and both over the choice by the machine.
struct InitOptions {
  Backend backend = Backend::automatic;
  Duration timeout = {};  // for making the group, and for its collectives; zero: the context's
};
COL_EXPORT Group init(const InitOptions& options = {});
// Context::finalize() of the current context. Call it when a rank is done: peers then know it did not crash.
COL_EXPORT void finalize();
// "0.1.0"
COL_EXPORT std::string_view version() noexcept;

COL_EXPORT Group init_collective_group(int world_size, int rank, Backend backend = Backend::automatic,
                                       std::string_view group_name = "default", Duration timeout = {});
// Leaves the group, as Group::destroy() does. Unknown names are logged as a warning, as in Ray.
COL_EXPORT void destroy_collective_group(std::string_view group_name = "default");
COL_EXPORT bool is_group_initialized(std::string_view group_name = "default");
// -1 when the group is not initialized in this process.
COL_EXPORT int get_rank(std::string_view group_name = "default");
COL_EXPORT int get_collective_group_size(std::string_view group_name = "default");
// The group's handle, for the out-of-place and v-forms; adopts as Context::group().
COL_EXPORT Group get_group(std::string_view group_name = "default");
COL_EXPORT bool gloo_available();
// Starts the CUDA driver, where there is one: processes that are forked later have no CUDA.
COL_EXPORT bool nccl_available();
// Why not, in words; empty when available.
COL_EXPORT std::string gloo_unavailable_reason();
COL_EXPORT std::string nccl_unavailable_reason();

// In place, on the group that options.group names; see Group for what each does.
COL_EXPORT void allreduce(TensorView inout, const Options& options = {});
COL_EXPORT void reduce(TensorView inout, const Options& options = {});
COL_EXPORT void broadcast(TensorView inout, const Options& options = {});
// clang-format off
template <class T, detail::ReductionOperator O> void allreduce(T&&, O&&) = delete;  // the operator is an option: write {.op = col::ReduceOp::max}
template <class T, detail::ReductionOperator O> void reduce(T&&, O&&) = delete;  // the operator is an option: write {.op = col::ReduceOp::max}
template <detail::Pointer P, class... More> void allreduce(P&&, More&&...) = delete;  // a pointer has no count: write std::span(pointer, count)
template <detail::Pointer P, class... More> void broadcast(P&&, More&&...) = delete;  // a pointer has no count: write std::span(pointer, count)
// clang-format on
// outputs[r] gets rank r's `in`. Requires: outputs.size() == group size, all of in's count and dtype, no two
// overlapping.
COL_EXPORT void allgather(std::span<const TensorView> outputs, ConstTensorView in, const Options& options = {});
// `out` gets this rank's block of the reduction over all ranks of `inputs`. Requires: inputs.size() == group size, all
// of out's count and dtype.
COL_EXPORT void reducescatter(TensorView out, std::span<const ConstTensorView> inputs, const Options& options = {});
// outputs[r] gets rank r's `in`, on the root; elsewhere outputs is not looked at.
COL_EXPORT void gather(std::span<const TensorView> outputs, ConstTensorView in, const Options& options = {});
// `out` gets inputs[rank] of the root; elsewhere inputs is not looked at.
COL_EXPORT void scatter(TensorView out, std::span<const ConstTensorView> inputs, const Options& options = {});
// outputs[r] gets inputs[rank] of rank r.
COL_EXPORT void alltoall(std::span<const TensorView> outputs, std::span<const ConstTensorView> inputs,
                         const Options& options = {});
COL_EXPORT void barrier(const Options& options = {});
COL_EXPORT void send(ConstTensorView data, int destination, const Options& options = {});
COL_EXPORT void recv(TensorView data, int source, const Options& options = {});

// Several GPUs a rank; see Group for what each does.
COL_EXPORT void allreduce_multigpu(std::span<const TensorView> tensors, const Options& options = {});
COL_EXPORT void reduce_multigpu(std::span<const TensorView> tensors, const Options& options = {}, int root_tensor = 0);
COL_EXPORT void broadcast_multigpu(std::span<const TensorView> tensors, const Options& options = {},
                                   int root_tensor = 0);
COL_EXPORT void allgather_multigpu(std::span<const TensorView> outputs, std::span<const ConstTensorView> inputs,
                                   const Options& options = {});
COL_EXPORT void allgather_multigpu(std::span<const std::vector<TensorView>> outputs,
                                   std::span<const ConstTensorView> inputs, const Options& options = {});
COL_EXPORT void reducescatter_multigpu(std::span<const TensorView> outputs, std::span<const ConstTensorView> inputs,
                                       const Options& options = {});
COL_EXPORT void reducescatter_multigpu(std::span<const TensorView> outputs,
                                       std::span<const std::vector<ConstTensorView>> inputs,
                                       const Options& options = {});
COL_EXPORT void send_multigpu(ConstTensorView tensor, int destination, int destination_gpu, const Options& options = {},
                              std::int64_t n_elements = 0);
COL_EXPORT void recv_multigpu(TensorView tensor, int source, int source_gpu, const Options& options = {},
                              std::int64_t n_elements = 0);
// Waits until all that this process has put on the GPU has ended: asynchronous calls, and kernels and copies of the
// program's own. `gpu_id` is as the process numbers its GPUs. Blocks for `timeout` at most, else the current context's,
// and is ended by an abort of the job. Needs no group. Thread safe. Errors: invalid_argument (there is no such GPU),
// unavailable (no CUDA, and why; a driver before CUDA 12.5; a stream of the GPU is being captured, which spoils the
// capture), timeout, io (the work failed).
COL_EXPORT void synchronize(int gpu_id, Duration timeout = {});

// ---- Object forms

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
