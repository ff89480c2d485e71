#include "group.hpp"

#include <chrono>
#include <memory>
#include <string>
#include <utility>

#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "arguments.hpp"
#include "errors.hpp"
#include "gil.hpp"
#include "methods.hpp"
#include "work.hpp"

namespace col::python {
namespace {

std::string device_name(Device device) {
  return device.type == Device::Type::cpu ? "cpu" : "cuda:" + std::to_string(device.index);
}

// A scope of Group.coalesce(), for `with`.
class CoalescingObject {
 public:
  explicit CoalescingObject(Group group) : group_(std::move(group)) {}
  ~CoalescingObject() {
    if (scope_) scope_->cancel();
  }
  CoalescingObject(CoalescingObject&&) = default;
  CoalescingObject& operator=(CoalescingObject&&) = delete;
  CoalescingObject(const CoalescingObject&) = delete;
  CoalescingObject& operator=(const CoalescingObject&) = delete;

  void begin() {
    scope_ = without_gil([&] { return std::unique_ptr<Coalescing>(new Coalescing(group_.coalesce())); });
  }
  void end(bool is_left_by_exception) {
    const auto scope = std::exchange(scope_, nullptr);
    if (!scope) refuse("coalesce: the scope has not begun, or has ended before; use it in a with statement, once");
    without_gil([&] {
      if (is_left_by_exception)
        scope->cancel();
      else
        all_ = scope->end();
    });
  }
  WorkObject work() const {
    if (scope_) refuse("coalesce: the scope has not ended; its Work is there after the with statement");
    return WorkObject({.work = all_}, nb::none());
  }

 private:
  Group group_;
  std::unique_ptr<Coalescing> scope_;  // null before the begin and after the end
  Work all_;
};

std::string description(const Group& group) {
  try {
    return "<col.Group '" + std::string(group.name()) + "': rank " + std::to_string(group.rank()) + " of " +
           std::to_string(group.size()) + ", " + std::string(group.backend()) + ">";
  } catch (const Error& error) {
    return "<col.Group: " + error.message() + ">";
  }
}

const PyType_Slot* group_slots() {
  static const PyType_Slot* const slots = [] {
    MethodTable table;
    add_collectives(table);
    add_messages(table);
    return new PyType_Slot[2]{{Py_tp_methods, table.take()}, {0, nullptr}};
  }();
  return slots;
}

}  // namespace

NamedGroup::~NamedGroup() {
  if (!*this || has_closed() || !detail::is_forgotten(*this)) return;
  const nb::error_scope kept;  // what is being raised, if anything is
  const std::string named(name());
  if (PyErr_ResourceWarning(nullptr, 1,
                            "col.Group '%s' was let go of and not destroyed: it stays, as its name finds it, until "
                            "col.destroy_collective_group('%s') or col.finalize()",
                            named.c_str(), named.c_str()) != 0)
    PyErr_WriteUnraisable(nullptr);
}

nb::object group_or_none(Group group) {
  return group ? nb::cast(std::move(group)) : nb::none();
}

Options options_with(nb::handle timeout, const char* function, int root, int tag) {
  Options options;
  options.root = root;
  options.tag = tag;
  if (!timeout.is_none()) options.timeout = duration_of(timeout, function);
  return options;
}

GroupClass bind_group(nb::module_& module) {
  GroupClass group(
      module, "Group", nb::type_slots(group_slots()), nb::is_weak_referenceable(),
      "A named, ordered set of ranks with connections of its own.\n\n"
      "All ranks of a group make the same collective calls in the same order. Every call blocks until this "
      "rank's part is done, but for those whose names begin with an i: they return a Work at once. A call "
      "blocks for its timeout at most, in seconds; without one, for the group's.");
  group.def_prop_ro("rank", &Group::rank, "Of this process in the group, from 0.")
      .def_prop_ro("size", &Group::size, "Number of ranks.")
      .def_prop_ro(
          "name", [](const Group& g) { return std::string(g.name()); }, "Its name in this process.")
      .def_prop_ro(
          "backend", [](const Group& g) { return std::string(g.backend()); },
          "What moves the data: 'shm', 'hosts', 'gloo', 'nccl', or 'self' (a world of one rank on the CPU).")
      .def_prop_ro(
          "device", [](const Group& g) { return device_name(g.device()); },
          "The memory that the group moves without extra copies: 'cpu', or 'cuda:0' and the like.")
      .def_prop_ro("ranks", &Group::ranks, "For each rank of this group, in order: its rank in the job.")
      .def_prop_ro(
          "timeout", [](const Group& g) { return std::chrono::duration<double>(g.timeout()).count(); },
          "How many seconds the group's calls wait if they do not say.")
      .def("world_rank", &Group::world_rank, nb::arg("rank"), "ranks[rank].")
      .def("rank_of", &Group::rank_of, nb::arg("world_rank"),
           "The rank in this group of the process with this rank in the job; -1 if it is not a member.")
      .def(
          "destroy",
          [](Group& g) {
            without_gil([&] { g.destroy(); });
            let_go_of_dropped();
          },
          "Leaves the group. Not collective. Ends the operations that are in flight here.")
      .def(
          "coalesce", [](const Group& g) { return CoalescingObject(g); },
          "For a with statement, in which this group collects collectives, and starts them together at its end: one "
          "launch on GPUs. Only the i-forms of collectives, whose Works can be waited for afterwards. The calls must "
          "not use what another one of them writes. An exception that leaves the block cancels all of them. All ranks "
          "make "
          "the same calls in the same blocks.")
      .def("__repr__", description);
  nb::class_<NamedGroup, Group>(module, "_NamedGroup", nb::is_weak_referenceable());
  nb::class_<CoalescingObject>(module, "Coalescing", nb::is_weak_referenceable(), "A scope of Group.coalesce().")
      .def("__enter__",
           [](nb::object self) {
             nb::inst_ptr<CoalescingObject>(self)->begin();
             return self;
           })
      .def(
          "__exit__",
          [](CoalescingObject& self, nb::handle type, nb::handle /*value*/, nb::handle /*trace*/) {
            self.end(!type.is_none());
          },
          nb::arg("type").none(), nb::arg("value").none(), nb::arg("trace").none())
      .def_prop_ro("work", &CoalescingObject::work, "After the block: one Work for all of its calls.")
      .def(
          "wait",
          [](const CoalescingObject& self, nb::object timeout, nb::object stream) {
            self.work().wait(std::move(timeout), std::move(stream));
          },
          nb::arg("timeout") = nb::none(), nb::kw_only(), nb::arg("stream") = nb::none(), "work.wait().");
  return group;
}

}  // namespace col::python
