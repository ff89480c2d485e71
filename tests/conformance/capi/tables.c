/* Names and numbers, as a binding reads them. */
#include <string.h>

#include "ranks.h"

static int is(const char* text, const char* wanted) {
  return text != NULL && strcmp(text, wanted) == 0;
}

static void check_codes(void) {
  static const char* const names[] = {
      "ok",      "invalid_argument", "not_initialized", "already_initialized", "mismatch",
      "timeout", "peer_lost",        "aborted",         "unavailable",         "resource",
      "io",      "internal"};
  CHECK(col_code_count() == 12);
  for (int32_t code = 0; code < col_code_count(); ++code) CHECK(is(col_code_name(code), names[code]));
  CHECK(col_code_name(-1) == NULL && col_code_name(12) == NULL);
  CHECK(is(col_code_name(COL_ERROR_TIMEOUT), "timeout") && is(col_code_name(COL_ERROR_INTERNAL), "internal"));
}

static void check_collectives(void) {
  col_error* error;
  int32_t number = -1;
  CHECK(col_collective_count() == 18);
  for (int32_t i = 0; i < col_collective_count(); ++i) {
    OK(col_collective_from_name(col_collective_name(i), &number, &error));
    CHECK(number == i);
  }
  CHECK(is(col_collective_name(COL_ALLTOALLV), "alltoallv") && is(col_collective_name(COL_RECV), "recv"));
  CHECK(col_collective_name(-1) == NULL && col_collective_name(18) == NULL);
  FAILS(col_collective_from_name("allreduced", &number, &error), COL_ERROR_INVALID_ARGUMENT, "allreduce, reduce");
  CHECK(number == 0);
  FAILS(col_collective_from_name(NULL, &number, &error), COL_ERROR_INVALID_ARGUMENT, "name is NULL");
  FAILS(col_collective_from_name("scan", NULL, &error), COL_ERROR_INVALID_ARGUMENT, "'collective' is NULL");
}

static void check_dtypes(void) {
  static const size_t sizes[] = {1, 1, 4, 4, 8, 8, 2, 2, 4, 8, 2, 2, 1, 8, 16, 1, 1};
  col_error* error;
  uint32_t number = 99;
  CHECK(col_dtype_count() == 17);
  for (uint32_t i = 0; i < 17; ++i) {
    OK(col_dtype_from_name(col_dtype_name(i), &number, &error));
    CHECK(number == i && col_dtype_size(i) == sizes[i]);
  }
  CHECK(is(col_dtype_name(COL_BFLOAT16), "bfloat16") && is(col_dtype_name(COL_COMPLEX128), "complex128"));
  CHECK(is(col_dtype_name(COL_FLOAT8_E4M3FN), "float8_e4m3fn") && is(col_dtype_name(COL_FLOAT8_E5M2), "float8_e5m2"));
  CHECK(col_dtype_name(17) == NULL && col_dtype_size(17) == 0);
  CHECK(col_dtype_opaque(12) == COL_BYTES + 12 && col_dtype_size(COL_BYTES + 12) == 12);
  CHECK(is(col_dtype_name(col_dtype_opaque(12)), "bytes[12]"));
  CHECK(col_dtype_opaque(0) == COL_BYTES && col_dtype_opaque((size_t)-1) == COL_BYTES);
  CHECK(col_dtype_name(COL_BYTES) == NULL && col_dtype_size(COL_BYTES) == 0);
  OK(col_dtype_from_name("bytes[12]", &number, &error));
  CHECK(number == COL_BYTES + 12);
  FAILS(col_dtype_from_name("float", &number, &error), COL_ERROR_INVALID_ARGUMENT, "float32");
  FAILS(col_dtype_from_name("int8", NULL, &error), COL_ERROR_INVALID_ARGUMENT, "'dtype' is NULL");
}

static void check_operators(void) {
  col_error* error;
  int32_t number = -1;
  CHECK(col_reduce_op_count() == 8);
  for (int32_t i = 0; i < col_reduce_op_count(); ++i) {
    OK(col_reduce_op_from_name(col_reduce_op_name(i), &number, &error));
    CHECK(number == i);
  }
  CHECK(is(col_reduce_op_name(COL_SUM), "sum") && is(col_reduce_op_name(COL_BXOR), "bxor"));
  CHECK(col_reduce_op_name(8) == NULL && col_reduce_op_name(-1) == NULL);
  CHECK(is(col_reduce_op_name(COL_PREMUL_SUM), "premul_sum"));
  OK(col_reduce_op_from_name("premul_sum", &number, &error));
  CHECK(number == COL_PREMUL_SUM);
  FAILS(col_reduce_op_from_name("plus", &number, &error), COL_ERROR_INVALID_ARGUMENT, "sum, product");
  FAILS(col_reduce_op_from_name("sum", NULL, &error), COL_ERROR_INVALID_ARGUMENT, "'op' is NULL");
}

void test_tables(void) {
  CHECK(is(col_version(), COL_EXPECTED_VERSION));
  check_codes();
  check_collectives();
  check_dtypes();
  check_operators();
}
