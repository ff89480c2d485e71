#include "context.hpp"

#include <memory>
#include <optional>
#include <string>
#include <utility>

#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>

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
std::shared_ptr<Context>& own_context() {
  static auto* const context = new std::shared_ptr<Context>;  // guarded by the GIL
  return *context;
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
ContextSpec spec_of(const Explicit& given, Duration timeout) {
  if (!given.rank || !given.world_size)
    refuse("init: store=, rank= and world_size= belong together; without all three, the environment says who this is");
  if (!given.store && *given.world_size > 1)
    refuse(
        "init: " + std::to_string(*given.world_size) +
        " ranks need a store=, where they meet: file:///a/directory/all/ranks/share, or the url of a col.StoreServer");
  std::shared_ptr<Store> store;
  if (given.store)
    store = open_store(*given.store, {.token = given.token.value_or(""),
                                      .job = given.job_id ? store_job(*given.job_id, 0) : "",
                                      .timeout = timeout});
  return ContextSpec::meet(std::move(store), *given.rank, *given.world_size, given.job_id.value_or(""), timeout,
                           check_signals);
}

void refuse_second() {
  if (own_context() != nullptr)
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
      ContextSpec spec = spec_of(given, budget);
      spec.serialize = serialize;
      return std::make_shared<Context>(std::move(spec));
    });
    try {
      refuse_second();  // another thread may have been faster
      own_context() = made;
      return without_gil([&] { return init_default(*made, backend, budget); });
    } catch (...) {
      // It may be tried again.
      if (own_context() == made) own_context().reset();
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
  std::shared_ptr<Context> own = std::exchange(own_context(), nullptr);
  std::exception_ptr error;
  try {
    without_gil([&] { own != nullptr ? own->finalize() : Context::current().finalize(); });
  } catch (...) {
    error = std::current_exception();
  }
  let_go_of_dropped();
  let_go_of(own);
  if (error) std::rethrow_exception(error);
}

Group init_collective_group(int world_size, int rank, const std::string& backend, const std::string& group_name,
                            nb::object timeout) {
  const Duration budget = duration_or_default(timeout, "init_collective_group");
  const CurrentContext context;
  return without_gil([&] {
    return context->init_group({.name = group_name,
                                .rank = rank,
                                .world_size = world_size,
                                .backend = backend_from_string(backend),
                                .timeout = budget});
  });
}

std::optional<Group> group_of(Context& context, const std::string& name) {
  if (!context.is_initialized(name)) return std::nullopt;
  return context.group(name);
}

}  // namespace

CurrentContext::CurrentContext() : own_(own_context()) {}
CurrentContext::~CurrentContext() {
  let_go_of(own_);
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
  module.def("finalize", finalize,
             "Destroys all groups. Call it when a rank is done: its peers then know that it did not crash.");
  module.def("init_collective_group", init_collective_group, nb::arg("world_size"), nb::arg("rank"),
             nb::arg("backend") = "auto", group_name, nb::arg("timeout") = nb::none(),
             "Joins a group by its name, which the free functions find it by. Returns it.");
  module.def(
      "get_group",
      [](const std::string& name) {
        const CurrentContext context;
        return without_gil([&] { return context->group(name); });
      },
      group_name, "The group of that name. Joins it if needed, and if the store says how.");
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
  module.def(
      "get_rank",
      [](const std::string& name) {
        const CurrentContext context;
        return without_gil([&] {
          const auto group = group_of(*context, name);
          return group ? group->rank() : -1;
        });
      },
      group_name, "This process's rank in the group; -1 if it is in none of that name.");
  module.def(
      "get_collective_group_size",
      [](const std::string& name) {
        const CurrentContext context;
        return without_gil([&] {
          const auto group = group_of(*context, name);
          return group ? group->size() : -1;
        });
      },
      group_name, "The number of ranks of the group; -1 if this process is in none of that name.");
}

}  // namespace col::python
