/* Operations that have been started. */
#include "ranks.h"

static void start_and_poll(const rank_place* at) {
  col_error* error;
  double mine[100], sums[100];
  for (int i = 0; i < 100; ++i) mine[i] = at->rank + i;
  const col_call call = {
      .size = sizeof call, .collective = COL_ALLREDUCE, .in = doubles(mine, 100), .out = doubles(sums, 100)};
  col_work *first, *second;
  int32_t ended = 0, source = 9;
  OK(col_start(at->world, &call, NULL, &first, &error));
  while (!ended) OK(col_work_test(first, &ended, &error));
  OK(col_work_wait(first, &error)); /* again and again */
  if (at->size > 1)                 /* ranks on the CPU */
    FAILS(col_work_wait_stream(first, NULL, &error), COL_ERROR_UNAVAILABLE, "wait() without a stream");
  FAILS(col_work_wait_stream(NULL, NULL, &error), COL_ERROR_INVALID_ARGUMENT, "work is NULL");
  OK(col_work_source(first, &source, &error));
  CHECK(source == -1);
  const int n = at->size;
  for (int i = 0; i < 100; ++i) CHECK(sums[i] == n * i + n * (n - 1) / 2);

  OK(col_start(at->world, &call, NULL, &second, &error));
  for (ended = 0; !ended;) OK(col_work_wait_for(second, 1000000, &ended, &error));
  col_work_free(first);
  col_work_free(second);
  col_work_free(NULL);
}

/* Nobody answers: the wait for a while ends, and the operation goes on. */
static void wait_for_a_while(const rank_place* at) {
  col_error* error;
  double value = 0;
  const col_tensor tensor = doubles(&value, 1);
  if (at->rank == 0) {
    col_work* work;
    int32_t ended = 9;
    OK(col_irecv(at->world, &tensor, 1, NULL, &work, &error));
    OK(col_work_test(work, &ended, &error));
    CHECK(ended == 0);
    ended = 9;
    OK(col_work_wait_for(work, 1000000, &ended, &error));
    CHECK(ended == 0);
    double go = 1;
    const col_tensor word = doubles(&go, 1);
    OK(col_send(at->world, &word, 1, NULL, &error));
    OK(col_work_wait(work, &error));
    CHECK(value == 42);
    col_work_free(work);
  } else {
    OK(col_recv(at->world, &tensor, 0, NULL, &error));
    value = 42;
    OK(col_send(at->world, &tensor, 0, NULL, &error));
  }
}

static void drop_the_handle(const rank_place* at) {
  col_error* error;
  double value = 1;
  const col_call call = {
      .size = sizeof call, .collective = COL_ALLREDUCE, .in = doubles(&value, 1), .out = doubles(&value, 1)};
  col_work* work;
  OK(col_start(at->world, &call, NULL, &work, &error));
  col_work_free(work);
  OK(col_run(at->world, &(col_call){.size = sizeof(col_call), .collective = COL_BARRIER}, NULL, &error));
  CHECK(value == at->size);
}

static void wait_for_several(const rank_place* at) {
  col_error* error;
  double mine = at->rank + 1, sums[3];
  col_work* works[3];
  int32_t ended = 0;
  size_t index = 9;
  for (int i = 0; i < 3; ++i) {
    const col_call call = {
        .size = sizeof call, .collective = COL_ALLREDUCE, .in = doubles(&mine, 1), .out = doubles(&sums[i], 1)};
    OK(col_start(at->world, &call, NULL, &works[i], &error));
  }
  OK(col_work_wait_any(works, 3, 0, &index, &error));
  CHECK(index < 3 && sums[index] == at->size * (at->size + 1) / 2);
  OK(col_work_wait_all(works, 3, 0, &ended, &error));
  CHECK(ended == 1);
  ended = 0;
  OK(col_work_wait_all(works, 3, 1, &ended, &error));
  CHECK(ended == 1);
  OK(col_work_wait_all(NULL, 0, 0, &ended, &error));
  for (int i = 0; i < 3; ++i) {
    CHECK(sums[i] == at->size * (at->size + 1) / 2);
    col_work_free(works[i]);
  }

  /* Nobody sends: both give up. */
  double value = 0;
  const col_tensor tensor = doubles(&value, 1);
  if (at->size > 1 && at->rank == 0) {
    col_work* never;
    OK(col_irecv(at->world, &tensor, 1, NULL, &never, &error));
    ended = 9;
    OK(col_work_wait_all(&never, 1, 1000000, &ended, &error));
    CHECK(ended == 0);
    OK(col_work_wait_any(&never, 1, 1000000, &index, &error));
    CHECK(index == 1);
    OK(col_send(at->world, &tensor, 1, NULL, &error));
    OK(col_work_wait(never, &error));
    col_work_free(never);
  } else if (at->rank == 1) {
    OK(col_recv(at->world, &tensor, 0, NULL, &error));
    OK(col_send(at->world, &tensor, 0, NULL, &error));
  }
}

