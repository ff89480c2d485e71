// What a group says about its calls.
#include <cstdint>
#include <string>
#include <vector>

#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <col/trace.hpp>

#include "arguments.hpp"
#include "foreign.hpp"
#include "gil.hpp"
#include "group.hpp"

namespace col::python {
namespace {

std::string explain(const Group& group, const std::string& collective, std::size_t bytes, nb::object dtype,
                    nb::object op, int root, const std::string& algorithm, bool deterministic, bool compress,
                    const std::string& order) {
  Operation operation;
  Options options{.op = operation.read(op.ptr(), "explain"),
                  .root = root,
                  .algorithm = algorithm,
                  .deterministic = deterministic,
                  .compress = compress,
                  .order = order_of(nb::str(order.c_str()).ptr(), "explain")};
  const DType type = dtype_from_python(dtype);
  return without_gil([&] { return group.explain(collective_from_string(collective), bytes, type, options); });
}

nb::object slice_of(const Slice& slice) {
  if (slice.empty()) return nb::none();
  return nb::make_tuple(std::string(to_string(slice.buffer)), slice.offset, slice.count);
}

nb::dict entry_of(const TraceEntry& entry) {
  nb::dict made;
  made["operation"] = entry.operation;
  made["collective"] = std::string(to_string(entry.collective));
  made["algorithm"] = std::string(entry.algorithm);
  made["round"] = entry.round;
  made["step"] = std::string(to_string(entry.step.kind));
  made["peer"] = entry.step.peer;
  made["to"] = slice_of(entry.step.to);
  made["left"] = slice_of(entry.step.left);
  made["right"] = slice_of(entry.step.right);
  return made;
}

nb::list trace(Group& group) {
  nb::list list;
  for (const TraceEntry& entry : without_gil([&] { return group.trace(); })) list.append(entry_of(entry));
  return list;
}

}  // namespace

void add_insight(GroupClass& group) {
  group
      .def("explain", explain, nb::arg("collective"), nb::arg("bytes"), nb::arg("dtype") = "float32", nb::kw_only(),
           nb::arg("op") = "sum", nb::arg("root") = 0, nb::arg("algorithm") = "", nb::arg("deterministic") = false,
           nb::arg("compress") = false, nb::arg("order") = "any",
           "Which algorithm a call would run, and why. bytes is the size of the whole vector, or of all blocks "
           "together.")
      .def(
          "algorithms",
          [](const Group& g, const std::string& collective) {
            return without_gil([&] { return g.algorithms(collective_from_string(collective)); });
          },
          nb::arg("collective"), "The names that a call's algorithm may have in this group.")
      .def(
          "annotate", [](Group& g, const std::string& label) { without_gil([&] { g.annotate(label); }); },
          nb::arg("label"),
          "Later calls of this rank in this group carry the label: in coljob, in reports and in traces. An empty one "
          "ends that.")
      .def(
          "record_trace", [](Group& g, bool on) { without_gil([&] { g.record_trace(on); }); }, nb::arg("on"),
          "Turns the recording of executed steps on or off.")
      .def("trace", trace,
           "The steps recorded since record_trace(True) or the last trace(): dicts with operation, collective, "
           "algorithm, round, step, peer, and the slices to, left and right as (buffer, offset, count) or None.");
}

void bind_tracing(nb::module_& module) {
  module.def(
      "start_trace", [](std::uint64_t limit) { without_gil([&] { start_trace(limit); }); },
      nb::arg("limit") = kTraceBytes,
      "From now on, this process keeps when its calls begin and end. trace() has more.");
  module.def(
      "end_trace", [](const std::string& path) { return without_gil([&] { return end_trace(path); }); },
      nb::arg("path"), "Ends that, and adds what was kept to a file.");
}

}  // namespace col::python
