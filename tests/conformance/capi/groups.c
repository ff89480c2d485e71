/* Groups: made from the environment, from a context, and from other groups; how they end; memory; insight. */
#include <stdlib.h>
#include <string.h>

#include "ranks.h"

static double sum_in(col_group* group, double value) {
  col_error* error;
  const col_call call = {
      .size = sizeof call, .collective = COL_ALLREDUCE, .in = doubles(&value, 1), .out = doubles(&value, 1)};
  OK(col_run(group, &call, NULL, &error));
  return value;
}

static void describe(const rank_place* at) {
  col_error* error;
  int32_t type = 9, index = 9, rank = 9;
  CHECK(strcmp(col_group_name(at->world), "default") == 0);
  CHECK(strlen(col_group_backend(at->world)) > 0);
  CHECK((strcmp(col_group_backend(at->world), "self") == 0) == (at->size == 1));
  CHECK(col_group_timeout(at->world) == INT64_C(30000000000));
  OK(col_group_device(at->world, &type, &index, &error));
  CHECK(type == COL_DEVICE_CPU && index == 0);
  OK(col_group_world_rank(at->world, at->size - 1, &rank, &error));
  CHECK(rank == at->size - 1);
  OK(col_group_rank_of(at->world, 77, &rank, &error));
  CHECK(rank == -1);
  FAILS(col_group_world_rank(at->world, at->size, &rank, &error), COL_ERROR_INVALID_ARGUMENT, "not in the group");
  CHECK(rank == 0);
  FAILS(col_group_world_rank(at->world, 0, NULL, &error), COL_ERROR_INVALID_ARGUMENT, "'world_rank' is NULL");
  FAILS(col_group_rank_of(NULL, 0, &rank, &error), COL_ERROR_INVALID_ARGUMENT, "group is NULL");
  FAILS(col_group_device(at->world, NULL, &index, &error), COL_ERROR_INVALID_ARGUMENT, "'type' is NULL");
  CHECK(col_group_rank(NULL) == -1 && col_group_size(NULL) == 0 && col_group_timeout(NULL) == 0);
  CHECK(col_group_name(NULL) == NULL && col_group_backend(NULL) == NULL);
}

static void make_more(const rank_place* at) {
  col_error* error;
  const int n = at->size;
  col_group *dup, *again, *own, *child;

  OK(col_group_dup(at->world, &dup, &error));
  CHECK(sum_in(dup, 1) == n);
  const col_group_spec spec = {.size = sizeof spec,
                               .name = "own",
                               .rank = n - 1 - at->rank,
                               .world_size = n,
                               .backend = "auto",
                               .timeout_ns = INT64_C(9000000000)};
  OK(col_group_init(at->context, &spec, &own, &error));
  CHECK(col_group_rank(own) == n - 1 - at->rank && col_group_timeout(own) == INT64_C(9000000000));
  CHECK(sum_in(own, 2) == 2 * n);
  FAILS(col_group_init(at->context, &spec, &again, &error), COL_ERROR_ALREADY_INITIALIZED, "own");
  CHECK(again == NULL);
  OK(col_group_get(at->context, "own", &again, &error));
  CHECK(col_group_rank(again) == n - 1 - at->rank);
  col_group_free(again);

  /* Even and odd ranks, in reverse order; rank 2 joins none. */
  OK(col_group_split(at->world, at->rank == 2 ? -1 : at->rank % 2, -at->rank, &child, &error));
  CHECK((child == NULL) == (at->rank == 2));
  if (child != NULL) CHECK(sum_in(child, 1) == 1);
  col_group_free(child);

  const int32_t last = n - 1;
  OK(col_group_subgroup(at->world, &last, 1, "last", &child, &error));
  CHECK((child != NULL) == (at->rank == last));
  if (child != NULL) CHECK(strcmp(col_group_name(child), "last") == 0 && sum_in(child, 5) == 5);
  col_group_free(child);

  OK(col_group_destroy(own, &error));
  OK(col_group_destroy(own, &error)); /* does nothing */
  double value = 1;
  const col_call call = {
      .size = sizeof call, .collective = COL_ALLREDUCE, .in = doubles(&value, 1), .out = doubles(&value, 1)};
  FAILS(col_run(own, &call, NULL, &error), COL_ERROR_NOT_INITIALIZED, "own");
  FAILS(col_group_get(at->context, "own", &again, &error), COL_ERROR_NOT_INITIALIZED, "own");
  CHECK(again == NULL);
  col_group_free(own);
  col_group_free(dup);
  OK(col_context_finalize(at->context, &error));
  OK(col_context_finalize(at->context, &error)); /* idempotent */
  FAILS(col_run(at->world, &call, NULL, &error), COL_ERROR_NOT_INITIALIZED, "default");
}

