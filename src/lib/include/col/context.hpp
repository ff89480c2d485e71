// The place of a process in its job, and the groups that it is in. <col/group.hpp> includes this file and has class
// Group.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <col/export.hpp>
#include <col/job.hpp>
#include <col/store.hpp>
#include <col/types.hpp>

namespace col {

class Group;

// The settings of a group for Context::init_group().
struct COL_EXPORT GroupSpec {
  std::string name = "default";
  int rank = 0;
  int world_size = 1;
  // Backend::automatic takes the first of these that applies:
  // - the backend that COL_BACKEND names; of gloo or ucx over several hosts, ranks on the same host still share memory
  // - nccl, if all ranks have a GPU current in the calling thread (cudaSetDevice) and NCCL can serve them. Each rank
  //   needs a GPU of its own. From NCCL 2.30.3 on, ranks may share one, if all ranks set NCCL_MULTI_RANK_GPU_ENABLE=1.
  // - shm, if all ranks share a host
  // - hosts, if ranks are on several hosts and two of them share one
  // - gloo
  Backend backend = Backend::automatic;
  std::string backend_name = {};  // a backend by its name ("ucx", or one of register_backend()); wins over `backend`
  Duration timeout = {};          // for making the group, and for its calls; zero: the context's
  // The group's work on GPUs runs in streams of the highest priority that the device has, so that it gets ahead of the
  // program's kernels. torch's NCCL options have a flag of the same name. A call in a caller's stream that is being
  // captured keeps the priority of that stream. Sub-groups inherit the flag. Ranks need not agree on it. Backends for
  // host memory have no streams and ignore it.
  bool is_high_priority_stream = false;
  // Settings of NCCL for this group, by name: "cta_policy=efficiency,max_ctas=8". docs/gpu.md lists them. They win over
  // COL_NCCL_SETTINGS, name by name, and NCCL's own variables win over both. All ranks need the same, else the group is
  // a mismatch. invalid_argument: an unknown name, or a value that does not fit. unavailable: this NCCL is too old for
  // it. Sub-groups inherit them. Other backends do not look at them.
  std::string nccl_settings = {};
  // True: the context keeps the group until it is destroyed, and finds it by its name. False: the ranks need the name
  // only to make the group. This rank then leaves it when its last handle and last Work are gone; class Group says how.
  // No other process finds it by its name. Ranks need not agree on this flag.
  bool is_kept = true;
};

// The place of this process in its job, or of this thread if threads play the ranks. from_environment() fills it from
// COL_*, or from the variables of another launcher.
struct COL_EXPORT ContextSpec {
  int rank = 0;
  int world_size = 1;
  int local_rank = 0;
  int local_world_size = 1;
  std::string job_id = {};
  int restart_count = 0;
  std::shared_ptr<Store> store = {};          // needed for worlds of more than one rank
  std::shared_ptr<ControlPage> control = {};  // see <col/job.hpp>; if null, the death of a local rank is noticed later
  Duration timeout = {};                      // zero: 5 minutes
  // The source of these values: "colrun" (COL_*), "torchrun", "slurm", "openmpi", "mpich", "pmi" (another launcher that
  // speaks PMI), "kubernetes". Empty for a world of one rank without any launcher.
  std::string launcher = {};
  // Called by every wait of the context's groups about every 50 ms, in the thread that waits; not by calls that end
  // sooner. To end the wait, it throws anything: an interpreter ends a call on Ctrl-C in this way. The call throws this
  // exception as it is. The group is then broken on all ranks, with `aborted`, and the outputs hold unspecified values.
  // If the wait was for making a group, or for this rank's turn (serialize), only this rank notices. The function must
  // not use a group of the context. Empty: none.
  Interrupt interrupt = {};
  // The rule for two threads that use one group at once. False: the second gets invalid_argument. True: it waits until
  // the call of the first has ended, in the order of arrival, and for its own timeout at most (timeout). Then it has
  // its whole timeout again. Work::test() waits for no turn, and Work::wait_for() no longer than its budget. The ranks
  // must still make the same calls in the same order.
  bool serialize = false;
  // True: this process is a spare (COL_SPARE), which is in no group yet. Its `rank` is a number that no rank of the job
  // has; messages and reports use it. Its local_rank is its place on the host. Context::init_group() for "default" then
  // does what join_group() does, and waits without a limit.
  bool is_spare = false;
  // The order of reductions whose call names none (Options::order): any, rank or tree. `tree` holds for those over all
  // ranks: allreduce, reduce and reduce_scatter(v). Scans stay as they are. Where it is any, COL_ORDER counts. All
  // ranks need the same.
  Order order = Order::any;

