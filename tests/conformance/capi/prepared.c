/* Collectives that come again. */
#include "ranks.h"

static void start_again(const rank_place* at) {
  col_error* error;
  double mine[100], sums[100];
  col_call call = {
      .size = sizeof call, .collective = COL_ALLREDUCE, .in = doubles(mine, 100), .out = doubles(sums, 100)};
  col_prepared* sum;
  OK(col_prepare(at->world, &call, NULL, &sum, &error));
  call.collective = COL_BARRIER; /* the struct is not kept */
  OK(col_prepared_wait(sum, &error));
  const int n = at->size;
  for (int step = 0; step < 10; ++step) {
    for (int i = 0; i < 100; ++i) mine[i] = at->rank + i * step;
    OK(col_prepared_start(sum, &error));
    int32_t ended = 0;
    if (step % 3 == 0)
      OK(col_prepared_wait(sum, &error));
    else if (step % 3 == 1)
      while (!ended) OK(col_prepared_test(sum, &ended, &error));
    else
      while (!ended) OK(col_prepared_wait_for(sum, 1000000, &ended, &error));
    for (int i = 0; i < 100; ++i) CHECK(sums[i] == n * i * step + n * (n - 1) / 2);
  }
  OK(col_prepared_start(sum, &error));
  col_prepared_free(sum); /* it goes on */
  call = (col_call){.size = sizeof call, .collective = COL_BARRIER};
  OK(col_run(at->world, &call, NULL, &error));
}

static void refuse_wrong_arguments(const rank_place* at) {
  col_error* error;
  col_call call = {.size = sizeof call, .collective = COL_BARRIER};
  col_prepared* made = (col_prepared*)&call;
  FAILS(col_prepare(NULL, &call, NULL, &made, &error), COL_ERROR_INVALID_ARGUMENT, "group is NULL");
  CHECK(made == NULL);
  FAILS(col_prepare(at->world, &call, NULL, NULL, &error), COL_ERROR_INVALID_ARGUMENT, "'prepared' is NULL");
  OK(col_prepare(at->world, &call, NULL, &made, &error));
  int32_t ended = 9;
  FAILS(col_prepared_start(NULL, &error), COL_ERROR_INVALID_ARGUMENT, "prepared is NULL");
  FAILS(col_prepared_wait(NULL, &error), COL_ERROR_INVALID_ARGUMENT, "prepared is NULL");
  FAILS(col_prepared_wait_for(made, -1, &ended, &error), COL_ERROR_INVALID_ARGUMENT, "-1 ns");
  FAILS(col_prepared_wait_for(made, 1, NULL, &error), COL_ERROR_INVALID_ARGUMENT, "'ended' is NULL");
  FAILS(col_prepared_test(NULL, &ended, &error), COL_ERROR_INVALID_ARGUMENT, "prepared is NULL");
  OK(col_prepared_start(made, &error));
  OK(col_prepared_wait(made, &error));
  col_prepared_free(made);
  col_prepared_free(NULL);
}

void test_prepared(void) {
  for (int n = 1; n <= 3; ++n) on_ranks(n, start_again);
  on_ranks(1, refuse_wrong_arguments);
}
