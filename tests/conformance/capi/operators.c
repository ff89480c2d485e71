/* Operators of the user: a C function with a pointer of its own. */
#include <string.h>

#include "ranks.h"

/* x -> a x + b. Composition is associative, and not commutative. */
typedef struct affine {
  double a, b;
} affine;

/* Any thread may call. */
typedef struct state {
  int calls, releases;
} state;

static void increase(int* number) {
  __atomic_fetch_add(number, 1, __ATOMIC_SEQ_CST);
}
static int read_count(const int* number) {
  return __atomic_load_n(number, __ATOMIC_SEQ_CST);
}

static void compose(const void* left, const void* right, void* result, size_t count, uint32_t dtype, void* user) {
  const affine *f = left, *g = right;
  affine* const out = result;
  CHECK(dtype == COL_BYTES + sizeof(affine));
  for (size_t i = 0; i < count; ++i) out[i] = (affine){g[i].a * f[i].a, g[i].a * f[i].b + g[i].b};
  increase(&((state*)user)->calls);
}

static void count_release(void* user) {
  increase(&((state*)user)->releases);
}

static void reduce_by_function(const rank_place* at) {
  col_error* error;
  col_op* op;
  state counts = {0, 0};
  const col_op_spec spec = {
      .size = sizeof spec, .function = compose, .user = &counts, .release = count_release, .name = "compose"};
  OK(col_op_create(&spec, &op, &error));

  affine values[5], want = {1, 0};
  for (int i = 0; i < 5; ++i) values[i] = (affine){at->rank + 2, at->rank};
  for (int r = 0; r < at->size; ++r) want = (affine){(r + 2) * want.a, (r + 2) * want.b + r};
  const col_tensor tensor = {.data = values, .count = 5, .dtype = col_dtype_opaque(sizeof(affine))};
  const col_call call = {.size = sizeof call, .collective = COL_ALLREDUCE, .in = tensor, .out = tensor};
  const col_options options = {.size = sizeof options, .user_op = op};
  OK(col_run(at->world, &call, &options, &error));
  for (int i = 0; i < 5; ++i) CHECK(memcmp(&values[i], &want, sizeof want) == 0);
  if (at->size == 1) CHECK(read_count(&counts.calls) == 0);

  /* Operations keep the operator. */
  col_work* work;
  for (int i = 0; i < 5; ++i) values[i] = (affine){at->rank + 2, at->rank};
  OK(col_start(at->world, &call, &options, &work, &error));
  col_op_free(op);
  OK(col_work_wait(work, &error));
  for (int i = 0; i < 5; ++i) CHECK(memcmp(&values[i], &want, sizeof want) == 0);
  col_work_free(work);
  OK(col_group_destroy(at->world, &error));
  CHECK(read_count(&counts.releases) == 1);
}

static void refuse_wrong_operators(void) {
  col_error* error;
  col_op* op = (col_op*)&error;
  state counts = {0, 0};
  const col_op_spec empty = {.size = sizeof empty, .user = &counts, .release = count_release};
  FAILS(col_op_create(&empty, &op, &error), COL_ERROR_INVALID_ARGUMENT, "function is NULL");
  CHECK(op == NULL && read_count(&counts.releases) == 0);
  FAILS(col_op_create(NULL, &op, &error), COL_ERROR_INVALID_ARGUMENT, "col_op_spec is NULL");
  FAILS(col_op_create(&empty, NULL, &error), COL_ERROR_INVALID_ARGUMENT, "'op' is NULL");
  /* Never used, and released all the same. */
  const col_op_spec unused = {.size = sizeof unused, .function = compose, .user = &counts, .release = count_release};
  OK(col_op_create(&unused, &op, &error));
  col_op_free(op);
  CHECK(read_count(&counts.releases) == 1);
  col_op_free(NULL);
}

static void refuse_two_operators(const rank_place* at) {
  col_error* error;
  col_op* op;
  double value = 1;
  OK(col_op_create(&(col_op_spec){.size = sizeof(col_op_spec), .function = compose}, &op, &error));
  const col_call call = {
      .size = sizeof call, .collective = COL_ALLREDUCE, .in = doubles(&value, 1), .out = doubles(&value, 1)};
  FAILS(col_run(at->world, &call, &(col_options){.size = sizeof(col_options), .op = COL_MAX, .user_op = op}, &error),
        COL_ERROR_INVALID_ARGUMENT, "user_op");
  col_op_free(op);
}

void test_operators(void) {
  refuse_wrong_operators();
  on_ranks(1, refuse_two_operators);
  for (int n = 1; n <= 3; ++n) on_ranks(n, reduce_by_function);
}
