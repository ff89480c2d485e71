/* Structs of other versions and wrong values: invalid_argument, in words that say what to do. */
#include <string.h>

#include "ranks.h"

/* A later version of col_options, as a newer program has it. */
typedef struct newer_options {
  col_options known;
  int64_t unknown[2];
} newer_options;

static void check_options_of_other_versions(const rank_place* at) {
  col_error* error;
  double value = 2;
  const col_call call = {
      .size = sizeof call, .collective = COL_ALLREDUCE, .in = doubles(&value, 1), .out = doubles(&value, 1)};
  newer_options newer = {.known = {.size = sizeof newer, .op = COL_MAX}};
  OK(col_run(at->world, &call, &newer.known, &error));
  newer.unknown[1] = INT64_C(1) << 40; /* byte 88 + 8 + 5 */
  FAILS(col_run(at->world, &call, &newer.known, &error), COL_ERROR_INVALID_ARGUMENT, "col_options: byte 101 is set");
  const size_t first_size = offsetof(col_options, order); /* of the first version */
  newer.known.size = first_size;
  OK(col_run(at->world, &call, &newer.known, &error));
  const size_t wrong[] = {0, 8, first_size - 8, sizeof(col_options) + 1, 1 << 20, (size_t)-8};
  for (size_t i = 0; i < sizeof wrong / sizeof *wrong; ++i) {
    newer.known.size = wrong[i];
    FAILS(col_run(at->world, &call, &newer.known, &error), COL_ERROR_INVALID_ARGUMENT,
          "set its first member with sizeof");
  }
}

static void check_call(const rank_place* at, col_call call, const char* words) {
  col_error* error;
  call.size = sizeof call;
  FAILS(col_run(at->world, &call, NULL, &error), COL_ERROR_INVALID_ARGUMENT, words);
  col_work* work = (col_work*)&call;
  FAILS(col_start(at->world, &call, NULL, &work, &error), COL_ERROR_INVALID_ARGUMENT, words);
  CHECK(work == NULL);
  col_prepared* prepared = (col_prepared*)&call;
  FAILS(col_prepare(at->world, &call, NULL, &prepared, &error), COL_ERROR_INVALID_ARGUMENT, words);
  CHECK(prepared == NULL);
}

static void check_calls(const rank_place* at) {
  col_error* error;
  double value = 1, other = 1;
  const size_t counts[] = {1};
  const col_tensor good = doubles(&value, 1), empty = {.dtype = COL_FLOAT64};
  col_call call = {.size = sizeof call, .in = good, .out = good};
  FAILS(col_run(NULL, &call, NULL, &error), COL_ERROR_INVALID_ARGUMENT, "group is NULL");
  FAILS(col_run(at->world, NULL, NULL, &error), COL_ERROR_INVALID_ARGUMENT, "col_call is NULL");
  FAILS(col_start(at->world, &call, NULL, NULL, &error), COL_ERROR_INVALID_ARGUMENT, "'work' is NULL");
  call.size = 0;
  FAILS(col_run(at->world, &call, NULL, &error), COL_ERROR_INVALID_ARGUMENT, "col_call: no version");

  check_call(at, (col_call){.collective = -1}, "no collective -1");
  check_call(at, (col_call){.collective = 18}, "no collective 18");
  check_call(at, (col_call){.collective = COL_SEND, .in = good}, "send is no collective");
  check_call(at, (col_call){.reserved = 1, .in = good, .out = good}, "col_call: reserved is 1");
  col_tensor wrong = good;
  wrong.dtype = 77;
  check_call(at, (col_call){.in = wrong, .out = good}, "unknown dtype (77)");
  wrong = good;
  wrong.device_type = 5;
  check_call(at, (col_call){.in = good, .out = wrong}, "the output: there is no device type 5");
  wrong = good;
  wrong.reserved = 3;
  check_call(at, (col_call){.in = wrong, .out = good}, "the input: reserved is 3");
  wrong = good;
  wrong.data = NULL;
  check_call(at, (col_call){.in = wrong, .out = good}, "null pointer");
  check_call(at, (col_call){.in = good, .out = empty}, "must have 1");
  check_call(at,
             (col_call){.collective = COL_ALLGATHERV, .in = good, .out = doubles(&other, 1), .out_counts_length = 1},
             "out_counts is NULL");
  check_call(at, (col_call){.collective = COL_ALLGATHERV, .in = good, .out = doubles(&other, 1), .out_counts = counts},
             "one count per rank");

  call = (col_call){.size = sizeof call, .in = good, .out = good};
  col_options options = {.size = sizeof options, .timeout_ns = -5};
  FAILS(col_run(at->world, &call, &options, &error), COL_ERROR_INVALID_ARGUMENT, "-5 ns");
  options = (col_options){.size = sizeof options, .reserved = 1};
  FAILS(col_run(at->world, &call, &options, &error), COL_ERROR_INVALID_ARGUMENT, "col_options: reserved is 1");
  options = (col_options){.size = sizeof options, .op = -1};
  FAILS(col_run(at->world, &call, &options, &error), COL_ERROR_INVALID_ARGUMENT, "no op -1");
  options = (col_options){.size = sizeof options, .op = COL_BAND};
  FAILS(col_run(at->world, &call, &options, &error), COL_ERROR_INVALID_ARGUMENT, "integer types");
  OK(col_run(at->world, &call, NULL, &error)); /* the group is as good as before */
}

