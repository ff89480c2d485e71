#include "context.hpp"

#include <unistd.h>

#include <chrono>
#include <exception>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "arguments.hpp"
#include "errors.hpp"
#include "gil.hpp"
#include "group.hpp"
#include "interrupt.hpp"
#include "work.hpp"

namespace col::python {
namespace {

// Made by init(store=…); null if the environment describes the job. Never destroyed: at exit, other threads may still
// be inside a call.
struct OwnContext {
  std::shared_ptr<Context> context = {};
  pid_t pid = 0;  // that made it: a process that was forked from a rank is none

  bool is_parents() const { return context && pid != getpid(); }
};
OwnContext& own() {
  static auto* const own = new OwnContext;  // guarded by the GIL
  return *own;
}

// Nobody shares a world of one: a child of it begins anew.
std::shared_ptr<Context> own_context() {
  return own().is_parents() && own().context->spec().world_size == 1 ? nullptr : own().context;
}

void let_go_of(std::shared_ptr<Context>& context) {
  if (context) without_gil([&] { context.reset(); });
}

Duration duration_or_default(nb::handle timeout, const char* function) {
  return timeout.is_none() ? Duration::zero() : duration_of(timeout, function);
}

struct Explicit {
  std::optional<std::string> store;
  std::optional<int> rank, world_size;
  std::optional<std::string> token, job_id;

  bool is_given() const { return store || rank || world_size || token || job_id; }
};

// Blocks until all ranks have come.
ContextSpec spec_of(const Explicit& given, Duration timeout, const std::string& function,
                    Interrupt interrupt = check_signals, Duration spent = {}) {
  if (!given.rank || !given.world_size)
    refuse(function +
           ": store=, rank= and world_size= belong together; without all three, the environment says who this is");
  if (!given.store && *given.world_size > 1)
    refuse(
        function + ": " + std::to_string(*given.world_size) +
        " ranks need a store=, where they meet: file:///a/directory/all/ranks/share, or the url of a col.StoreServer");
  std::shared_ptr<Store> store;
  if (given.store)
    store = open_store(*given.store, {.token = given.token.value_or(""),
                                      .job = given.job_id ? store_job(*given.job_id, 0) : "",
                                      .timeout = timeout});
  return ContextSpec::meet(std::move(store), *given.rank, *given.world_size, given.job_id.value_or(""), timeout,
                           std::move(interrupt), spent);
}

void refuse_second() {
  if (own().context && !own().is_parents())
    throw Error(ErrorCode::already_initialized, "init: this process is in a job already; finalize() ends that");
}

Group init_default(Context& context, const std::string& backend, Duration timeout) {
  if (context.is_initialized("default")) return context.group("default");
  return context.init_group({.rank = context.spec().rank,
                             .world_size = context.spec().world_size,
                             .backend = backend_from_string(backend),
                             .timeout = timeout});
}

Group init(const std::string& backend, nb::object timeout, std::optional<std::string> store, std::optional<int> rank,
           std::optional<int> world_size, std::optional<std::string> token, std::optional<std::string> job_id,
           bool serialize) {
  const Duration budget = duration_or_default(timeout, "init");
  const Explicit given{std::move(store), rank, world_size, std::move(token), std::move(job_id)};
  if (given.is_given()) {
    refuse_second();
    std::shared_ptr<Context> made = without_gil([&] {
      ContextSpec spec = spec_of(given, budget, "init");
      spec.serialize = serialize;
      return std::make_shared<Context>(std::move(spec));
    });
    try {
      refuse_second();  // another thread may have been faster
      own() = {made, getpid()};
      return without_gil([&] { return init_default(*made, backend, budget); });
    } catch (...) {
      // It may be tried again.
      if (own().context == made) own() = {};
      let_go_of(made);
      throw;
    }
  }
  if (serialize) Context::embed(check_signals, true);
  const CurrentContext current;
  return without_gil([&] {
    Context& context = *current;
    if (serialize && !context.spec().serialize)
      throw Error(ErrorCode::already_initialized,
                  "init: serialize=True comes too late, because a call has used col in this process before; pass it to "
                  "the first one");
    return init_default(context, backend, budget);
  });
}

void finalize() {
  std::shared_ptr<Context> ends = std::exchange(own(), {}).context;
  std::exception_ptr error;
  try {
    without_gil([&] { ends ? ends->finalize() : Context::current().finalize(); });
  } catch (...) {
    error = std::current_exception();
  }
  let_go_of_dropped();
  let_go_of(ends);
  if (error) std::rethrow_exception(error);
}

NamedGroup init_collective_group(int world_size, int rank, const std::string& backend, const std::string& group_name,
                                 nb::object timeout) {
  const Duration budget = duration_or_default(timeout, "init_collective_group");
  const CurrentContext context;
  return NamedGroup(without_gil([&] {
    return context->init_group({.name = group_name,
                                .rank = rank,
                                .world_size = world_size,
                                .backend = backend_from_string(backend),
                                .timeout = budget});
  }));
}

class CurrentGpu {
 public:
  explicit CurrentGpu(int gpu) : gpu_(gpu) {}
  void enter() {
    current_ = without_gil([this] { return make_gpu_current(gpu_); });
  }
  void exit(nb::handle /*type*/, nb::handle /*error*/, nb::handle /*trace*/) { current_.reset(); }

