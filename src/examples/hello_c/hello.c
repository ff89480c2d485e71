/* Every rank ends with the sum over all ranks. colrun -n 4 hello_c */
#include <stdio.h>
#include <stdlib.h>

#include <col/col.h>

static void check(int32_t code, col_error* error) {
  if (code == COL_OK) return;
  fprintf(stderr, "hello_c: %s\n", col_error_text(error));
  col_error_free(error);
  exit(1);
}

int main(void) {
  col_error* error = NULL;
  col_group* world = NULL;
  int32_t code = col_init(&world, &error);
  check(code, error);

  float values[1000];
  for (int i = 0; i < 1000; ++i) values[i] = (float)(col_group_rank(world) + 1);
  const col_tensor tensor = {.data = values, .count = 1000, .dtype = COL_FLOAT32};
  const col_call call = {.size = sizeof call, .collective = COL_ALLREDUCE, .in = tensor, .out = tensor};
  code = col_run(world, &call, NULL, &error); /* NULL: no options, so the sum */
  check(code, error);
  printf("rank %d of %d: the sum is %g\n", (int)col_group_rank(world), (int)col_group_size(world), values[0]);

  col_group_free(world);
  code = col_finalize(&error);
  check(code, error);
  return 0;
}
