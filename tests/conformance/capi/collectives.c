/* Every collective against an obvious reference: on one to three ranks, blocking and started, with each rank as root.
 */
#include <stdlib.h>
#include <string.h>

#include "ranks.h"

enum { kMostRanks = 3, kUntouched = -7 };

/* Element i of what a rank contributes. Sums of it are exact. */
static double given(int rank, size_t i) {
  return (rank + 1) * 1000.0 + (double)i;
}

static double sum_of(int ranks, size_t i) {
  double sum = 0;
  for (int r = 0; r < ranks; ++r) sum += given(r, i);
  return sum;
}

/* One rank's part of one call: what it passes, and what it must have at the end. */
typedef struct part {
  double* in;
  double* want;
  size_t in_count, out_count;
  size_t in_counts[kMostRanks], out_counts[kMostRanks];
  int has_in_counts, has_out_counts;
} part;

static double* new_doubles(size_t count) {
  double* const data = malloc((count + 1) * sizeof *data);
  CHECK(data != NULL);
  for (size_t i = 0; i <= count; ++i) data[i] = kUntouched;
  return data;
}

static void set_input(part* p, int rank, size_t count) {
  p->in_count = count;
  p->in = new_doubles(count);
  for (size_t i = 0; i < count; ++i) p->in[i] = given(rank, i);
}

static void set_output(part* p, size_t count) {
  p->out_count = count;
  p->want = new_doubles(count);
}

/* The length of the block that goes from one rank to another in the v-forms; it differs for each pair. */
static size_t length(int from, int to, size_t count) {
  return count + (size_t)from + 2 * (size_t)to;
}
/* Where that block begins in what `from` has for all ranks. */
static size_t offset(int from, int to, size_t count) {
  size_t sum = 0;
  for (int r = 0; r < to; ++r) sum += length(from, r, count);
  return sum;
}

/* The sum over the first `ranks` ranks; nothing is written if there are none. */
static void prepare_vector(part* p, const rank_place* at, int ranks, size_t count, int has_result) {
  set_input(p, at->rank, count);
  set_output(p, has_result ? count : 0);
  for (size_t i = 0; has_result && ranks > 0 && i < count; ++i) p->want[i] = sum_of(ranks, i);
}

/* Rank r contributes block r. The blocks have counts[r] elements. */
static void prepare_gathering(part* p, const rank_place* at, const size_t* counts, int has_result) {
  size_t total = 0, next = 0;
  for (int r = 0; r < at->size; ++r) total += counts[r];
  set_input(p, at->rank, counts[at->rank]);
  set_output(p, has_result ? total : 0);
  for (int r = 0; has_result && r < at->size; ++r)
    for (size_t i = 0; i < counts[r]; ++i) p->want[next++] = given(r, i);
}

/* Rank r gets block r: that of the root (reduces: 0), or of the sum over all ranks. */
static void prepare_scattering(part* p, const rank_place* at, const size_t* counts, int has_input, int root,
                               int reduces) {
  size_t total = 0, before = 0;
  for (int r = 0; r < at->size; ++r) {
    if (r < at->rank) before += counts[r];
    total += counts[r];
  }
  set_input(p, at->rank, has_input ? total : 0);
  set_output(p, counts[at->rank]);
  for (size_t i = 0; i < p->out_count; ++i)
    p->want[i] = reduces ? sum_of(at->size, before + i) : given(root, before + i);
}

static void prepare_exchange(part* p, const rank_place* at, size_t count) {
  size_t received = 0, next = 0;
  for (int r = 0; r < at->size; ++r) {
    p->in_counts[r] = length(at->rank, r, count);
    p->out_counts[r] = length(r, at->rank, count);
    received += p->out_counts[r];
  }
  set_input(p, at->rank, offset(at->rank, at->size, count));
  set_output(p, received);
  for (int r = 0; r < at->size; ++r)
    for (size_t i = 0; i < p->out_counts[r]; ++i) p->want[next++] = given(r, offset(r, at->rank, count) + i);
}

static void prepare_alltoall(part* p, const rank_place* at, size_t count) {
  const size_t total = count * (size_t)at->size;
  set_input(p, at->rank, total);
  set_output(p, total);
  for (size_t i = 0; i < total; ++i) p->want[i] = given((int)(i / count), (size_t)at->rank * count + i % count);
}