 private:
  const int gpu_;
  std::shared_ptr<void> current_;  // shared, so that it is opaque
};

// Signals, and a function of Python's.
Interrupt interrupt_of(nb::object function) {
  if (function.is_none()) return check_signals;
  return [kept = held(function.release().ptr())] {
    check_signals();
    const WithGil gil;
    if (!nb::steal(PyObject_CallNoArgs(kept.get()))) throw nb::python_error();
  };
}

// A job beside that of init(). Ends when Python lets go of it and of its groups.
class ContextObject {
 public:
  ContextObject(int rank, int world_size, std::optional<std::string> store, std::optional<std::string> token,
                std::optional<std::string> job_id, nb::object timeout, double spent, bool serialize,
                nb::object interrupt) {
    const Duration budget = duration_or_default(timeout, "Context");
    const auto before = std::chrono::duration_cast<Duration>(std::chrono::duration<double>(spent));
    Interrupt hook = interrupt_of(std::move(interrupt));
    const Explicit given{std::move(store), rank, world_size, std::move(token), std::move(job_id)};
    context_ = without_gil([&] {
      ContextSpec spec = spec_of(given, budget, "Context", std::move(hook), before);
      spec.serialize = serialize;
      return std::make_shared<Context>(std::move(spec));
    });
  }
  ~ContextObject() { let_go_of(context_); }
  ContextObject(ContextObject&&) = default;
  ContextObject& operator=(ContextObject&&) = delete;
  ContextObject(const ContextObject&) = delete;
  ContextObject& operator=(const ContextObject&) = delete;

  ContextGroup init_group(const std::string& name, const std::string& backend, nb::object timeout,
                          std::optional<int> rank, std::optional<int> world_size, const std::string& nccl_settings) {
    const Duration budget = duration_or_default(timeout, "init_group");
    const auto context = context_;  // which another thread may finalize meanwhile
    Group group = without_gil([&] {
      return context->init_group({.name = name,
                                  .rank = rank.value_or(context->spec().rank),
                                  .world_size = world_size.value_or(context->spec().world_size),
                                  .backend = backend_from_string(backend),
                                  .timeout = budget,
                                  .nccl_settings = nccl_settings,
                                  .is_kept = false});
    });
    return ContextGroup(std::move(group), context);
  }
  void finalize() {
    without_gil([this] { context_->finalize(); });
    let_go_of_dropped();
  }
  const std::shared_ptr<Context>& context() const { return context_; }