static void refuse_wrong_groups(const rank_place* at) {
  col_error* error;
  col_group* group = at->world;
  const int32_t ranks[] = {0, 7};
  FAILS(col_group_split(NULL, 0, 0, &group, &error), COL_ERROR_INVALID_ARGUMENT, "group is NULL");
  CHECK(group == NULL);
  FAILS(col_group_split(at->world, 0, 0, NULL, &error), COL_ERROR_INVALID_ARGUMENT, "'child' is NULL");
  FAILS(col_group_subgroup(at->world, ranks, 2, "x", &group, &error), COL_ERROR_INVALID_ARGUMENT, "7");
  FAILS(col_group_subgroup(at->world, NULL, 2, "x", &group, &error), COL_ERROR_INVALID_ARGUMENT, "ranks is NULL");
  FAILS(col_group_subgroup(at->world, ranks, 1, NULL, &group, &error), COL_ERROR_INVALID_ARGUMENT, "name is NULL");
  FAILS(col_group_dup(NULL, &group, &error), COL_ERROR_INVALID_ARGUMENT, "group is NULL");
  FAILS(col_group_shrink(at->world, NULL, 1, NULL, &group, &error), COL_ERROR_INVALID_ARGUMENT, "excluded is NULL");
  FAILS(col_group_shrink(at->world, ranks, 1, NULL, &group, &error), COL_ERROR_INVALID_ARGUMENT, "");
  FAILS(col_group_destroy(NULL, &error), COL_ERROR_INVALID_ARGUMENT, "group is NULL");
  FAILS(col_group_init(at->context, NULL, NULL, &error), COL_ERROR_INVALID_ARGUMENT, "'group' is NULL");
  FAILS(col_group_init(at->context, &(col_group_spec){.size = sizeof(col_group_spec), .name = "x", .rank = 1}, &group,
                       &error),
        COL_ERROR_INVALID_ARGUMENT, "rank is 1 without a world_size");
  FAILS(col_group_init(at->context, &(col_group_spec){.size = sizeof(col_group_spec), .name = "x", .backend = "mpi"},
                       &group, &error),
        COL_ERROR_INVALID_ARGUMENT, "mpi");
  FAILS(col_group_init(at->context,
                       &(col_group_spec){.size = sizeof(col_group_spec), .name = "x", .rank = 2, .world_size = 2},
                       &group, &error),
        COL_ERROR_INVALID_ARGUMENT, "rank 2 does not fit");
  FAILS(col_group_init(at->context, &(col_group_spec){.size = sizeof(col_group_spec), .name = "x", .timeout_ns = -1},
                       &group, &error),
        COL_ERROR_INVALID_ARGUMENT, "-1 ns");
  FAILS(col_group_get(at->context, "nobody", &group, &error), COL_ERROR_NOT_INITIALIZED, "nobody");
  FAILS(col_group_get(at->context, NULL, NULL, &error), COL_ERROR_INVALID_ARGUMENT, "'group' is NULL");
  col_group_free(NULL);
}

static void go_on_without_the_last(const rank_place* at) {
  col_error* error;
  const int32_t last = at->size - 1;
  if (at->rank == last) return;
  col_group* rest;
  OK(col_group_shrink(at->world, &last, 1, "rest", &rest, &error));
  CHECK(col_group_size(rest) == at->size - 1 && strcmp(col_group_name(rest), "rest") == 0);
  CHECK(sum_in(rest, 1) == at->size - 1);
  col_group_free(rest);
}