static void check_store(void) {
  col_error* error;
  col_store* store = (col_store*)&error;
  col_store_spec spec = {.size = sizeof spec, .url = "nowhere"};
  FAILS(col_store_open(&spec, &store, &error), COL_ERROR_INVALID_ARGUMENT, "has no scheme");
  CHECK(store == NULL);
  spec.url = NULL;
  FAILS(col_store_open(&spec, &store, &error), COL_ERROR_INVALID_ARGUMENT, "url is NULL");
  spec = (col_store_spec){.size = sizeof spec, .url = store_url(), .reserved = 1};
  FAILS(col_store_open(&spec, &store, &error), COL_ERROR_INVALID_ARGUMENT, "reserved is 1");
  spec = (col_store_spec){.size = 1, .url = store_url()};
  FAILS(col_store_open(&spec, &store, &error), COL_ERROR_INVALID_ARGUMENT, "col_store_spec: no version");
  FAILS(col_store_open(NULL, &store, &error), COL_ERROR_INVALID_ARGUMENT, "col_store_spec is NULL");
  FAILS(col_store_open(&spec, NULL, &error), COL_ERROR_INVALID_ARGUMENT, "'store' is NULL");
  spec = (col_store_spec){.size = sizeof spec, .url = "file:///proc/none"};
  FAILS(col_store_open(&spec, &store, &error), COL_ERROR_IO, "/proc/none");
  col_store_free(NULL);
}

static void check_place(col_context_spec spec, const char* words) {
  col_error* error;
  col_context* context = (col_context*)&error;
  spec.size = sizeof spec;
  FAILS(col_context_create(&spec, &context, &error), COL_ERROR_INVALID_ARGUMENT, words);
  CHECK(context == NULL);
}

static void check_context(void) {
  col_error* error;
  col_context* context;
  check_place((col_context_spec){.rank = 1}, "rank 1 does not fit world_size 1");
  check_place((col_context_spec){.rank = -1, .world_size = 2}, "rank -1 does not fit");
  check_place((col_context_spec){.world_size = -2}, "world_size is -2");
  check_place((col_context_spec){.world_size = 2}, "2 ranks need a store");
  check_place((col_context_spec){.local_rank = 1}, "local_rank is 1 without a local_world_size");
  check_place((col_context_spec){.local_rank = 3, .local_world_size = 2}, "local_rank 3 does not fit");
  check_place((col_context_spec){.timeout_ns = -1}, "-1 ns");
  FAILS(col_context_create(NULL, &context, &error), COL_ERROR_INVALID_ARGUMENT, "col_context_spec is NULL");
  FAILS(col_context_create(&(col_context_spec){.size = 3}, &context, &error), COL_ERROR_INVALID_ARGUMENT, "no version");
  FAILS(col_context_finalize(NULL, &error), COL_ERROR_INVALID_ARGUMENT, "context is NULL");
  col_context_free(NULL);
}

/* A caller who wants no error object gets the code. */
static void check_without_error_object(void) {
  col_context* context;
  CHECK(col_context_create(NULL, &context, NULL) == COL_ERROR_INVALID_ARGUMENT);
  CHECK(col_context_create(&(col_context_spec){.size = sizeof(col_context_spec)}, &context, NULL) == COL_OK);
  col_context_free(context);
}

static void check_error_object(void) {
  col_error* error;
  CHECK(col_context_finalize(NULL, &error) == COL_ERROR_INVALID_ARGUMENT);
  CHECK(col_error_code(error) == COL_ERROR_INVALID_ARGUMENT);
  CHECK(strcmp(col_error_code_name(error), "invalid_argument") == 0);
  CHECK(strcmp(col_error_message(error), "context is NULL; this function needs it") == 0);
  CHECK(strcmp(col_error_text(error), "invalid_argument: context is NULL; this function needs it") == 0);
  CHECK(strcmp(col_error_group(error), "") == 0);
  CHECK(col_error_rank(error) == -1 && col_error_world_rank(error) == -1);
  col_error_free(error);

  CHECK(col_error_code(NULL) == COL_OK && strcmp(col_error_code_name(NULL), "ok") == 0);
  CHECK(strcmp(col_error_text(NULL), "") == 0 && strcmp(col_error_message(NULL), "") == 0);
  CHECK(strcmp(col_error_group(NULL), "") == 0);
  CHECK(col_error_rank(NULL) == -1 && col_error_world_rank(NULL) == -1);
  CHECK(!col_error_is_loss(NULL));
  col_error_free(NULL);
}

void test_arguments(void) {
  check_error_object();
  check_without_error_object();
  check_store();
  check_context();
  on_ranks(1, check_options_of_other_versions);
  on_ranks(1, check_calls);
}
