#include "lists.hpp"

#include <string>
#include <vector>

#include <nanobind/stl/string.h>

#include <col/group.hpp>

#include "context.hpp"
#include "tensor_call.hpp"

namespace col::python {
namespace {

// The group of a name, in a Context, or in the one of init() for None.
struct Where {
  nb::handle context;
  const std::string& group;
};

class ListCall : public TensorCall {
 public:
  ListCall(const char* function, const Where& where, nb::handle op, int root, nb::handle timeout)
      : TensorCall(function, timeout, root, op), context_(where.context), group_(where.group) {
    options().group = group_;
  }

  template <class Call>
  void run(Call&& call) {
    TensorCall::run([&](const Options& options) {
      const Context::Scope scope(*context_);
      call(options);
    });
  }

 private:
  CurrentContext context_;
  std::string group_;
};

void list_allgather(nb::object list, nb::object tensor, const std::string& group, nb::object context,
                    nb::object timeout) {
  ListCall call("allgather", {context, group}, nb::none(), 0, timeout);
  const auto outputs = call.outputs(list);
  const ConstTensorView in = call.input(tensor, "tensor");
  call.run([&](const Options& options) { allgather(outputs, in, options); });
}

void list_reducescatter(nb::object tensor, nb::object list, const std::string& group, nb::object context, nb::object op,
                        nb::object timeout) {
  ListCall call("reducescatter", {context, group}, op, 0, timeout);
  const TensorView out = call.output(tensor, "tensor");
  const auto inputs = call.inputs(list);
  call.run([&](const Options& options) { reducescatter(out, inputs, options); });
}

void list_gather(nb::object list, nb::object tensor, int root, const std::string& group, nb::object context,
                 nb::object timeout) {
  ListCall call("gather", {context, group}, nb::none(), root, timeout);
  const auto outputs = call.outputs(list);
  const ConstTensorView in = call.input(tensor, "tensor");
  call.run([&](const Options& options) { gather(outputs, in, options); });
}

void list_scatter(nb::object tensor, nb::object list, int root, const std::string& group, nb::object context,
                  nb::object timeout) {
  ListCall call("scatter", {context, group}, nb::none(), root, timeout);
  const TensorView out = call.output(tensor, "tensor");
  const auto inputs = call.inputs(list);
  call.run([&](const Options& options) { scatter(out, inputs, options); });
}

void list_alltoall(nb::object output_list, nb::object input_list, const std::string& group, nb::object context,
                   nb::object timeout) {
  ListCall call("alltoall", {context, group}, nb::none(), 0, timeout);
  const auto outputs = call.outputs(output_list);
  const auto inputs = call.inputs(input_list);
  call.run([&](const Options& options) { alltoall(outputs, inputs, options); });
}

}  // namespace

// col/ray/collective.py calls them, with all arguments.
void bind_lists(nb::module_& module) {
  const auto given = [] { return nb::arg(); };
  const auto maybe = [] { return nb::arg().none(); };
  module.def("list_allgather", list_allgather, given(), given(), given(), maybe(), maybe());
  module.def("list_reducescatter", list_reducescatter, given(), given(), given(), maybe(), given(), maybe());
  module.def("list_gather", list_gather, maybe(), given(), given(), given(), maybe(), maybe());
  module.def("list_scatter", list_scatter, given(), maybe(), given(), given(), maybe(), maybe());
  module.def("list_alltoall", list_alltoall, given(), given(), given(), maybe(), maybe());
}

}  // namespace col::python