static void use_shared_memory(const rank_place* at) {
  col_error* error;
  void* memory = NULL;
  OK(col_alloc(at->world, 1000 * sizeof(double), NULL, &memory, &error));
  double* const data = memory;
  for (int i = 0; i < 1000; ++i) {
    CHECK(data[i] == 0);
    data[i] = at->rank + i;
  }
  const col_call call = {
      .size = sizeof call, .collective = COL_ALLREDUCE, .in = doubles(data, 1000), .out = doubles(data, 1000)};
  OK(col_run(at->world, &call, NULL, &error));
  for (int i = 0; i < 1000; ++i) CHECK(data[i] == at->size * i + at->size * (at->size - 1) / 2);
  FAILS(col_free(data + 1, &error), COL_ERROR_INVALID_ARGUMENT, "8 bytes inside");
  OK(col_free(data, &error));
  OK(col_free(NULL, &error));
  FAILS(col_alloc(NULL, 8, NULL, &memory, &error), COL_ERROR_INVALID_ARGUMENT, "group is NULL");
  CHECK(memory == NULL);
  FAILS(col_alloc(at->world, 8, NULL, NULL, &error), COL_ERROR_INVALID_ARGUMENT, "'memory' is NULL");
}

static void look_inside(const rank_place* at) {
  col_error* error;
  char* text = NULL;
  OK(col_group_algorithms(at->world, COL_ALLREDUCE, &text, &error));
  CHECK(strstr(text, "ring\n") != NULL);
  col_text_free(text);
  OK(col_group_explain(at->world, COL_ALLREDUCE, 1 << 20, COL_FLOAT32,
                       &(col_options){.size = sizeof(col_options), .algorithm = "ring"}, &text, &error));
  if (at->size > 1) CHECK(strstr(text, "ring") != NULL);
  CHECK(strlen(text) > 0);
  col_text_free(text);
  OK(col_group_annotate(at->world, "backward", &error));
  OK(col_group_annotate(at->world, "", &error));
  FAILS(col_group_annotate(at->world, "two\nlines", &error), COL_ERROR_INVALID_ARGUMENT, "control characters");
  FAILS(col_group_annotate(at->world, NULL, &error), COL_ERROR_INVALID_ARGUMENT, "label");
  FAILS(col_group_explain(at->world, 99, 8, COL_FLOAT32, NULL, &text, &error), COL_ERROR_INVALID_ARGUMENT,
        "no collective 99");
  CHECK(text == NULL);
  FAILS(col_group_explain(at->world, COL_SCAN, 8, COL_FLOAT32, NULL, NULL, &error), COL_ERROR_INVALID_ARGUMENT,
        "'text' is NULL");
  FAILS(col_group_algorithms(at->world, -1, &text, &error), COL_ERROR_INVALID_ARGUMENT, "no collective -1");
  FAILS(col_group_algorithms(NULL, COL_SCAN, &text, &error), COL_ERROR_INVALID_ARGUMENT, "group is NULL");
  col_text_free(NULL);
}

/* The environment of this test says nothing: a world of one. */
static void init_alone(void) {
  col_error* error;
  col_group *world, *same;
  col_context* context;
  OK(col_init(&world, &error));
  OK(col_init(&same, &error));
  CHECK(col_group_size(world) == 1 && col_group_rank(same) == 0);
  col_group_free(same);
  OK(col_group_get(NULL, NULL, &same, &error));
  CHECK(sum_in(same, 3) == 3);
  col_group_free(same);
  FAILS(col_init(NULL, &error), COL_ERROR_INVALID_ARGUMENT, "'group' is NULL");
  FAILS(col_group_init(NULL, NULL, &same, &error), COL_ERROR_ALREADY_INITIALIZED, "default");
  OK(col_finalize(&error));
  col_group_free(world);

  OK(col_context_from_environment(&context, &error));
  OK(col_group_init(context, NULL, &world, &error));
  CHECK(col_group_size(world) == 1);
  col_context_free(context);
  col_group_free(world);
  FAILS(col_context_from_environment(NULL, &error), COL_ERROR_INVALID_ARGUMENT, "'context' is NULL");
}

void test_groups(void) {
  for (int n = 1; n <= 3; ++n) {
    on_ranks(n, describe);
    on_ranks(n, make_more);
    on_ranks(n, use_shared_memory);
    on_ranks(n, look_inside);
  }
  on_ranks(1, refuse_wrong_groups);
  on_ranks(3, go_on_without_the_last);
  init_alone();
}
