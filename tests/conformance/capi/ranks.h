/* What the files of this program share: checks, and ranks as threads. */
#ifndef COL_TESTS_CAPI_RANKS_H
#define COL_TESTS_CAPI_RANKS_H

#include <stdint.h>

#include <col/col.h>

#define CHECK(condition) check_that((condition) != 0, #condition, __FILE__, __LINE__)
/* A function succeeds. It has stored its error, if any, in `error`. */
#define OK(code) check_ok((code), &error, __FILE__, __LINE__)
/* A function fails with that code and with these words in its message; frees `error`. */
#define FAILS(code, wanted, words) check_fails((code), &error, (wanted), (words), __FILE__, __LINE__)

/* These end the program when the check fails. */
void check_that(int holds, const char* condition, const char* file, int line);
void check_ok(int32_t code, col_error* const* error, const char* file, int line);
void check_fails(int32_t code, col_error** error, int32_t wanted, const char* words, const char* file, int line);

/* What a rank does. */
typedef struct rank_place {
  col_context* context;
  col_group* world; /* "default", joined */
  int rank;
  int size;
} rank_place;
typedef void (*rank_body)(const rank_place* place);

/* Runs `body` in one thread for each rank, each with a context of its own over one store. Destroys what is left. */
void on_ranks(int size, rank_body body);
/* The same in processes, of which the last is killed by its body. Requires: no test has used the library before. */
void on_processes(int size, rank_body body);
/* The URL of the store that on_ranks() uses. */
const char* store_url(void);

/* `count` elements of float64. */
col_tensor doubles(double* data, size_t count);

/* The tests, one a file. */
void test_abi(void);
void test_tables(void);
void test_arguments(void);
void test_collectives(void);
void test_failures(void);
void test_groups(void);
void test_messages(void);
void test_operators(void);
void test_prepared(void);
void test_renewal(void);
void test_works(void);

#endif