 private:
  std::shared_ptr<Context> context_;
};

}  // namespace

CurrentContext::CurrentContext() : own_(own_context()) {}
CurrentContext::CurrentContext(nb::handle context)
    : own_(context.is_none() ? own_context() : nb::cast<const ContextObject&>(context).context()) {}
CurrentContext::~CurrentContext() {
  let_go_of(own_);
}

ContextGroup::ContextGroup(Group group, std::shared_ptr<Context> context)
    : Group(std::move(group)), context_(std::move(context)) {}
ContextGroup::~ContextGroup() {
  static_cast<Group&>(*this) = Group();  // before its context
  let_go_of(context_);
}

void bind_context(nb::module_& module) {
  Context::embed(check_signals);
  const nb::arg_v group_name = nb::arg("group_name") = "default";
  module.def("init", init, nb::kw_only(), nb::arg("backend") = "auto", nb::arg("timeout") = nb::none(),
             nb::arg("store") = nb::none(), nb::arg("rank") = nb::none(), nb::arg("world_size") = nb::none(),
             nb::arg("token") = nb::none(), nb::arg("job_id") = nb::none(), nb::arg("serialize") = false,
             "Joins group 'default', and returns it: with the ranks that the environment gives (from colrun or another "
             "launcher), else as a world of one. With store, rank and world_size, these say it. A second call returns "
             "the same group. With serialize, threads that use one group at once take turns; otherwise the second one "
             "gets InvalidArgument.");
  nb::class_<ContextObject>(
      module, "Context", nb::is_weak_referenceable(),
      "A job of its own, beside the one of init(): rank and world_size say who this process is, and the ranks meet in "
      "the store, as in init(). Blocks until all ranks have come, for timeout seconds at most (5 minutes), of which "
      "spent have passed already. A process may be in many. Its groups keep it. If the process ends before finalize(), "
      "the others lose a peer. Every wait "
      "of "
      "its groups calls interrupt() about every 50 ms; what that raises ends the wait.")
      .def(nb::init<int, int, std::optional<std::string>, std::optional<std::string>, std::optional<std::string>,
                    nb::object, double, bool, nb::object>(),
           nb::arg("rank"), nb::arg("world_size"), nb::kw_only(), nb::arg("store") = nb::none(),
           nb::arg("token") = nb::none(), nb::arg("job_id") = nb::none(), nb::arg("timeout") = nb::none(),
           nb::arg("spent") = 0.0, nb::arg("serialize") = false, nb::arg("interrupt") = nb::none())
      .def("init_group", &ContextObject::init_group, nb::arg("name") = "default", nb::arg("backend") = "auto",
           nb::arg("timeout") = nb::none(), nb::kw_only(), nb::arg("rank") = nb::none(),
           nb::arg("world_size") = nb::none(), nb::arg("nccl_settings") = "",
           "The group of all its ranks; or of those world_size ranks that call this with the name, each with its own "
           "rank "
           "in the group. Blocks until they all have. nccl_settings: \"max_ctas=8,cta_policy=efficiency\", see "
           "docs/gpu.md. Returns it.")
      .def_prop_ro(
          "is_on_one_host",
          [](const ContextObject& c) { return c.context()->spec().local_world_size == c.context()->spec().world_size; },
          "Whether all its ranks share a host.")
      .def("finalize", &ContextObject::finalize,
           "Destroys its groups, and tells the other ranks that this one did not crash.");
  nb::class_<ContextGroup, Group>(module, "_ContextGroup", nb::is_weak_referenceable());
  module.def("finalize", finalize,
             "Destroys all groups. Call it when a rank is done: its peers then know that it did not crash.");
  module.def("init_collective_group", init_collective_group, nb::arg("world_size"), nb::arg("rank"),
             nb::arg("backend") = "auto", group_name, nb::arg("timeout") = nb::none(),
             "Joins a group by its name, which the free functions find it by. Returns it.");
  module.def(
      "gpus_in_use", gpus_in_use,
      "The GPU that this thread has made current; without one, those that the process has started. Starts none.");
  nb::class_<CurrentGpu>(module, "CurrentGpu",
                         "with CurrentGpu(0): GPU 0 is this thread's meanwhile, and of the groups that it makes.")
      .def(nb::init<int>(), nb::arg("gpu_id"))
      .def("__enter__", &CurrentGpu::enter)
      .def("__exit__", &CurrentGpu::exit, nb::arg("type").none(), nb::arg("error").none(), nb::arg("trace").none());
  module.def(
      "synchronize",
      [](int gpu_id, nb::object timeout) {
        const Duration budget = duration_or_default(timeout, "synchronize");
        without_gil([&] { synchronize(gpu_id, budget); });
      },
      nb::arg("gpu_id"), nb::arg("timeout") = nb::none(),
      "Waits until the GPU has ended all work that this process gave to it.");
  module.def(
      "get_group",
      [](const std::string& name) {
        const CurrentContext context;
        return without_gil([&] { return context->group(name); });
      },
      group_name, "The group of that name. Joins it if needed, and if the store says how.");
  module.def(
      "join",
      [](const std::string& name, nb::object timeout) {
        const Duration budget = duration_or_default(timeout, "join");
        const CurrentContext context;
        return without_gil([&] { return context->join_group(name, budget); });
      },
      nb::arg("name") = "default", nb::arg("timeout") = nb::none(),
      "Joins a group that stands, from outside: waits until its ranks call renew() with room for this process, and "
      "returns the group of the epoch that begins then. The environment gives this process the store and the job of "
      "the group's ranks, and a rank that none of them has, or that of one that was lost. Blocks for timeout "
      "seconds at most (the job's, if none is given), without the GIL. Raises Timeout (nobody has made the group, "
      "or its ranks did not renew it), AlreadyInitialized (this process is in a group of that name), "
      "InvalidArgument (no store), PeerLost (no rank of it is left), IoError; it may be called again then. Any "
      "thread may call it.");
  module.def(
      "is_group_initialized",
      [](const std::string& name) {
        const CurrentContext context;
        return without_gil([&] { return context->is_initialized(name); });
      },
      group_name, "Whether this process is in a group of that name.");
  module.def(
      "destroy_collective_group",
      [](const std::string& name) {
        const CurrentContext context;
        const bool found = without_gil([&] { return context->destroy_group(name); });
        let_go_of_dropped();
        return found;
      },
      group_name, "Leaves the group. Returns false if there is none of that name.");
}

}  // namespace col::python
