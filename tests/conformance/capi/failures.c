/* Errors that break a group, and what they say. */
#include <string.h>

#include "ranks.h"

static int32_t allreduce(col_group* group, size_t count, int64_t timeout_ns, col_error** error) {
  double values[3] = {1, 1, 1};
  const col_call call = {
      .size = sizeof call, .collective = COL_ALLREDUCE, .in = doubles(values, count), .out = doubles(values, count)};
  const col_options options = {.size = sizeof options, .timeout_ns = timeout_ns};
  return col_run(group, &call, &options, error);
}

/* The members of a group in reverse order, so that ranks in the group and in the job differ. */
static col_group* reversed(const rank_place* at) {
  col_error* error;
  col_group* group;
  OK(col_group_split(at->world, 0, -at->rank, &group, &error));
  return group;
}

static void one_calls_something_else(const rank_place* at) {
  col_error* error;
  col_group* const group = reversed(at);
  const int32_t code = allreduce(group, at->rank == 0 ? 2 : 3, 0, &error);
  CHECK(code == COL_ERROR_MISMATCH && col_error_code(error) == code);
  CHECK(strcmp(col_error_group(error), col_group_name(group)) == 0);
  CHECK(col_error_rank(error) == 2 && col_error_world_rank(error) == 0);
  CHECK(!col_error_is_loss(error));
  CHECK(strstr(col_error_message(error), "allreduce of 2 float64") != NULL);
  col_error_free(error);
  FAILS(allreduce(group, 3, 0, &error), COL_ERROR_ABORTED, "mismatch");
  col_group_free(group);
}

/* Rank 1 is alive, and elsewhere. */
static void one_is_late(const rank_place* at) {
  col_error* error;
  col_group* group;
  double word = 0;
  const col_tensor tensor = doubles(&word, 1);
  OK(col_group_dup(at->world, &group, &error));
  if (at->rank == 1) {
    OK(col_recv(at->world, &tensor, 0, NULL, &error));
  } else {
    CHECK(allreduce(group, 1, 50000000, &error) == COL_ERROR_TIMEOUT);
    CHECK(strstr(col_error_text(error), "timed out after 50ms") != NULL);
    CHECK(col_error_rank(error) == 1);
    col_error_free(error);
    FAILS(allreduce(group, 1, 0, &error), COL_ERROR_ABORTED, "timed out");
    OK(col_send(at->world, &tensor, 1, NULL, &error));
  }
  col_group_free(group);
}

/* The error of an operation that was started comes with each wait for it. */
static void lengths_differ(const rank_place* at) {
  col_error* error;
  double values[2] = {0, 0}, word = 0;
  const col_tensor tensor = doubles(values, at->rank == 0 ? 2 : 1), go = doubles(&word, 1);
  const col_options tagged = {.size = sizeof tagged, .tag = 1};
  col_work* work;
  if (at->rank == 1) {
    OK(col_recv(at->world, &go, 0, NULL, &error));
    OK(col_isend(at->world, &tensor, 0, &tagged, &work, &error));
  } else {
    OK(col_irecv(at->world, &tensor, 1, &tagged, &work, &error));
    OK(col_send(at->world, &go, 1, NULL, &error));
    FAILS(col_work_wait(work, &error), COL_ERROR_MISMATCH, "rank 1");
    FAILS(col_work_wait(work, &error), COL_ERROR_MISMATCH, "rank 1");
    int32_t source = 9;
    OK(col_work_source(work, &source, &error));
    CHECK(source == -1);
  }
  col_work_free(work);
}

static int32_t stop_at_once(void* user) {
  int* const asked = user;
  if (*asked < 0) return 0;
  ++*asked;
  return 7;
}

/* Rank 1 waits for the others, and its program ends the wait. */
static void one_is_interrupted(const rank_place* at) {
  col_error* error;
  col_store* store;
  col_context* context;
  col_group* group;
  int asked = -1; /* a slow machine asks as the group is made, too */
  double word = 0;
  const col_tensor tensor = doubles(&word, 1);
  const col_store_spec opened = {.size = sizeof opened, .url = store_url()};
  OK(col_store_open(&opened, &store, &error));
  const col_context_spec spec = {.size = sizeof spec,
                                 .store = store,
                                 .rank = at->rank,
                                 .world_size = at->size,
                                 .job_id = "interrupted",
                                 .serialize = 1,
                                 .timeout_ns = INT64_C(30000000000),
                                 .interrupt = at->rank == 1 ? stop_at_once : NULL,
                                 .interrupt_user = &asked};
  OK(col_context_create(&spec, &context, &error));
  OK(col_group_init(context, NULL, &group, &error));
  asked = 0;
  if (at->rank == 1) {
    FAILS(allreduce(group, 1, 0, &error), COL_ERROR_ABORTED, "it returned 7");
    CHECK(asked == 1);
    FAILS(allreduce(group, 1, 0, &error), COL_ERROR_ABORTED, "interrupted");
    for (int r = 0; r < at->size; ++r) {
      if (r != 1) OK(col_send(at->world, &tensor, r, NULL, &error));
    }
  } else {
    OK(col_recv(at->world, &tensor, 1, NULL, &error));
    /* What rank 1 gave before it was interrupted may have been enough for one call. */
    if (allreduce(group, 1, 0, &error) != COL_OK) col_error_free(error);
    FAILS(allreduce(group, 1, 0, &error), COL_ERROR_ABORTED, "rank 1 was interrupted");
  }
  col_context_free(context);
  col_group_free(group);
  col_store_free(store);
}

void test_failures(void) {
  on_ranks(3, one_calls_something_else);
  on_ranks(2, one_is_late);
  on_ranks(2, lengths_differ);
  on_ranks(3, one_is_interrupted);
}
