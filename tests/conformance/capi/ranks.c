#define _XOPEN_SOURCE 700
#include "ranks.h"

#include <ftw.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { kMostRanks = 8 };
static char directory[200];

static int remove_one(const char* path, const struct stat* status, int type, struct FTW* place) {
  (void)status, (void)type, (void)place;
  return remove(path);
}

static void clean_up(void) {
  if (directory[0] != 0) nftw(directory, remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

static void give_up(void) {
  clean_up();
  _Exit(1); /* other threads may be inside a call */
}

void check_that(int holds, const char* condition, const char* file, int line) {
  if (holds) return;
  fprintf(stderr, "%s:%d: not as expected: %s\n", file, line, condition);
  give_up();
}

void check_ok(int32_t code, col_error* const* error, const char* file, int line) {
  if (code == COL_OK && *error == NULL) return;
  fprintf(stderr, "%s:%d: code %d: %s\n", file, line, code, col_error_text(*error));
  give_up();
}

void check_fails(int32_t code, col_error** error, int32_t wanted, const char* words, const char* file, int line) {
  if (code != wanted || col_error_code(*error) != wanted || strstr(col_error_text(*error), words) == NULL) {
    fprintf(stderr, "%s:%d: code %d and \"%s\", instead of code %d and \"%s\"\n", file, line, code,
            col_error_text(*error), wanted, words);
    give_up();
  }
  col_error_free(*error);
  *error = NULL;
}

const char* store_url(void) {
  static char url[300];
  if (directory[0] == 0) {
    const char* const parent = getenv("TMPDIR");
    snprintf(directory, sizeof directory, "%s/col-capi-XXXXXX", parent == NULL ? "/tmp" : parent);
    CHECK(mkdtemp(directory) != NULL);
    CHECK(atexit(clean_up) == 0);
    snprintf(url, sizeof url, "file://%s", directory);
  }
  return url;
}

typedef struct rank_thread {
  rank_body body;
  rank_place place;
  const char* job;
} rank_thread;

static void* run_rank(void* argument) {
  rank_thread* const self = argument;
  col_error* error;
  col_store* store;
  const col_store_spec opened = {.size = sizeof opened, .url = store_url()};
  OK(col_store_open(&opened, &store, &error));
  const col_context_spec spec = {.size = sizeof spec,
                                 .store = store,
                                 .rank = self->place.rank,
                                 .world_size = self->place.size,
                                 .job_id = self->job,
                                 .timeout_ns = INT64_C(30000000000)};
  OK(col_context_create(&spec, &self->place.context, &error));
  col_store_free(store); /* the context keeps it */
  OK(col_group_init(self->place.context, NULL, &self->place.world, &error));
  CHECK(col_group_rank(self->place.world) == self->place.rank);
  CHECK(col_group_size(self->place.world) == self->place.size);
  self->body(&self->place);
  col_context_free(self->place.context);
  col_group_free(self->place.world); /* in this order on purpose */
  return NULL;
}

void on_ranks(int size, rank_body body) {
  static int jobs = 0;
  char job[20];
  pthread_t threads[kMostRanks];
  rank_thread ranks[kMostRanks];
  CHECK(size <= kMostRanks);
  (void)store_url(); /* made before there are threads */
  snprintf(job, sizeof job, "job%d", ++jobs);
  for (int r = 0; r < size; ++r) {
    ranks[r] = (rank_thread){.body = body, .place = {.rank = r, .size = size}, .job = job};
    CHECK(pthread_create(&threads[r], NULL, run_rank, &ranks[r]) == 0);
  }
  for (int r = 0; r < size; ++r) CHECK(pthread_join(threads[r], NULL) == 0);
}

void on_processes(int size, rank_body body) {
  pid_t ranks[kMostRanks];
  CHECK(size <= kMostRanks);
  (void)store_url(); /* of all of them */
  for (int r = 0; r < size; ++r) {
    ranks[r] = fork();
    CHECK(ranks[r] >= 0);
    if (ranks[r] != 0) continue;
    rank_thread rank = {.body = body, .place = {.rank = r, .size = size}, .job = "processes"};
    run_rank(&rank);
    _Exit(0); /* the directory is the parent's */
  }
  for (int r = 0; r < size; ++r) {
    int status = 0;
    CHECK(waitpid(ranks[r], &status, 0) == ranks[r]);
    CHECK(r < size - 1 ? WIFEXITED(status) && WEXITSTATUS(status) == 0 : WIFSIGNALED(status));
  }
}

col_tensor doubles(double* data, size_t count) {
  return (col_tensor){.data = data, .count = count, .dtype = COL_FLOAT64};
}
