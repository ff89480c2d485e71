#include "lists.hpp"

#include <string>
#include <vector>

#include <nanobind/stl/string.h>

#include <col/group.hpp>

#include "arguments.hpp"
#include "context.hpp"
#include "errors.hpp"
#include "gil.hpp"
#include "group.hpp"
#include "tensor.hpp"

namespace col::python {
namespace {

// One such call. Ray's own object store hands out read-only arrays, which its calls write to.
class ListCall {
 public:
  ListCall(const char* function, const std::string& group, nb::handle op, int root, nb::handle timeout)
      : function_(function), group_(group), options_(options_with(timeout, function, root)) {
    options_.group = group_;
    if (!op.is_none()) options_.op = operation_.read(op.ptr(), function);
  }

  ConstTensorView input(nb::handle tensor, const char* name) { return keep(as_input(tensor.ptr(), {function_, name})); }
  TensorView output(nb::handle tensor, const char* name) {
    return keep(as_output(tensor.ptr(), {function_, name}, true));
  }

  // Ranks that are not the root may pass None.
  std::vector<ConstTensorView> inputs(nb::handle list) {
    std::vector<ConstTensorView> views;
    if (!list.is_none())
      for (const nb::handle tensor : list) views.push_back(input(tensor, "an entry of tensor_list"));
    return views;
  }
  std::vector<TensorView> outputs(nb::handle list) {
    std::vector<TensorView> views;
    if (!list.is_none())
      for (const nb::handle tensor : list) views.push_back(output(tensor, "an entry of tensor_list"));
    return views;
  }

  template <class Call>
  void run(Call&& call) {
    const CurrentContext context;
    try {
      without_gil([&] {
        const Context::Scope scope(*context);
        call(options_);
      });
    } catch (const Error&) {
      operation_.rethrow();
      throw;
    }
  }

 private:
  TensorView keep(Tensor tensor) {
    kept_.push_back(std::move(tensor));
    return kept_.back().view;
  }

  const char* function_;
  std::string group_;
  Operation operation_;
  Options options_;
  std::vector<Tensor> kept_;
};

void list_allgather(nb::object list, nb::object tensor, const std::string& group, nb::object timeout) {
  ListCall call("allgather", group, nb::none(), 0, timeout);
  const auto outputs = call.outputs(list);
  const ConstTensorView in = call.input(tensor, "tensor");
  call.run([&](const Options& options) { allgather(outputs, in, options); });
}

void list_reducescatter(nb::object tensor, nb::object list, const std::string& group, nb::object op,
                        nb::object timeout) {
  ListCall call("reducescatter", group, op, 0, timeout);
  const TensorView out = call.output(tensor, "tensor");
  const auto inputs = call.inputs(list);
  call.run([&](const Options& options) { reducescatter(out, inputs, options); });
}

void list_gather(nb::object list, nb::object tensor, int root, const std::string& group, nb::object timeout) {
  ListCall call("gather", group, nb::none(), root, timeout);
  const auto outputs = call.outputs(list);
  const ConstTensorView in = call.input(tensor, "tensor");
  call.run([&](const Options& options) { gather(outputs, in, options); });
}

void list_scatter(nb::object tensor, nb::object list, int root, const std::string& group, nb::object timeout) {
  ListCall call("scatter", group, nb::none(), root, timeout);
  const TensorView out = call.output(tensor, "tensor");
  const auto inputs = call.inputs(list);
  call.run([&](const Options& options) { scatter(out, inputs, options); });
}

void list_alltoall(nb::object output_list, nb::object input_list, const std::string& group, nb::object timeout) {
  ListCall call("alltoall", group, nb::none(), 0, timeout);
  const auto outputs = call.outputs(output_list);
  const auto inputs = call.inputs(input_list);
  call.run([&](const Options& options) { alltoall(outputs, inputs, options); });
}

}  // namespace

// col/ray.py calls them, with all arguments.
void bind_lists(nb::module_& module) {
  const auto given = [] { return nb::arg(); };
  const auto maybe = [] { return nb::arg().none(); };
  module.def("list_allgather", list_allgather, given(), given(), given(), maybe());
  module.def("list_reducescatter", list_reducescatter, given(), given(), given(), given(), maybe());
  module.def("list_gather", list_gather, maybe(), given(), given(), given(), maybe());
  module.def("list_scatter", list_scatter, given(), maybe(), given(), given(), maybe());
  module.def("list_alltoall", list_alltoall, given(), given(), given(), maybe());
}

}  // namespace col::python