  // Takes COL_* if they are set, else the first complete set of another launcher's variables (docs/environment.md),
  // else a world of one. Throws invalid_argument that names the variable and says what it should be.
  //
  // Does not wait for other ranks. Under another launcher and without COL_STORE, it makes or joins a directory of the
  // job on this host. That may take COL_TIMEOUT (else 5 minutes) at most: it waits for other processes of this user
  // that do the same at this moment, and, under MPICH, until the launcher names the job. If the ranks run on several
  // hosts, rank 0 serves the store from here on (COL_RDZV_ENDPOINT). Errors then: timeout; unavailable (nothing tells
  // where rank 0 is, its port is taken, or the launcher does not answer); io or resource (the directory cannot be
  // used).
  static ContextSpec from_environment();

  // The place of one of `world_size` ranks that share only a store and know their own numbers: for programs that start
  // their ranks by themselves, as processes on any hosts or as threads. Every rank calls it.
  //
  //   auto store = col::open_store("tcp://node1:4711", {.token = token});
  //   col::Context context(col::ContextSpec::meet(store, rank, world_size, "run 17"));
  //
  // Fills local_rank, local_world_size (ranks with one boot id and one pid namespace are on one host), job_id, store,
  // timeout and control. The ranks of a host share the page `control`. It has no name, so nothing stays on the host,
  // however the ranks end. The rank has then joined its job: if its process ends before Context::finalize(), the others
  // get peer_lost. `launcher` stays empty, and restart_count 0. A world of one meets nobody: `store` may be null, and
  // `control` is null.
  //
  // job_id: equal on all ranks; each start of a job needs another one if it uses the same store. All ranks may also
  // meet again under the same job_id, after the earlier meeting has ended; but a single rank that is started again
  // waits in vain.
  //
  // Collective: blocks until all ranks have come, for `timeout` at most (zero: 5 minutes), which also becomes the
  // context's. If the caller has already `spent` a part of it, to reach the store for example, this call waits for the
  // rest, and errors name the whole. `interrupt` can end this wait too, and becomes the context's. A rank makes three
  // calls to the store if the others are there; rank 0 makes two for each rank. Some short keys for each host stay in
  // the store. Thread safe. After a failure, all ranks may call it again.
  //
  // Errors: invalid_argument (a rank outside of the world; no store for several ranks), mismatch (two processes with
  // one rank; ranks that were told of different world sizes or have other releases of col: it names the odd one),
  // timeout that names the ranks that did not come, peer_lost (a rank of this host ended during the meeting), io,
  // resource.
  static ContextSpec meet(std::shared_ptr<Store> store, int rank, int world_size, std::string job_id = {},
                          Duration timeout = {}, Interrupt interrupt = {}, Duration spent = {});
};

// A registry of groups, with the store and the settings to make them. A process has one, made from the environment at
// its first use. A thread can have its own through Context::Scope: for tests, and for ranks that are threads.
//
// Thread safe.
class COL_EXPORT Context {
 public:
  explicit Context(ContextSpec spec);
  ~Context();  // destroys the groups that are left
  Context(const Context&) = delete;
  Context& operator=(const Context&) = delete;

  // The context of the innermost Scope in this thread, else the context of the process.
  //
  // A process that was forked from a rank is no rank: in it, the context of the parent has no groups and makes none
  // (not_initialized). Two kinds of children get a context of their own here: a child that sets its own COL_* variables
  // before its first call, and a child of a world of one.
  static Context& current();