static void prepare(part* p, const rank_place* at, int32_t collective, int root, size_t count) {
  const int is_root = at->rank == root;
  size_t equal[kMostRanks], different[kMostRanks];
  for (int r = 0; r < at->size; ++r) {
    equal[r] = count;
    different[r] = count + 3 * (size_t)r;
  }
  memset(p, 0, sizeof *p);
  switch (collective) {
    case COL_ALLREDUCE:
      prepare_vector(p, at, at->size, count, 1);
      break;
    case COL_REDUCE:
      prepare_vector(p, at, at->size, count, is_root);
      break;
    case COL_SCAN:
      prepare_vector(p, at, at->rank + 1, count, 1);
      break;
    case COL_EXSCAN:
      prepare_vector(p, at, at->rank, count, 1);
      break;
    case COL_ALLGATHER:
      prepare_gathering(p, at, equal, 1);
      break;
    case COL_GATHER:
      prepare_gathering(p, at, equal, is_root);
      break;
    case COL_ALLGATHERV:
    case COL_GATHERV:
      p->has_out_counts = collective == COL_ALLGATHERV || is_root;
      memcpy(p->out_counts, different, sizeof different);
      prepare_gathering(p, at, different, p->has_out_counts);
      break;
    case COL_REDUCE_SCATTER:
      prepare_scattering(p, at, equal, 1, root, 1);
      break;
    case COL_SCATTER:
      prepare_scattering(p, at, equal, is_root, root, 0);
      break;
    case COL_REDUCE_SCATTERV:
    case COL_SCATTERV:
      p->has_in_counts = collective == COL_REDUCE_SCATTERV || is_root;
      memcpy(p->in_counts, different, sizeof different);
      prepare_scattering(p, at, different, p->has_in_counts, root, collective == COL_REDUCE_SCATTERV);
      break;
    case COL_ALLTOALL:
      prepare_alltoall(p, at, count);
      break;
    case COL_ALLTOALLV:
      p->has_in_counts = p->has_out_counts = 1;
      prepare_exchange(p, at, count);
      break;
    case COL_BROADCAST:
      set_output(p, count);
      for (size_t i = 0; i < count; ++i) p->want[i] = given(root, i);
      break;
    case COL_BARRIER:
      break;
    default:
      CHECK(!"a collective without a reference");
  }
}

static void make_call(const rank_place* at, const col_call* call, const col_options* options, int starts) {
  col_error* error;
  if (starts) {
    col_work* work;
    OK(col_start(at->world, call, options, &work, &error));
    OK(col_work_wait(work, &error));
    col_work_free(work);
  } else {
    OK(col_run(at->world, call, options, &error));
  }
}

static void check_call(const rank_place* at, int32_t collective, int root, size_t count, int starts) {
  part p;
  prepare(&p, at, collective, root, count);
  double* const out = new_doubles(p.out_count);
  if (collective == COL_BROADCAST && at->rank == root) memcpy(out, p.want, count * sizeof *out);
  const size_t n = (size_t)at->size;
  const col_call call = {.size = sizeof call,
                         .collective = collective,
                         .in = doubles(p.in, p.in_count),
                         .out = doubles(out, p.out_count),
                         .in_counts = p.has_in_counts ? p.in_counts : NULL,
                         .in_counts_length = p.has_in_counts ? n : 0,
                         .out_counts = p.has_out_counts ? p.out_counts : NULL,
                         .out_counts_length = p.has_out_counts ? n : 0};
  const col_options options = {.size = sizeof options, .root = root};
  make_call(at, &call, &options, starts);
  /* The element behind the last one, too. */
  for (size_t i = 0; p.out_count > 0 && i <= p.out_count; ++i) CHECK(out[i] == p.want[i]);
  free(p.in), free(p.want), free(out);
}

static void run_all(const rank_place* at) {
  const size_t counts[] = {1, 7, 3000};
  for (int32_t collective = 0; collective < COL_SEND; ++collective)
    for (int root = 0; root < at->size; ++root)
      for (size_t i = 0; i < 3; ++i)
        for (int starts = 0; starts < 2; ++starts) check_call(at, collective, root, counts[i], starts);
}

/* The bytes of every element type travel unchanged. */
static void broadcast_all_types(const rank_place* at) {
  col_error* error;
  for (uint32_t i = 0; i <= (uint32_t)col_dtype_count(); ++i) {
    const uint32_t dtype = i < (uint32_t)col_dtype_count() ? i : col_dtype_opaque(24);
    unsigned char bytes[5 * 24];
    memset(bytes, at->rank == 0 ? (int)i + 1 : 0, sizeof bytes);
    const size_t size = 5 * col_dtype_size(dtype);
    const col_call call = {
        .size = sizeof call, .collective = COL_BROADCAST, .out = {.data = bytes, .count = 5, .dtype = dtype}};
    OK(col_run(at->world, &call, NULL, &error));
    for (size_t b = 0; b < size; ++b) CHECK(bytes[b] == i + 1);
  }
}

