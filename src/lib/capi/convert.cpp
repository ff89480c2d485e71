#include "capi/convert.hpp"

#include <chrono>
#include <span>

#include "capi/guard.hpp"
#include "capi/handles.hpp"
#include "capi/sized.hpp"

namespace col::capi {
namespace {

Device device_of(const col_tensor& tensor, std::string_view role) {
  if (tensor.device_type == COL_DEVICE_CPU) return {Device::Type::cpu, tensor.device_index};
  if (tensor.device_type == COL_DEVICE_CUDA) return {Device::Type::cuda, tensor.device_index};
  refuse("{}: there is no device type {}; use COL_DEVICE_CPU (0) or COL_DEVICE_CUDA (1)", role, tensor.device_type);
}

std::span<const std::size_t> counts_of(const std::size_t* counts, std::size_t length, std::string_view role) {
  if (counts == nullptr && length > 0) refuse("{} is NULL, but its length is {}", role, length);
  return {counts, length};
}

Order order_of(std::int32_t number) {
  if (number < COL_ORDER_ANY || number > COL_ORDER_EXACT)
    refuse("{} is no order; use one of COL_ORDER_ANY to COL_ORDER_EXACT", number);
  return static_cast<Order>(number);
}

Op op_of(const col_options& options) {
  if (options.user_op != nullptr) {
    if (options.op != COL_SUM)
      refuse("col_options: op is {}, but there is a user_op too; leave op zero, or user_op NULL", options.op);
    return options.user_op->value;
  }
  if (options.op == COL_PREMUL_SUM) return Op::premul_sum(options.scale);
  if (options.op < 0 || options.op >= kReduceOpCount)
    refuse("col_options: there is no op {}; use COL_SUM (0) to COL_BXOR ({}), or COL_PREMUL_SUM ({})", options.op,
           kReduceOpCount - 1, static_cast<int>(COL_PREMUL_SUM));
  return static_cast<ReduceOp>(options.op);
}

Message message_of(const col_message& message) {
  check_reserved(message.reserved, "col_message");
  const TensorView data = tensor_of(message.data, "the message");
  if (message.direction == COL_SEND) return Message::send(data, message.peer, message.tag);
  if (message.direction == COL_RECV) return Message::recv(data, message.peer, message.tag);
  refuse("col_message: there is no direction {}; use COL_SEND ({}) or COL_RECV ({})", message.direction,
         static_cast<int>(COL_SEND), static_cast<int>(COL_RECV));
}

}  // namespace

std::string_view text_of(const char* text) {
  return text == nullptr ? std::string_view() : text;
}

Duration duration_of(std::int64_t nanoseconds, std::string_view role) {
  if (nanoseconds < 0) refuse("{} is {} ns; a time is not negative, and zero means the default", role, nanoseconds);
  return std::chrono::nanoseconds(nanoseconds);
}

Collective collective_of(std::int32_t number) {
  if (number < 0 || number >= kCollectiveCount)
    refuse("there is no collective {}; use COL_ALLREDUCE (0) to COL_BARRIER ({})", number,
           static_cast<int>(COL_BARRIER));
  return static_cast<Collective>(number);
}

TensorView tensor_of(const col_tensor& tensor, std::string_view role) {
  check_reserved(tensor.reserved, role);
  return {tensor.data, tensor.count, static_cast<DType>(tensor.dtype), device_of(tensor, role)};
}

std::vector<Message> messages_of(const col_message* messages, std::size_t count) {
  if (messages == nullptr && count > 0) refuse("messages is NULL, but there should be {}", count);
  std::vector<Message> list;
  for (const col_message& message : std::span(messages, count)) list.push_back(message_of(message));
  return list;
}

Call call_of(const col_call* call) {
  const col_call known = known_part(call, "col_call");
  check_reserved(known.reserved, "col_call");
  return {.collective = collective_of(known.collective),
          .in = tensor_of(known.in, "the input"),
          .out = tensor_of(known.out, "the output"),
          .in_counts = counts_of(known.in_counts, known.in_counts_length, "in_counts"),
          .out_counts = counts_of(known.out_counts, known.out_counts_length, "out_counts")};
}

Options options_of(const col_options* options) {
  const col_options known = known_part_or_zeros(options, "col_options");
  check_reserved(known.reserved, "col_options");
  check_reserved(known.reserved_2, "col_options");
  return {.op = op_of(known),
          .root = known.root,
          .algorithm = text_of(known.algorithm),
          .timeout = duration_of(known.timeout_ns, "col_options: timeout_ns"),
          .stream = {known.stream},
          .tag = known.tag,
          .deterministic = known.deterministic != 0,
          .compress = known.compress != 0,
          .order = order_of(known.order),
          .contributions = known.contributions};
}

}  // namespace col::capi
