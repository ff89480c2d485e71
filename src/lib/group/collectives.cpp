// The methods of Group: each says which buffers take part, the rest is shared (state.cpp).
#include <col/group.hpp>

#include "group/state.hpp"

namespace col {
namespace {

Request make(Collective collective, ConstTensorView in, TensorView out, const Options& options) {
  Request request;
  request.collective = collective;
  request.in = in;
  request.out = out;
  request.op = options.op;
  request.root = options.root;
  request.algorithm = options.algorithm;
  request.stream = options.stream;
  return request;
}

}  // namespace

Group::Group(std::shared_ptr<State> state) : state_(std::move(state)) {}

int Group::rank() const {
  return state_->rank();
}
int Group::size() const {
  return state_->size();
}
std::string_view Group::name() const {
  return state_->name();
}
std::string_view Group::backend() const {
  return state_->backend();
}

void Group::allreduce(ConstTensorView in, TensorView out, const Options& options) {
  state_->collective(make(Collective::allreduce, in, out, options), options);
}

void Group::allreduce(TensorView inout, const Options& options) {
  allreduce(inout, inout, options);
}

void Group::reduce(ConstTensorView in, TensorView out, const Options& options) {
  state_->collective(make(Collective::reduce, in, out, options), options);
}

void Group::reduce(TensorView inout, const Options& options) {
  reduce(inout, inout, options);
}

void Group::broadcast(TensorView inout, const Options& options) {
  state_->collective(make(Collective::broadcast, {}, inout, options), options);
}

void Group::allgather(ConstTensorView in, TensorView out, const Options& options) {
  state_->collective(make(Collective::allgather, in, out, options), options);
}

void Group::allgatherv(ConstTensorView in, TensorView out, std::span<const std::size_t> counts,
                       const Options& options) {
  Request request = make(Collective::allgatherv, in, out, options);
  request.out_counts = counts;
  state_->collective(std::move(request), options);
}

void Group::gather(ConstTensorView in, TensorView out, const Options& options) {
  state_->collective(make(Collective::gather, in, out, options), options);
}

void Group::scatter(ConstTensorView in, TensorView out, const Options& options) {
  state_->collective(make(Collective::scatter, in, out, options), options);
}

void Group::alltoall(ConstTensorView in, TensorView out, const Options& options) {
  state_->collective(make(Collective::alltoall, in, out, options), options);
}

void Group::alltoallv(ConstTensorView in, std::span<const std::size_t> in_counts, TensorView out,
                      std::span<const std::size_t> out_counts, const Options& options) {
  Request request = make(Collective::alltoallv, in, out, options);
  request.in_counts = in_counts;
  request.out_counts = out_counts;
  state_->collective(std::move(request), options);
}

void Group::barrier(const Options& options) {
  state_->collective(make(Collective::barrier, {}, {}, options), options);
}

void Group::send(ConstTensorView data, int destination, const Options& options) {
  state_->send(data, destination, options);
}

void Group::recv(TensorView data, int source, const Options& options) {
  state_->recv(data, source, options);
}

void Group::sendrecv(ConstTensorView send, int destination, TensorView recv, int source, const Options& options) {
  state_->sendrecv(send, destination, recv, source, options);
}

}  // namespace col
