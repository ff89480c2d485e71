// Calls of Group for ranks that drive several GPUs each.
#include <cstdint>
#include <span>
#include <vector>

#include <col/group.hpp>

#include "group.hpp"
#include "tensor_call.hpp"

namespace col::python {
namespace {

void allreduce_multigpu(Group& group, nb::object tensors, nb::object op, nb::object timeout) {
  TensorCall call("allreduce_multigpu", timeout, 0, op);
  const auto views = call.outputs(tensors);
  call.run([&](const Options& options) { group.allreduce_multigpu(views, options); });
}

void reduce_multigpu(Group& group, nb::object tensors, nb::object op, int root, int root_tensor, nb::object timeout) {
  TensorCall call("reduce_multigpu", timeout, root, op);
  const auto views = call.outputs(tensors);
  call.run([&](const Options& options) { group.reduce_multigpu(views, options, root_tensor); });
}

void broadcast_multigpu(Group& group, nb::object tensors, int root, int root_tensor, nb::object timeout) {
  TensorCall call("broadcast_multigpu", timeout, root, nb::none());
  const auto views = call.outputs(tensors);
  call.run([&](const Options& options) { group.broadcast_multigpu(views, options, root_tensor); });
}

void allgather_multigpu(Group& group, nb::object output_lists, nb::object tensors, nb::object timeout) {
  TensorCall call("allgather_multigpu", timeout, 0, nb::none());
  const auto outputs = call.output_lists(output_lists);
  const auto inputs = call.inputs(tensors);
  call.run([&](const Options& options) {
    group.allgather_multigpu(std::span<const std::vector<TensorView>>(outputs), inputs, options);
  });
}

void reducescatter_multigpu(Group& group, nb::object tensors, nb::object input_lists, nb::object op,
                            nb::object timeout) {
  TensorCall call("reducescatter_multigpu", timeout, 0, op);
  const auto outputs = call.outputs(tensors);
  const auto inputs = call.input_lists(input_lists);
  call.run([&](const Options& options) {
    group.reducescatter_multigpu(outputs, std::span<const std::vector<ConstTensorView>>(inputs), options);
  });
}

void send_multigpu(Group& group, nb::object tensor, int destination, int destination_gpu, std::int64_t n_elements,
                   nb::object timeout) {
  TensorCall call("send_multigpu", timeout, 0, nb::none());
  const ConstTensorView view = call.input(tensor);
  call.run(
      [&](const Options& options) { group.send_multigpu(view, destination, destination_gpu, options, n_elements); });
}

void recv_multigpu(Group& group, nb::object tensor, int source, int source_gpu, std::int64_t n_elements,
                   nb::object timeout) {
  TensorCall call("recv_multigpu", timeout, 0, nb::none());
  const TensorView view = call.output(tensor);
  call.run([&](const Options& options) { group.recv_multigpu(view, source, source_gpu, options, n_elements); });
}

}  // namespace

void add_multi_gpu(GroupClass& group) {
  const auto op = nb::arg("op") = "sum";
  const auto timeout = nb::arg("timeout") = nb::none();
  const auto zero = [](const char* name) { return nb::arg(name) = 0; };
  const auto only = nb::kw_only();
  group
      .def("allreduce_multigpu", allreduce_multigpu, nb::arg("tensors"), only, op, timeout,
           "In place, over the tensors of all GPUs of all ranks: one tensor for each GPU that this rank drives. The "
           "group's backend must be nccl; <col/multi_gpu.hpp> says more.")
      .def("reduce_multigpu", reduce_multigpu, nb::arg("tensors"), only, op, zero("root"), zero("root_tensor"), timeout,
           "As allreduce_multigpu, but only tensor root_tensor of the root gets the result.")
      .def("broadcast_multigpu", broadcast_multigpu, nb::arg("tensors"), only, zero("root"), zero("root_tensor"),
           timeout, "Every tensor gets the elements of tensor root_tensor of the root.")
      .def("allgather_multigpu", allgather_multigpu, nb::arg("output_lists"), nb::arg("tensors"), only, timeout,
           "output_lists[i] gets the tensors of all GPUs of all ranks, and is on the GPU of tensors[i].")
      .def("reducescatter_multigpu", reducescatter_multigpu, nb::arg("tensors"), nb::arg("input_lists"), only, op,
           timeout,
           "tensors[i] gets the reduction of entry rank * k + i of all lists; k is the number of GPUs of a rank.")
      .def("send_multigpu", send_multigpu, nb::arg("tensor"), nb::arg("destination"), nb::arg("destination_gpu"), only,
           zero("n_elements"), timeout, "One message to a GPU of another rank; n_elements: 0 for all.")
      .def("recv_multigpu", recv_multigpu, nb::arg("tensor"), nb::arg("source"), nb::arg("source_gpu"), only,
           zero("n_elements"), timeout, "One message from a GPU of another rank; n_elements: 0 for all.");
}

}  // namespace col::python
