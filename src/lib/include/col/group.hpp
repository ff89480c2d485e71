// Groups of ranks and the collectives on them.
//
// Two ways to say the same: methods of Group, and free functions with Ray's names that find the group by name in the
// current context.
//
// All collectives here block until this rank's part is done: its output is complete, and its input may be reused. They
// end with an error after the timeout (Options::timeout, else COL_TIMEOUT, else 5 minutes), never later. Every rank of
// a group must call the same collectives in the same order with equal op, count, dtype and root.
//
// Errors common to all: invalid_argument and not_initialized, before any data moves: the group stays usable. Then
// mismatch, timeout, peer_lost, aborted, resource, io, internal: after one of these the group is broken, outputs hold
// unspecified values, inputs are intact, and later calls throw aborted naming the first cause; destroy the group and
// create it anew.
//
// Thread safety: different groups may be used from different threads at once. One group used by two threads at once is
// an error (invalid_argument), not a race.
//
// In place: an output may be exactly the input (allreduce, reduce, alltoall), or hold the input at its own block
// (allgather, gather, scatter). Any other overlap is invalid_argument.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <col/error.hpp>
#include <col/export.hpp>
#include <col/job.hpp>
#include <col/store.hpp>
#include <col/types.hpp>

namespace col {

class Context;

// Per-call options; write what differs: {.op = ReduceOp::max, .root = 2}.
struct Options {
  std::string_view group = "default";  // free functions; a method refuses another group's name
  Op op = ReduceOp::sum;               // reductions
  int root = 0;                        // rooted collectives
  std::string_view algorithm = {};     // empty: choose; else the name of a native entry of the backend
  Duration timeout = {};               // zero: the context's
  Stream stream = {};                  // device memory only
  int tag = 0;                         // send and recv: only equal tags pair
};

// A named, ordered set of ranks. A cheap handle: copies mean the same group.
class COL_EXPORT Group {
 public:
  int rank() const;
  int size() const;
  std::string_view name() const;
  // What moves the data: "gloo", or "self" in a world of one.
  std::string_view backend() const;

  // out[i] = op over all ranks of in[i]. Same bits on all ranks. Requires: in.count == out.count, equal dtypes.
  void allreduce(ConstTensorView in, TensorView out, const Options& options = {});
  void allreduce(TensorView inout, const Options& options = {});
  // As allreduce, on the root only: out elsewhere is not touched, and may be empty.
  void reduce(ConstTensorView in, TensorView out, const Options& options = {});
  void reduce(TensorView inout, const Options& options = {});
  // Every rank gets the root's elements.
  void broadcast(TensorView inout, const Options& options = {});
  // out holds every rank's `in`, in rank order. Requires: out.count == size() * in.count.
  void allgather(ConstTensorView in, TensorView out, const Options& options = {});
  // The same with counts that differ: rank r gives counts[r] elements. Requires: the same counts on all ranks,
  // in.count == counts[rank()], out.count == their sum.
  void allgatherv(ConstTensorView in, TensorView out, std::span<const std::size_t> counts, const Options& options = {});
  // The root gets every rank's `in`, in rank order; out elsewhere is not touched, and may be empty.
  void gather(ConstTensorView in, TensorView out, const Options& options = {});
  // Rank r gets block r of the root's `in` (ignored elsewhere). Requires on the root: in.count == size() * out.count.
  void scatter(ConstTensorView in, TensorView out, const Options& options = {});
  // Block r of `in` goes to rank r; block r of `out` comes from it. Requires: in.count == out.count, a multiple of
  // size().
  void alltoall(ConstTensorView in, TensorView out, const Options& options = {});
  // The same with counts that differ: in_counts[r] elements go to rank r, out_counts[r] come from it.
  void alltoallv(ConstTensorView in, std::span<const std::size_t> in_counts, TensorView out,
                 std::span<const std::size_t> out_counts, const Options& options = {});
  // Returns after every rank has entered.
  void barrier(const Options& options = {});

  // Blocking point to point. A send and a recv of unequal count or dtype are a mismatch on both sides, never a
  // truncation. To oneself: a send is kept until the recv that takes it.
  void send(ConstTensorView data, int destination, const Options& options = {});
  void recv(TensorView data, int source, const Options& options = {});
  // Both at once, without deadlock in a ring.
  void sendrecv(ConstTensorView send, int destination, TensorView recv, int source, const Options& options = {});

 private:
  friend class Context;
  class State;
  explicit Group(std::shared_ptr<State> state);
  std::shared_ptr<State> state_;  // shared: handles are copied freely, and a context keeps one in its registry
};

// What init_group needs to know.
struct COL_EXPORT GroupSpec {
  std::string name = "default";
  int rank = 0;
  int world_size = 1;
  Backend backend = Backend::automatic;
  std::string backend_name = {};  // a backend added with register_backend; overrides `backend`
  Duration timeout = {};          // for making the group, and for its collectives; zero: the context's
};

// Where this process, or this thread that plays a rank, stands in its job. from_environment() fills it from COL_*.
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

  // Throws invalid_argument naming the variable and what it should be. Does not wait.
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
  // Leaves the group; not collective. Returns false when there is none of that name. Handles to it become broken.
  bool destroy_group(std::string_view name);
  // Destroys all groups and says in the control page that this rank left in good order. Idempotent.
  void finalize();

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

// ---- Over the current context, with the names of ray.util.collective
// -------------------------------------------------

// Joins group "default": with the ranks that the environment tells of (colrun), else as a world of one. Called again,
// it returns the same group.
COL_EXPORT Group init();
// Context::finalize() of the current context. Call it when a rank is done: peers then know it did not crash.
COL_EXPORT void finalize();
// "0.1.0"
COL_EXPORT std::string_view version() noexcept;

COL_EXPORT Group init_collective_group(int world_size, int rank, Backend backend = Backend::automatic,
                                       std::string_view group_name = "default", Duration timeout = {});
// Unknown names are logged as a warning, as in Ray.
COL_EXPORT void destroy_collective_group(std::string_view group_name = "default");
COL_EXPORT bool is_group_initialized(std::string_view group_name = "default");
// -1 when the group is not initialized in this process.
COL_EXPORT int get_rank(std::string_view group_name = "default");
COL_EXPORT int get_collective_group_size(std::string_view group_name = "default");
// The group's handle, for the out-of-place and v-forms; adopts as Context::group().
COL_EXPORT Group get_group(std::string_view group_name = "default");
COL_EXPORT bool gloo_available();
COL_EXPORT bool nccl_available();
// Why not, in words; empty when available.
COL_EXPORT std::string gloo_unavailable_reason();
COL_EXPORT std::string nccl_unavailable_reason();

// In place, on the group that options.group names; see Group for what each does.
COL_EXPORT void allreduce(TensorView inout, const Options& options = {});
COL_EXPORT void reduce(TensorView inout, const Options& options = {});
COL_EXPORT void broadcast(TensorView inout, const Options& options = {});
// outputs[r] gets rank r's `in`. Requires: outputs.size() == group size, all of in's count and dtype, no two
// overlapping.
COL_EXPORT void allgather(std::span<const TensorView> outputs, ConstTensorView in, const Options& options = {});
COL_EXPORT void barrier(const Options& options = {});
COL_EXPORT void send(ConstTensorView data, int destination, const Options& options = {});
COL_EXPORT void recv(TensorView data, int source, const Options& options = {});

}  // namespace col
