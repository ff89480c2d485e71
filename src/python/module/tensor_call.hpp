// A call of libcol that takes several tensors from Python: it keeps what they lend until the call has ended.
#pragma once

#include <nanobind/nanobind.h>

#include <utility>
#include <vector>

#include <col/options.hpp>
#include <col/types.hpp>

#include "errors.hpp"
#include "gil.hpp"
#include "group.hpp"
#include "operators.hpp"
#include "tensor.hpp"

namespace nb = nanobind;

namespace col::python {

class TensorCall {
 public:
  // `op` may be None: the call does not reduce.
  TensorCall(const char* function, nb::handle timeout, int root, nb::handle op)
      : function_(function), options_(options_with(timeout, function, root)) {
    if (!op.is_none()) options_.op = operation_.read(op.ptr(), function);
  }

  Options& options() { return options_; }

  ConstTensorView input(nb::handle tensor, const char* name = "a tensor") {
    return keep(as_input(tensor.ptr(), {function_, name}, options_.stream));
  }
  TensorView output(nb::handle tensor, const char* name = "a tensor") {
    return keep(as_output(tensor.ptr(), {function_, name}, options_.stream));
  }
  // None is an empty list: ranks that are not the root may pass it.
  std::vector<ConstTensorView> inputs(nb::handle list) {
    return all<ConstTensorView>(list, [this](nb::handle tensor) { return input(tensor, "an entry of the list"); });
  }
  std::vector<TensorView> outputs(nb::handle list) {
    return all<TensorView>(list, [this](nb::handle tensor) { return output(tensor, "an entry of the list"); });
  }
  std::vector<std::vector<ConstTensorView>> input_lists(nb::handle lists) {
    return all<std::vector<ConstTensorView>>(lists, [this](nb::handle list) { return inputs(list); });
  }
  std::vector<std::vector<TensorView>> output_lists(nb::handle lists) {
    return all<std::vector<TensorView>>(lists, [this](nb::handle list) { return outputs(list); });
  }

  // Runs call(options) without the GIL.
  template <class Call>
  void run(Call&& call) {
    try {
      without_gil([&] { call(std::as_const(options_)); });
    } catch (const Error&) {
      operation_.rethrow();
      throw;
    }
  }

 private:
  template <class View, class Read>
  static std::vector<View> all(nb::handle list, Read read) {
    std::vector<View> views;
    if (!list.is_none())
      for (const nb::handle item : list) views.push_back(read(item));
    return views;
  }
  TensorView keep(Tensor tensor) {
    kept_.push_back(std::move(tensor));
    return kept_.back().view;
  }

  const char* function_;
  Operation operation_;
  Options options_;
  std::vector<Tensor> kept_;
};

}  // namespace col::python
