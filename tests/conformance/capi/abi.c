/* The layout of every struct, as programs have been compiled with it. A struct may grow at its end: then its size below
 * changes, and it gets new lines. No other line ever changes within a major version. */
#include "ranks.h"

#define SIZE(type, bytes) CHECK(sizeof(type) == (bytes))
#define MEMBER(type, member, offset, bytes) \
  CHECK(offsetof(type, member) == (offset) && sizeof(((type*)0)->member) == (bytes))

void test_abi(void) {
  CHECK(sizeof(void*) == 8);

  SIZE(col_tensor, 32);
  MEMBER(col_tensor, data, 0, 8);
  MEMBER(col_tensor, count, 8, 8);
  MEMBER(col_tensor, dtype, 16, 4);
  MEMBER(col_tensor, device_type, 20, 4);
  MEMBER(col_tensor, device_index, 24, 4);
  MEMBER(col_tensor, reserved, 28, 4);

  SIZE(col_message, 48);
  MEMBER(col_message, direction, 0, 4);
  MEMBER(col_message, peer, 4, 4);
  MEMBER(col_message, tag, 8, 4);
  MEMBER(col_message, reserved, 12, 4);
  MEMBER(col_message, data, 16, 32);

  SIZE(col_store_spec, 48);
  MEMBER(col_store_spec, size, 0, 8);
  MEMBER(col_store_spec, url, 8, 8);
  MEMBER(col_store_spec, token, 16, 8);
  MEMBER(col_store_spec, job_id, 24, 8);
  MEMBER(col_store_spec, restart_count, 32, 4);
  MEMBER(col_store_spec, reserved, 36, 4);
  MEMBER(col_store_spec, timeout_ns, 40, 8);

  SIZE(col_context_spec, 72);
  MEMBER(col_context_spec, size, 0, 8);
  MEMBER(col_context_spec, store, 8, 8);
  MEMBER(col_context_spec, rank, 16, 4);
  MEMBER(col_context_spec, world_size, 20, 4);
  MEMBER(col_context_spec, local_rank, 24, 4);
  MEMBER(col_context_spec, local_world_size, 28, 4);
  MEMBER(col_context_spec, job_id, 32, 8);
  MEMBER(col_context_spec, restart_count, 40, 4);
  MEMBER(col_context_spec, serialize, 44, 4);
  MEMBER(col_context_spec, timeout_ns, 48, 8);
  MEMBER(col_context_spec, interrupt, 56, 8);
  MEMBER(col_context_spec, interrupt_user, 64, 8);

  SIZE(col_group_spec, 48);
  MEMBER(col_group_spec, size, 0, 8);
  MEMBER(col_group_spec, name, 8, 8);
  MEMBER(col_group_spec, rank, 16, 4);
  MEMBER(col_group_spec, world_size, 20, 4);
  MEMBER(col_group_spec, backend, 24, 8);
  MEMBER(col_group_spec, timeout_ns, 32, 8);
  MEMBER(col_group_spec, high_priority_stream, 40, 4);
  MEMBER(col_group_spec, reserved, 44, 4);

  SIZE(col_renewal, 48);
  MEMBER(col_renewal, size, 0, 8);
  MEMBER(col_renewal, new_size, 8, 4);
  MEMBER(col_renewal, min, 12, 4);
  MEMBER(col_renewal, wait_ns, 16, 8);
  MEMBER(col_renewal, excluded, 24, 8);
  MEMBER(col_renewal, excluded_count, 32, 8);
  MEMBER(col_renewal, progress, 40, 8);

  SIZE(col_op_spec, 48);
  MEMBER(col_op_spec, size, 0, 8);
  MEMBER(col_op_spec, function, 8, 8);
  MEMBER(col_op_spec, user, 16, 8);
  MEMBER(col_op_spec, release, 24, 8);
  MEMBER(col_op_spec, name, 32, 8);
  MEMBER(col_op_spec, commutative, 40, 4);
  MEMBER(col_op_spec, reserved, 44, 4);

  SIZE(col_options, 88);
  MEMBER(col_options, size, 0, 8);
  MEMBER(col_options, op, 8, 4);
  MEMBER(col_options, root, 12, 4);
  MEMBER(col_options, scale, 16, 8);
  MEMBER(col_options, user_op, 24, 8);
  MEMBER(col_options, algorithm, 32, 8);
  MEMBER(col_options, timeout_ns, 40, 8);
  MEMBER(col_options, stream, 48, 8);
  MEMBER(col_options, tag, 56, 4);
  MEMBER(col_options, deterministic, 60, 4);
  MEMBER(col_options, compress, 64, 4);
  MEMBER(col_options, reserved, 68, 4);
  MEMBER(col_options, order, 72, 4);
  MEMBER(col_options, reserved_2, 76, 4);
  MEMBER(col_options, contributions, 80, 8);

  SIZE(col_call, 112);
  MEMBER(col_call, size, 0, 8);
  MEMBER(col_call, collective, 8, 4);
  MEMBER(col_call, reserved, 12, 4);
  MEMBER(col_call, in, 16, 32);
  MEMBER(col_call, out, 48, 32);
  MEMBER(col_call, in_counts, 80, 8);
  MEMBER(col_call, in_counts_length, 88, 8);
  MEMBER(col_call, out_counts, 96, 8);
  MEMBER(col_call, out_counts_length, 104, 8);
}