typedef struct calls_back {
  int good, bad; /* written by a thread of the library */
} calls_back;

static void note(const col_error* error, void* user) {
  calls_back* const calls = user;
  __atomic_fetch_add(error == NULL ? &calls->good : &calls->bad, 1, __ATOMIC_RELEASE);
}

static void then_functions(const rank_place* at) {
  col_error* error;
  double mine = 1, sum = 0;
  calls_back calls = {0, 0};
  const col_call call = {
      .size = sizeof call, .collective = COL_ALLREDUCE, .in = doubles(&mine, 1), .out = doubles(&sum, 1)};
  col_work *work, *after;
  int32_t ended = 0;
  OK(col_start(at->world, &call, NULL, &work, &error));
  OK(col_work_then(work, note, &calls, NULL, &error));
  OK(col_work_then(work, note, &calls, &after, &error));
  OK(col_work_wait(after, &error));
  CHECK(sum == at->size);
  while (__atomic_load_n(&calls.good, __ATOMIC_ACQUIRE) < 2) OK(col_work_test(work, &ended, &error));
  CHECK(calls.bad == 0);
  FAILS(col_work_then(work, NULL, NULL, NULL, &error), COL_ERROR_INVALID_ARGUMENT, "function is NULL");
  FAILS(col_work_then(NULL, note, &calls, NULL, &error), COL_ERROR_INVALID_ARGUMENT, "work is NULL");
  col_work_free(work);
  col_work_free(after);
}

static void refuse_wrong_arguments(const rank_place* at) {
  col_error* error;
  col_work* work;
  int32_t ended = 9;
  OK(col_start(at->world, &(col_call){.size = sizeof(col_call), .collective = COL_BARRIER}, NULL, &work, &error));
  FAILS(col_work_wait(NULL, &error), COL_ERROR_INVALID_ARGUMENT, "work is NULL");
  FAILS(col_work_wait_for(work, -1, &ended, &error), COL_ERROR_INVALID_ARGUMENT, "-1 ns");
  CHECK(ended == 0);
  FAILS(col_work_wait_for(NULL, 1, &ended, &error), COL_ERROR_INVALID_ARGUMENT, "work is NULL");
  FAILS(col_work_wait_for(work, 1, NULL, &error), COL_ERROR_INVALID_ARGUMENT, "'ended' is NULL");
  FAILS(col_work_test(NULL, &ended, &error), COL_ERROR_INVALID_ARGUMENT, "work is NULL");
  FAILS(col_work_test(work, NULL, &error), COL_ERROR_INVALID_ARGUMENT, "'ended' is NULL");
  FAILS(col_work_source(NULL, &ended, &error), COL_ERROR_INVALID_ARGUMENT, "work is NULL");
  FAILS(col_work_source(work, NULL, &error), COL_ERROR_INVALID_ARGUMENT, "'source' is NULL");
  size_t index = 9;
  FAILS(col_work_wait_all(NULL, 1, 0, &ended, &error), COL_ERROR_INVALID_ARGUMENT, "works is NULL");
  FAILS(col_work_wait_all(&work, 1, -1, &ended, &error), COL_ERROR_INVALID_ARGUMENT, "-1 ns");
  FAILS(col_work_wait_all(&work, 1, 0, NULL, &error), COL_ERROR_INVALID_ARGUMENT, "'ended' is NULL");
  FAILS(col_work_wait_any(&work, 0, 0, &index, &error), COL_ERROR_INVALID_ARGUMENT, "the list is empty");
  FAILS(col_work_wait_any(&work, 1, 0, NULL, &error), COL_ERROR_INVALID_ARGUMENT, "'index' is NULL");
  col_work* const nothing = NULL;
  FAILS(col_work_wait_any(&nothing, 1, 0, &index, &error), COL_ERROR_INVALID_ARGUMENT, "a work of the list is NULL");
  OK(col_work_wait(work, &error));
  col_work_free(work);
}

void test_works(void) {
  for (int n = 1; n <= 3; ++n) {
    on_ranks(n, start_and_poll);
    on_ranks(n, drop_the_handle);
    on_ranks(n, wait_for_several);
    on_ranks(n, then_functions);
  }
  on_ranks(2, wait_for_a_while);
  on_ranks(1, refuse_wrong_arguments);
}