  // Sets two members of the process's ContextSpec that the environment does not give: interrupt and serialize. The
  // binding of another language calls it when it is loaded: after the first use of that context, it has no effect.
  // Thread safe.
  static void embed(Interrupt interrupt, bool serialize = false);

  // Makes a context current in this thread as long as the Scope lives.
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

  // Joins the group. Collective: blocks until all `world_size` ranks have joined, or until the timeout. Checks that the
  // ranks agree on name, world size, backend and job. If they do not, every rank throws mismatch, which names the rank
  // that differs. Errors: already_initialized (the name is taken here, or the rank was started twice),
  // invalid_argument, unavailable, timeout. In a spare, init_group() for "default" does what join_group() does: the
  // group is as the others have made it.
  Group init_group(const GroupSpec& spec);
  // Joins a group that already exists: waits until its ranks call renew() with room for this process, and returns the
  // group of the epoch that begins then (<col/renewal.hpp>). Blocks for `timeout` at most (zero: the context's). In a
  // spare, zero means no limit: it sleeps until the others take it in, or until the launcher ends it. Requires: the
  // context has the store and the job_id of the group's ranks, and a rank that none of them has: a free number, or that
  // of a rank that was lost. A group that was made with one rank takes nobody in. Errors: timeout (nobody has made the
  // group, or its ranks did not renew it), already_initialized (this process is in a group of that name),
  // invalid_argument (no store), peer_lost (no rank of it is left), io, and errors of connecting.
  Group join_group(std::string_view name, Duration timeout = {});
  // The group of that name. If this process has not joined it yet, it joins now, as init_group() does (blocking), if
  // COL_GROUP_* or a record in the store says how. Otherwise throws not_initialized.
  Group group(std::string_view name);
  bool is_initialized(std::string_view name) const;
  // Leaves the group, as Group::destroy() does. Returns false when there is none of that name.
  bool destroy_group(std::string_view name);
  // Destroys all groups, and records in the control page that this rank left in good order. Then throws the mismatch
  // that Group::destroy() would have thrown. Idempotent.
  void finalize();

 private:
  class Impl;
  std::shared_ptr<Impl> impl_;  // shared: its groups have weak references, and lock them for a moment
};

// ---- Groups that a process declares without being one of their ranks ------------------------------------------------

// A group that a process describes without being one of its ranks, as Ray's create_collective_group() does.
struct COL_EXPORT GroupDeclaration {
  std::string name = "default";
  std::vector<int> ranks = {};           // ranks[r]: the rank in the job of the group's rank r
  Backend backend = Backend::automatic;  // as in GroupSpec; need not be available in the process that declares
  std::string backend_name = {};         // a backend that the ranks add with register_backend(); it wins over `backend`
  std::string job_id = {};               // as in the ranks' ContextSpec
  int restart_count = 0;                 // as in the ranks' ContextSpec
};
// Writes the group into `store`, which must be that of its ranks. Each of them then joins at its first call that names
// the group, as Context::group() does: that call waits for the others. Does not wait for any rank, and may come before
// they have started. Ranks that look earlier get not_initialized, and may try again.
//
// A second declaration with the same ranks and backend changes nothing. A different one throws already_initialized,
// also if the ranks have made the group by themselves (init_group), until the group is undeclared, or destroyed on its
// rank 0 (destroy_collective_group, Group::destroy). A rank that has left a group joins only a later declaration. So
// destroy the group on all its ranks before you declare it again.
//
// Errors: invalid_argument (no store, no name, no ranks, a negative rank, a rank twice), already_initialized, those of
// the store. A rank that the job does not have is no error here: the other ranks wait for it when they join. Blocks
// only as the store does. Thread safe.
COL_EXPORT void declare_group(std::shared_ptr<Store> store, const GroupDeclaration& group);
// Removes the record of the group: from now on, nobody joins by it. Ranks that have joined keep the group. Returns
// whether there was a record. Errors: invalid_argument (no store, no name), those of the store. Thread safe.
COL_EXPORT bool undeclare_group(std::shared_ptr<Store> store, std::string_view name, std::string_view job_id = {},
                                int restart_count = 0);

}  // namespace col
