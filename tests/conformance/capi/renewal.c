/* The epochs of a group: after a loss, with those that join, and what is wrong with a call. */
#define _XOPEN_SOURCE 700
#include <signal.h>
#include <string.h>
#include <unistd.h>

#include "ranks.h"

static int32_t add_up(col_group* group, double* value, col_error** error) {
  const col_call call = {
      .size = sizeof call, .collective = COL_ALLREDUCE, .in = doubles(value, 1), .out = doubles(value, 1)};
  return col_run(group, &call, NULL, error);
}

static void expect_sum(col_group* group) {
  col_error* error;
  double value = 1 + col_group_rank(group);
  const int n = col_group_size(group);
  OK(add_up(group, &value, &error));
  CHECK(value == n * (n + 1) / 2);
}

/* The last rank is killed. The others find that out in a call, and go on. */
static void go_on_after_a_loss(const rank_place* at) {
  col_error* error;
  col_group *next, *row;
  const int32_t last = at->size - 1;
  int32_t ranks[8] = {0}, source = 9;
  size_t count = 9;
  uint64_t progress = 9;
  CHECK(col_group_epoch(at->world) == 0 && col_group_epoch(NULL) == 0);
  OK(col_group_newcomers(at->world, ranks, 8, &count, &error));
  CHECK(count == (size_t)at->size && ranks[last] == last);
  OK(col_group_dup(at->world, &row, &error));
  expect_sum(row);
  if (at->rank == last) kill(getpid(), SIGKILL);
  int32_t code = COL_OK;
  double value = 1;
  while (code == COL_OK) code = add_up(at->world, &value, &error);
  CHECK((code == COL_ERROR_PEER_LOST || code == COL_ERROR_ABORTED) && col_error_is_loss(error) == 1);
  col_error_free(error);

  const col_renewal wishes = {.size = sizeof wishes, .min = 2, .progress = at->rank == 1 ? 7 : 5};
  OK(col_group_renew(at->world, &wishes, &next, &error));
  CHECK(col_group_epoch(next) == 1 && col_group_size(next) == last && col_group_rank(next) == at->rank);
  CHECK(strcmp(col_group_name(next), "default") == 0);
  OK(col_group_lost(next, ranks, 8, &count, &error));
  CHECK(count == 1 && ranks[0] == last);
  ranks[0] = 99;
  OK(col_group_lost(next, NULL, 0, &count, &error));
  CHECK(count == 1 && ranks[0] == 99);
  OK(col_group_newcomers(next, ranks, 8, &count, &error));
  CHECK(count == 0);
  OK(col_group_source(next, &source, &error));
  OK(col_group_progress(next, 0, &progress, &error));
  CHECK(source == 1 && progress == 5);
  expect_sum(next);
  col_group* const over[] = {at->world, row};
  for (int i = 0; i < 2; ++i) {
    code = add_up(over[i], &value, &error);
    CHECK(code == COL_ERROR_ABORTED && strstr(col_error_text(error), "epoch 1 has taken its place") != NULL);
    CHECK(col_error_is_loss(error) == 1);
    col_error_free(error);
  }
  col_group_free(row);
  col_group_free(next);
}

/* The last rank joins a group of the others, and another one leaves it on purpose. */
static void change_on_purpose(const rank_place* at) {
  col_error* error;
  col_group *group, *next;
  const int32_t last = at->size - 1, leaves = 0;
  int32_t wanted = 0, ranks[8];
  size_t count = 0;
  if (at->rank == last) {
    OK(col_group_join(at->context, "elastic", INT64_C(30000000000), &group, &error));
  } else {
    const col_group_spec spec = {.size = sizeof spec, .name = "elastic", .rank = at->rank, .world_size = last};
    OK(col_group_init(at->context, &spec, &group, &error));
    while (!wanted) OK(col_group_renewal_wanted(group, &wanted, &error));
    const col_renewal more = {.size = sizeof more, .new_size = at->size};
    OK(col_group_renew(group, &more, &next, &error));
    col_group_free(group);
    group = next;
  }
  CHECK(col_group_size(group) == at->size && col_group_epoch(group) == 1);
  OK(col_group_newcomers(group, ranks, 8, &count, &error));
  CHECK(count == 1 && ranks[0] == last);
  expect_sum(group);
  OK(col_group_renewal_wanted(group, &wanted, &error));
  CHECK(!wanted);
  const col_renewal fewer = {.size = sizeof fewer, .excluded = &leaves, .excluded_count = 1};
  OK(col_group_renew(group, &fewer, &next, &error));
  CHECK((next == NULL) == (at->rank == leaves));
  if (next != NULL) CHECK(col_group_size(next) == last && col_group_rank(next) == at->rank - 1);
  if (next != NULL) expect_sum(next);
  col_group_free(next);
  col_group_free(group);
}