/* In place, with each option that changes the result or may be refused. */
static void use_options(const rank_place* at) {
  col_error* error;
  double value;
  const col_call call = {
      .size = sizeof call, .collective = COL_ALLREDUCE, .in = doubles(&value, 1), .out = doubles(&value, 1)};
  const int n = at->size;

  value = at->rank + 1;
  OK(col_run(at->world, &call, &(col_options){.size = sizeof(col_options), .op = COL_MAX}, &error));
  CHECK(value == n);
  value = at->rank + 1;
  OK(col_run(at->world, &call, &(col_options){.size = sizeof(col_options), .op = COL_AVG}, &error));
  CHECK(value == (n + 1) / 2.0);
  value = 1;
  OK(col_run(at->world, &call,
             &(col_options){.size = sizeof(col_options), .op = COL_PREMUL_SUM, .scale = at->rank + 2.0}, &error));
  CHECK(value == n * (n + 3) / 2.0);
  value = 1;
  OK(col_run(at->world, &call,
             &(col_options){.size = sizeof(col_options), .deterministic = 1, .timeout_ns = INT64_C(20000000000)},
             &error));
  CHECK(value == n);
  value = 1;
  OK(col_run(at->world, &call, &(col_options){.size = sizeof(col_options), .algorithm = "ring"}, &error));
  CHECK(value == n);
  if (n > 1) /* alone, no algorithm runs */
    FAILS(col_run(at->world, &call, &(col_options){.size = sizeof(col_options), .algorithm = "rings"}, &error),
          COL_ERROR_INVALID_ARGUMENT, "ring");
  FAILS(col_run(at->world, &call, &(col_options){.size = sizeof(col_options), .root = n, .op = 77}, &error),
        COL_ERROR_INVALID_ARGUMENT, "there is no op 77");

  /* In the tree's order, rank 0 gives two contributions, and every other one gives one. */
  double both[2] = {1, 2};
  const col_call shared = {.size = sizeof shared,
                           .collective = COL_ALLREDUCE,
                           .in = doubles(both, at->rank == 0 ? 2 : 1),
                           .out = doubles(&value, 1)};
  const size_t contributions = (size_t)n + 1;
  OK(col_run(at->world, &shared,
             &(col_options){.size = sizeof(col_options), .order = COL_ORDER_TREE, .contributions = contributions},
             &error));
  CHECK(value == n + 2);
  /* Away from the root, a rank has no output. */
  const int root = n - 1;
  value = 0;
  OK(col_run(at->world,
             &(col_call){.size = sizeof(col_call),
                         .collective = COL_REDUCE,
                         .in = shared.in,
                         .out = doubles(&value, at->rank == root ? 1 : 0)},
             &(col_options){.size = sizeof(col_options), .order = COL_ORDER_TREE, .root = root}, &error));
  CHECK(value == (at->rank == root ? n + 2 : 0));
  FAILS(col_run(at->world, &shared, &(col_options){.size = sizeof(col_options), .order = 4}, &error),
        COL_ERROR_INVALID_ARGUMENT, "4 is no order");
  FAILS(col_run(at->world, &call, &(col_options){.size = sizeof(col_options), .order = COL_ORDER_EXACT}, &error),
        COL_ERROR_INVALID_ARGUMENT, "not there yet");

  uint16_t halves[64]; /* float16: 1.0 is 0x3c00, 2.0 0x4000, 3.0 0x4200 */
  static const uint16_t sums[] = {0x3c00, 0x4000, 0x4200};
  for (int i = 0; i < 64; ++i) halves[i] = 0x3c00;
  const col_tensor sixteen = {.data = halves, .count = 64, .dtype = COL_FLOAT16};
  OK(col_run(at->world,
             &(col_call){.size = sizeof(col_call), .collective = COL_ALLREDUCE, .in = sixteen, .out = sixteen},
             &(col_options){.size = sizeof(col_options), .compress = 1}, &error));
  for (int i = 0; i < 64; ++i) CHECK(halves[i] == sums[n - 1]);
}

void test_collectives(void) {
  for (int n = 1; n <= kMostRanks; ++n) {
    on_ranks(n, run_all);
    on_ranks(n, broadcast_all_types);
    on_ranks(n, use_options);
  }
}