static void refuse_wrong_calls(const rank_place* at) {
  col_error* error;
  col_group *next = at->world, *row;
  int32_t number = 0;
  size_t count = 0;
  uint64_t progress = 0;
  const int32_t nobody = 7;
  const struct {
    col_renewal wishes;
    const char* words;
  } wrong[] = {
      {{.size = 7}, "no version of this struct has a size of 7"},
      {{.size = sizeof(col_renewal), .new_size = -1}, "size = -1"},
      {{.size = sizeof(col_renewal), .min = -1}, "min = -1"},
      {{.size = sizeof(col_renewal), .wait_ns = -1}, "col_renewal: wait_ns"},
      {{.size = sizeof(col_renewal), .excluded_count = 1}, "excluded is NULL"},
      {{.size = sizeof(col_renewal), .excluded = &nobody, .excluded_count = 1}, "excluded rank 7"},
  };
  for (size_t i = 0; i < sizeof wrong / sizeof *wrong; ++i) {
    FAILS(col_group_renew(at->world, &wrong[i].wishes, &next, &error), COL_ERROR_INVALID_ARGUMENT, wrong[i].words);
    CHECK(next == NULL);
  }
  FAILS(col_group_renew(NULL, NULL, &next, &error), COL_ERROR_INVALID_ARGUMENT, "group is NULL");
  FAILS(col_group_renew(at->world, NULL, NULL, &error), COL_ERROR_INVALID_ARGUMENT, "'next' is NULL");
  FAILS(col_group_join(at->context, "default", 0, &next, &error), COL_ERROR_ALREADY_INITIALIZED, "default");
  FAILS(col_group_join(at->context, "nobody's", 100000000, &next, &error), COL_ERROR_TIMEOUT, "nobody has made");
  FAILS(col_group_join(at->context, "", -1, &next, &error), COL_ERROR_INVALID_ARGUMENT, "timeout_ns");
  FAILS(col_group_join(at->context, NULL, 0, NULL, &error), COL_ERROR_INVALID_ARGUMENT, "'group' is NULL");
  FAILS(col_group_renewal_wanted(at->world, NULL, &error), COL_ERROR_INVALID_ARGUMENT, "'wanted' is NULL");
  FAILS(col_group_newcomers(at->world, NULL, 1, &count, &error), COL_ERROR_INVALID_ARGUMENT, "ranks is NULL");
  FAILS(col_group_lost(NULL, NULL, 0, &count, &error), COL_ERROR_INVALID_ARGUMENT, "group is NULL");
  FAILS(col_group_progress(at->world, 9, &progress, &error), COL_ERROR_INVALID_ARGUMENT, "progress: rank 9");
  FAILS(col_group_source(at->world, NULL, &error), COL_ERROR_INVALID_ARGUMENT, "'rank' is NULL");
  OK(col_group_dup(at->world, &row, &error));
  FAILS(col_group_source(row, &number, &error), COL_ERROR_INVALID_ARGUMENT, "made from 'default'");
  FAILS(col_group_renew(row, NULL, &next, &error), COL_ERROR_INVALID_ARGUMENT, "made from 'default'");
  col_group_free(row);
  expect_sum(at->world); /* none of these broke it */
}

void test_renewal(void) {
  on_processes(3, go_on_after_a_loss);
  on_ranks(4, change_on_purpose);
  on_ranks(2, refuse_wrong_calls);
}
