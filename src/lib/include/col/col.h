/* col for programs in C, and for bindings to other languages. It needs C99, and can be included from C++ too.
 *
 *   #include <col/col.h>
 *
 *   col_group* world = NULL;
 *   col_error* error = NULL;
 *   if (col_init(&world, &error) != COL_OK) { puts(col_error_text(error)); exit(1); }
 *   col_tensor values = {.data = array, .count = 1000, .dtype = COL_FLOAT32};
 *   col_call call = {.size = sizeof call, .collective = COL_ALLREDUCE, .in = values, .out = values};
 *   if (col_run(world, &call, NULL, &error) != COL_OK) ...
 *
 * docs/c.md shows a whole program. <col/group.hpp> says what each call does to the data, and the rules for all calls:
 * order, blocking, errors, memory, numerics, in-place calls. They hold here too. C has no object forms, no calls over
 * several GPUs for each rank, no traces, no plans and no tables of selection: these are in C++ alone.
 *
 * Rules that hold for all functions
 * ---------------------------------
 * Errors. A function that can fail returns a code: COL_OK, or one of COL_ERROR_*. If the caller passes an address for
 * `error`, the function stores NULL there first, and the error object if it fails; col_error_free() frees it. If a
 * function fails, its other results are NULL, 0 or false. No C++ exception leaves a function. Every function gives
 * invalid_argument for NULL in place of a handle, a struct or a result, and for a struct of a wrong size, unless its
 * comment says otherwise.
 *
 * Structs. The first member of most structs is `size`: the size of the struct as the program was compiled. Set it with
 * sizeof, and set all members that you do not need to zero: zero is the default of every member.
 * - If the library is newer than the program, its struct may have more members at the end. They get their defaults.
 * - If the program is newer than the library, its struct may have members that the library does not know. They must be
 *   zero; otherwise the call is invalid_argument.
 * col_tensor and col_message have no `size`, because they are parts of others: they never change. Members named
 * `reserved` must be zero.
 *
 * Versions. Within a major version, numbers keep their meaning, structs only grow at the end, and functions stay.
 *
 * Handles. A function that makes a handle gives it to the caller, who frees it with the free function of its type,
 * which ignores NULL. Handles may be freed in any order: each stays valid until it is freed itself.
 *
 * Text. Text is UTF-8 and ends with a zero byte. The library copies the text that it keeps. Text that a function
 * returns as const char* belongs to its handle, or is valid for ever.
 *
 * Time. Times are in nanoseconds. Zero means the default, and a negative time is invalid_argument.
 *
 * Thread safety. Any thread may call any function. Two threads that use one group at once, or wait for its works, get
 * invalid_argument, or take turns (col_context_spec.serialize). Do not free a handle while another thread uses it.
 */
#ifndef COL_COL_H
#define COL_COL_H

#include <stddef.h>
#include <stdint.h>

#if defined(__GNUC__)
#define COL_API __attribute__((visibility("default")))
#else
#define COL_API
#endif

#ifdef __cplusplus
extern "C" {
#endif

typedef struct col_error col_error;       /* an error: its code, text and rank */
typedef struct col_op col_op;             /* a reduction operator of the user */
typedef struct col_store col_store;       /* how ranks find one another */
typedef struct col_context col_context;   /* the place of this process, or thread, in its job */
typedef struct col_group col_group;       /* a group of ranks */
typedef struct col_work col_work;         /* an operation that has been started */
typedef struct col_prepared col_prepared; /* a collective that comes again */

/* ---- Numbers ----------------------------------------------------------------------------------------------------- */

/* Results of functions. docs/errors.md says for each code what causes it and what to do. */
enum {
  COL_OK = 0,
  COL_ERROR_INVALID_ARGUMENT = 1,
  COL_ERROR_NOT_INITIALIZED = 2,
  COL_ERROR_ALREADY_INITIALIZED = 3,
  COL_ERROR_MISMATCH = 4,
  COL_ERROR_TIMEOUT = 5,
  COL_ERROR_PEER_LOST = 6,
  COL_ERROR_ABORTED = 7,
  COL_ERROR_UNAVAILABLE = 8,
  COL_ERROR_RESOURCE = 9,
  COL_ERROR_IO = 10,
  COL_ERROR_INTERNAL = 11
};

/* Collectives, and the two directions of a message. */
enum {
  COL_ALLREDUCE = 0,
  COL_REDUCE = 1,
  COL_BROADCAST = 2,
  COL_ALLGATHER = 3,
  COL_ALLGATHERV = 4,
  COL_REDUCE_SCATTER = 5,
  COL_REDUCE_SCATTERV = 6,
  COL_GATHER = 7,
  COL_GATHERV = 8,
  COL_SCATTER = 9,
  COL_SCATTERV = 10,
  COL_ALLTOALL = 11,
  COL_ALLTOALLV = 12,
  COL_SCAN = 13,
  COL_EXSCAN = 14,
  COL_BARRIER = 15,
  COL_SEND = 16,
  COL_RECV = 17
};

/* Element types. COL_BYTES + n is an opaque element of n bytes: see col_dtype_opaque(). */
enum {
  COL_INT8 = 0,
  COL_UINT8 = 1,
  COL_INT32 = 2,
  COL_UINT32 = 3,
  COL_INT64 = 4,
  COL_UINT64 = 5,
  COL_FLOAT16 = 6,
  COL_BFLOAT16 = 7,
  COL_FLOAT32 = 8,
  COL_FLOAT64 = 9,
  COL_INT16 = 10,
  COL_UINT16 = 11,
  COL_BOOLEAN = 12,    /* one byte: 0 is false, anything else is true */
  COL_COMPLEX64 = 13,  /* two float32 */
  COL_COMPLEX128 = 14, /* two float64 */
  COL_FLOAT8_E4M3FN = 15,
  COL_FLOAT8_E5M2 = 16,
  COL_BYTES = 256
};

/* Reduction operators. */
enum {
  COL_SUM = 0,
  COL_PRODUCT = 1,
  COL_MIN = 2,
  COL_MAX = 3,
  COL_AVG = 4,
  COL_BAND = 5,
  COL_BOR = 6,
  COL_BXOR = 7,
  COL_PREMUL_SUM = 256 /* each rank multiplies its input by col_options.scale before the sum */
};

/* The order in which a reduction combines contributions. <col/options.hpp> says more about each. */
enum { COL_ORDER_ANY = 0, COL_ORDER_RANK = 1, COL_ORDER_TREE = 2, COL_ORDER_EXACT = 3 };

/* Kinds of memory. */
enum { COL_DEVICE_CPU = 0, COL_DEVICE_CUDA = 1 };

/* ---- Names ------------------------------------------------------------------------------------------------------- */
/* With these functions, a binding can make its tables when it is loaded. The numbers of each table go from 0 up to, not
 * including, its count. Names are as in C++ and in all messages: "allreduce", "float32", "sum". A name is valid for
 * ever; it is NULL for a number that is not in the table. */

/* "0.1.0" */
COL_API const char* col_version(void);

/* "timeout"; "ok" for COL_OK. The codes are 0 to count - 1 too. */
COL_API int32_t col_code_count(void);
COL_API const char* col_code_name(int32_t code);

COL_API int32_t col_collective_count(void);
COL_API const char* col_collective_name(int32_t collective);
/* The number of that name. An unknown name is invalid_argument, and the message lists those that exist. */
COL_API int32_t col_collective_from_name(const char* name, int32_t* collective, col_error** error);

/* The count leaves out opaque elements, but the functions for names and sizes know them too ("bytes[12]"). */
COL_API int32_t col_dtype_count(void);
COL_API const char* col_dtype_name(uint32_t dtype);
/* Bytes of one element; 0 for a number that is no element type. */
COL_API size_t col_dtype_size(uint32_t dtype);
COL_API int32_t col_dtype_from_name(const char* name, uint32_t* dtype, col_error** error);
/* The type of opaque elements of 1 to 2^30 bytes: COL_BYTES + bytes. Other sizes give COL_BYTES: no call takes it. */
COL_API uint32_t col_dtype_opaque(size_t bytes);

/* The count leaves out COL_PREMUL_SUM, but the functions for names know it too. */
COL_API int32_t col_reduce_op_count(void);
COL_API const char* col_reduce_op_name(int32_t op);
COL_API int32_t col_reduce_op_from_name(const char* name, int32_t* op, col_error** error);

/* ---- Errors ------------------------------------------------------------------------------------------------------ */

/* For NULL: COL_OK, "ok", no text, no rank. */
COL_API int32_t col_error_code(const col_error* error);
COL_API const char* col_error_code_name(const col_error* error);
/* One line: "<code>: [group 'g': ]<message>". */
COL_API const char* col_error_text(const col_error* error);
/* The text without the code and the group. */
COL_API const char* col_error_message(const col_error* error);
/* The group where the error happened; "" if none. */
COL_API const char* col_error_group(const col_error* error);
/* The rank that the error is about, in that group; -1 if it is not about a single rank. */
COL_API int32_t col_error_rank(const col_error* error);
/* The rank of the same process in the job; -1 if it is not known. */
COL_API int32_t col_error_world_rank(const col_error* error);
/* 1 if the ranks that are alive can go on with col_group_renew(): for COL_ERROR_PEER_LOST, and for a COL_ERROR_ABORTED
 * whose first cause is a lost rank, or that comes because ranks have called col_group_renew(). Else 0. */
COL_API int32_t col_error_is_loss(const col_error* error);
COL_API void col_error_free(col_error* error);

/* Frees text that a function gave as char*. */
COL_API void col_text_free(char* text);

/* ---- Stores and contexts ----------------------------------------------------------------------------------------- */
/* Most programs need none of this: col_init() takes their place in the job from the environment. */

typedef struct col_store_spec {
  size_t size;
  /* "file:///dir", a directory that all ranks can reach, or "tcp://host:port" ("tcp://[::1]:4711"). */
  const char* url;
  /* For a tcp store. Members that are left out come from the environment. */
  const char* token;  /* the secret, 1 to 512 bytes; NULL: COL_STORE_TOKEN, else the file COL_STORE_TOKEN_FILE */
  const char* job_id; /* the job whose store it is; NULL: COL_JOB_ID and COL_RESTART_COUNT, if they are set */
  int32_t restart_count;
  int32_t reserved;
  int64_t timeout_ns; /* for each request; zero: COL_TIMEOUT, else 5 minutes */
} col_store_spec;

/* Opens a store. A tcp store connects at its first use. Does not block. Errors: invalid_argument, io. */
COL_API int32_t col_store_open(const col_store_spec* spec, col_store** store, col_error** error);
COL_API void col_store_free(col_store* store);

typedef struct col_context_spec {
  size_t size;
  col_store* store; /* needed for more than one rank */
  int32_t rank;
  int32_t world_size; /* zero: 1 */
  /* The place among the ranks of this host. A local_world_size of zero: not known; then all ranks meet in the store to
   * find it out. */
  int32_t local_rank;
  int32_t local_world_size;
  const char* job_id; /* equal on all ranks, and on no other job that uses the store */
  int32_t restart_count;
  /* Not 0: threads that use one group at once take turns, in the order of their arrival. 0: the second one gets
   * invalid_argument. */
  int32_t serialize;
  int64_t timeout_ns; /* for calls that give no timeout; zero: 5 minutes */
  /* Called about every 50 ms by each wait of the context's groups, in the thread that waits. If it does not return 0,
   * the call ends with `aborted`, and the group is broken on all ranks. It must not use a group of the context. NULL:
   * none. */
  int32_t (*interrupt)(void* user);
  void* interrupt_user; /* passed to `interrupt` */
} col_context_spec;

/* Makes a context: a registry of groups, with the place of this process, or of a thread that plays a rank, in its job.
 * If the ranks meet (local_world_size 0), this blocks until all have come, for the timeout at most; see
 * ContextSpec::meet() in <col/context.hpp>. Otherwise it does not block, and the death of a rank is noticed later.
 * Errors: invalid_argument; of a meeting also mismatch, timeout (names the ranks that did not come), peer_lost, io,
 * resource. */
COL_API int32_t col_context_create(const col_context_spec* spec, col_context** context, col_error** error);
/* The same from the environment: from colrun, or another launcher (docs/environment.md); else a world of one. May wait
 * for other processes of this user for COL_TIMEOUT at most. Errors: invalid_argument names the variable; timeout,
 * unavailable, io, resource. A process should do this once: col_init() does it by itself. */
COL_API int32_t col_context_from_environment(col_context** context, col_error** error);
/* Leaves all groups of the context, and tells the others that this rank left in good order. Ends the operations in
 * flight, which takes a few seconds at most. Idempotent. Errors: mismatch, if the ranks made different calls and no
 * call could tell before; the groups are left all the same. */
COL_API int32_t col_context_finalize(col_context* context, col_error** error);
/* As col_context_finalize(), without its error, and frees the handle. */
COL_API void col_context_free(col_context* context);

/* ---- Groups ------------------------------------------------------------------------------------------------------ */

/* Joins group "default" of all ranks of the job, as the environment gives them (see col_context_from_environment). A
 * second call gives a handle to the same group. Blocks until all ranks have joined, for COL_TIMEOUT at most, else 5
 * minutes. Errors as for col_group_init(); not_initialized in a process that was forked from a rank. */
COL_API int32_t col_init(col_group** group, col_error** error);
/* Call it when this rank is done: as col_context_finalize(), for the context of the process. Its peers then know that
 * it did not crash. */
COL_API int32_t col_finalize(col_error** error);

typedef struct col_group_spec {
  size_t size;
  const char* name; /* NULL: "default" */
  int32_t rank;
  int32_t world_size; /* zero: rank and size of the context */
  /* "shm", "hosts", "hosts_ucx", "gloo", "ucx", "nccl", or one that the program has registered;
     NULL or "auto": col chooses */
  const char* backend;
  int64_t timeout_ns;           /* for making the group, and for its calls; zero: the context's */
  int32_t high_priority_stream; /* not 0: its work on GPUs gets ahead of the program's kernels */
  int32_t reserved;
} col_group_spec;

/* Joins a group. Collective: blocks until all its ranks have joined, or until the timeout. `context` NULL: the context
 * of the process, made from the environment. `spec` NULL: "default", of all ranks of the context. Errors:
 * already_initialized (the name is taken here, or the rank was started twice), mismatch (names the rank that differs),
 * invalid_argument, unavailable, timeout, peer_lost. */
COL_API int32_t col_group_init(col_context* context, const col_group_spec* spec, col_group** group, col_error** error);
/* The group of that name (NULL: "default"). If this process has not joined it yet, it joins now, and blocks, if
 * COL_GROUP_* or a record in the store says how; otherwise not_initialized. `context` as in col_group_init(). */
COL_API int32_t col_group_get(col_context* context, const char* name, col_group** group, col_error** error);

/* These do not fail. For NULL: -1, 0, NULL. */
COL_API int32_t col_group_rank(const col_group* group);
COL_API int32_t col_group_size(const col_group* group);
COL_API const char* col_group_name(const col_group* group);
/* "shm", "hosts", "hosts_ucx", "gloo", "ucx", "nccl", or "self" for a world of one rank on the CPU. */
COL_API const char* col_group_backend(const col_group* group);
/* The timeout of the group's calls, in nanoseconds. */
COL_API int64_t col_group_timeout(const col_group* group);
/* The memory that the group moves without extra copies, and that col_alloc() gives. */
COL_API int32_t col_group_device(const col_group* group, int32_t* type, int32_t* index, col_error** error);
/* The rank in the job of a rank of the group; and the rank in the group of a rank of the job, -1 if it is not a member.
 */
COL_API int32_t col_group_world_rank(const col_group* group, int32_t rank, int32_t* world_rank, col_error** error);
COL_API int32_t col_group_rank_of(const col_group* group, int32_t world_rank, int32_t* rank, col_error** error);

/* The next four functions make groups from this one. All except shrink are collective over this group and block, for
 * its timeout at most. Ranks of equal `color` form a group, ordered by `key`, then by rank. With a negative color,
 * `*child` is NULL. */
COL_API int32_t col_group_split(col_group* group, int32_t color, int32_t key, col_group** child, col_error** error);
/* The listed ranks form group `name`, in the order of the list. For other ranks, `*child` is NULL. */
COL_API int32_t col_group_subgroup(col_group* group, const int32_t* ranks, size_t count, const char* name,
                                   col_group** child, col_error** error);
/* All ranks, in the same order. */
COL_API int32_t col_group_dup(col_group* group, col_group** child, col_error** error);
/* After the loss of ranks: a group of all ranks except `excluded`, which do not call. Works on a broken group. `name`
 * NULL: a name made from this group's. Group::shrink() in <col/group.hpp> says what is required, and how it ends. */
COL_API int32_t col_group_shrink(col_group* group, const int32_t* excluded, size_t count, const char* name,
                                 col_group** child, col_error** error);

/* The arguments of col_group_renew(): <col/renewal.hpp> and docs/rank-dies.md say more about epochs of a group.
 * new_size, min and excluded must be equal on all ranks. */
typedef struct col_renewal {
  size_t size;
  int32_t new_size;        /* ranks to reach with those that wait to join; zero: as many as before */
  int32_t min;             /* with fewer ranks there is no next epoch: peer_lost, on all. Zero: 1 */
  int64_t wait_ns;         /* how long to wait for ranks that join, where there are too few; the lowest rank's counts */
  const int32_t* excluded; /* ranks of this group that leave it; those that were lost need not be listed */
  size_t excluded_count;
  uint64_t progress; /* how far this rank's state is, by the program's own count: see col_group_source() */
} col_renewal;

/* Makes the next epoch of a group that col_init() or col_group_init() has made, under its name. It has all ranks of the
 * group except lost and excluded ones, and processes that wait in col_group_join(). `renewal` NULL: all defaults.
 * Collective over the ranks that are alive and stay, and blocks, for the group's timeout at most. Works on a broken
 * group and on one that is not broken.
 *
 * `*next` is a new handle, or NULL on a rank that was excluded. The old handle stays until it is freed; its group is
 * over: calls, works and prepared calls of it, and groups that were made from it, end with `aborted`, of which
 * col_error_is_loss() is true. Inputs are intact. If it fails, all ranks that are alive get the same error, and can
 * call again, on the same handle.
 *
 * Errors: mismatch (about new_size, min or excluded), timeout (names the ranks that did not call), peer_lost (fewer
 * than min are left). Of this rank alone: aborted (others have left it out), io (the job's store cannot be reached),
 * invalid_argument (a group that was made from another one, a wrong value, another thread is in it). Thread safety: one
 * thread at a time for each group. */
COL_API int32_t col_group_renew(col_group* group, const col_renewal* renewal, col_group** next, col_error** error);
/* Joins group `name` (NULL: "default") that already exists: waits until its ranks call col_group_renew() with room for
 * this process. `context` NULL: that of the process. The context needs the store and the job_id of the group's ranks,
 * and a rank that none of them has: a free number, or that of a lost rank. Blocks for timeout_ns at most (zero: the
 * context's). Errors: timeout, already_initialized (this process is in a group of that name), invalid_argument (no
 * store), peer_lost (no rank of it is left), io. After an error it may be called again. Thread safe. */
COL_API int32_t col_group_join(col_context* context, const char* name, int64_t timeout_ns, col_group** group,
                               col_error** error);
/* `*wanted` is 1 if somebody waits to join, else 0. Collective, and the same on all ranks; blocks as any call. */
COL_API int32_t col_group_renewal_wanted(col_group* group, int32_t* wanted, col_error** error);

/* The next five are equal on all ranks, and do not block. Any thread may call them. All except col_group_epoch() are
 * invalid_argument on a group that was made from another one.
 *
 * The number of the epoch, from 0. If the group was made from another one: that group's. For NULL: 0. */
COL_API uint64_t col_group_epoch(const col_group* group);
/* Ranks that were not in the epoch before; in epoch 0, all. `*count` says how many there are; the first `capacity` of
 * them go to `ranks`, which may be NULL for none. */
COL_API int32_t col_group_newcomers(const col_group* group, int32_t* ranks, size_t capacity, size_t* count,
                                    col_error** error);
/* The same for ranks of the epoch before that are not in this one, by their numbers in the epoch before. */
COL_API int32_t col_group_lost(const col_group* group, int32_t* ranks, size_t capacity, size_t* count,
                               col_error** error);
/* The rank whose state the others can take: the lowest of the ranks with the most progress. In epoch 0, rank 0. */
COL_API int32_t col_group_source(const col_group* group, int32_t* rank, col_error** error);
/* col_renewal.progress of that rank. 0 in epoch 0. */
COL_API int32_t col_group_progress(const col_group* group, int32_t rank, uint64_t* progress, col_error** error);

/* Leaves the group. Not collective. Ends the operations in flight here, which takes a few seconds at most. Later calls
 * on any handle to the group are not_initialized. Errors: mismatch, as for col_context_finalize(). */
COL_API int32_t col_group_destroy(col_group* group, col_error** error);
/* Frees the handle. If the program named the group, the group stays, and col_group_get() finds it. If col named it
 * (col_group_split(), col_group_dup(), col_group_shrink() without a name), it ends on this rank with its last handle
 * and its last work, as class Group in <col/group.hpp> says. */
COL_API void col_group_free(col_group* group);

/* ---- Data and options -------------------------------------------------------------------------------------------- */

/* An array that the caller owns. It must stay valid until the call that uses it has ended. The memory of an input must
 * also stay unchanged until then. */
typedef struct col_tensor {
  void* data;
  size_t count;   /* elements */
  uint32_t dtype; /* COL_FLOAT32, ... */
  int32_t device_type;
  int32_t device_index;
  uint32_t reserved;
} col_tensor;

/* result[i] = left[i] op right[i] for i below count. `result` may be the same memory as `left` or `right`. The function
 * must not use the group, nor leave by longjmp or an exception. Any thread that is inside a call of the library may
 * call it, also a thread of the library. */
typedef void (*col_op_function)(const void* left, const void* right, void* result, size_t count, uint32_t dtype,
                                void* user);

typedef struct col_op_spec {
  size_t size;
  col_op_function function;
  void* user; /* passed to `function` */
  /* Called once, when nothing uses the operator any more, by any thread that calls the library. It must not call the
   * library itself. May be NULL. */
  void (*release)(void* user);
  const char* name;    /* for messages: ranks compare it. NULL: "user" */
  int32_t commutative; /* 0: it is applied in rank order */
  int32_t reserved;
} col_op_spec;

/* An associative function as an operator. The operator lives on, after the handle is freed, as long as operations use
 * it. If this fails, `release` is not called. */
COL_API int32_t col_op_create(const col_op_spec* spec, col_op** op, col_error** error);
COL_API void col_op_free(col_op* op);

/* NULL for options: all defaults. <col/options.hpp> says more of each. */
typedef struct col_options {
  size_t size;
  int32_t op;            /* COL_SUM, ... */
  int32_t root;          /* a rank of the group */
  double scale;          /* with COL_PREMUL_SUM: this rank's factor */
  const col_op* user_op; /* replaces `op`, which then must be zero */
  const char* algorithm; /* "ring", "knomial:radix=8", "file:my.json"; NULL: col chooses */
  int64_t timeout_ns;    /* how long the call may block; zero: the group's */
  void* stream;          /* a cudaStream_t, for buffers in GPU memory */
  int32_t tag;           /* messages: a send pairs only with a receive of equal tag */
  int32_t deterministic; /* not 0: only algorithms that combine in rank order */
  int32_t compress;      /* not 0: floats of 8 and 16 bits send partial sums in 8 and 16 bits */
  int32_t reserved;
  int32_t order; /* COL_ORDER_ANY, ...: in which order a reduction combines contributions */
  int32_t reserved_2;
  size_t contributions; /* with COL_ORDER_TREE: those of all ranks together; 0: not given */
} col_options;

/* ---- Collectives ------------------------------------------------------------------------------------------------- */

/* One call. With n ranks, `in` and `out` hold:
 *
 *   allreduce, reduce, scan, exscan  the same count in both; reduce: `out` on the root only
 *   broadcast                        `out` on all ranks: the root's is sent
 *   allgather, gather                out = n blocks of in; gather: on the root only
 *   reduce_scatter, scatter          in = n blocks of out; scatter: on the root only
 *   alltoall                         n blocks in both
 *   ...v                             blocks of different lengths, which lists of counts give, with n entries each
 *   barrier                          nothing
 *
 * A list belongs to the side that holds the blocks: in_counts to `in`, out_counts to `out`. For allgatherv and
 * reduce_scatterv, all ranks pass the same list; for gatherv and scatterv, the root; for alltoallv, each rank passes
 * both. */
typedef struct col_call {
  size_t size;
  int32_t collective; /* COL_ALLREDUCE to COL_BARRIER */
  int32_t reserved;
  col_tensor in;
  col_tensor out;
  const size_t* in_counts;
  size_t in_counts_length; /* entries */
  const size_t* out_counts;
  size_t out_counts_length;
} col_call;

/* Makes the call, and blocks until this rank's part is done, for the timeout at most.
 *
 * Errors: invalid_argument, not_initialized, unavailable come before any data moves, and the group stays usable.
 * mismatch, timeout, peer_lost, aborted, resource, io, internal break the group: outputs are unspecified, inputs
 * intact, later calls are `aborted`. This holds for messages too. */
COL_API int32_t col_run(col_group* group, const col_call* call, const col_options* options, col_error** error);
/* Starts the call; it goes on while the program does other things. Its buffers belong to it until it has ended. The
 * structs and lists of counts do not: the caller may free them when this function returns. */
COL_API int32_t col_start(col_group* group, const col_call* call, const col_options* options, col_work** work,
                          col_error** error);

/* ---- Collectives that come again --------------------------------------------------------------------------------- */

/* Prepares a call that comes again with the same buffers, as MPI_Allreduce_init does. Not collective, and does not
 * block. The caller may free the structs and lists of counts when this returns; the buffers must stay valid as long as
 * the call is started. Errors: invalid_argument, not_initialized, unavailable, as of the call itself; resource (no
 * memory for it). See <col/prepared.hpp>. */
COL_API int32_t col_prepare(col_group* group, const col_call* call, const col_options* options, col_prepared** prepared,
                            col_error** error);
/* Starts it, as col_start() starts a call; ranks that have not prepared theirs call col_start(). Does not block.
 * Errors: invalid_argument if it is in progress, and those of col_start(). */
COL_API int32_t col_prepared_start(col_prepared* prepared, col_error** error);
/* These three do what col_work_wait(), col_work_wait_for() and col_work_test() do, for the last start. If there was no
 * start, they return at once. */
COL_API int32_t col_prepared_wait(col_prepared* prepared, col_error** error);
COL_API int32_t col_prepared_wait_for(col_prepared* prepared, int64_t timeout_ns, int32_t* ended, col_error** error);
COL_API int32_t col_prepared_test(col_prepared* prepared, int32_t* ended, col_error** error);
/* Frees the handle. A call in progress goes on, as after col_work_free(). NULL does nothing. */
COL_API void col_prepared_free(col_prepared* prepared);

/* ---- Messages ---------------------------------------------------------------------------------------------------- */
/* From one rank to another. Messages between two ranks with equal tags arrive in the order in which they were sent. A
 * send and a receive of different counts or dtypes are a mismatch. The blocking forms end with the operation, or at the
 * timeout. */

COL_API int32_t col_send(col_group* group, const col_tensor* data, int32_t destination, const col_options* options,
                         col_error** error);
COL_API int32_t col_recv(col_group* group, const col_tensor* data, int32_t source, const col_options* options,
                         col_error** error);
/* The first message with this tag from any rank. `source` gets the sender's rank; it may be NULL. */
COL_API int32_t col_recv_any(col_group* group, const col_tensor* data, const col_options* options, int32_t* source,
                             col_error** error);
/* Sends and receives at once: ranks in a ring that all call it do not deadlock. The two buffers must not overlap. */
COL_API int32_t col_sendrecv(col_group* group, const col_tensor* send, int32_t destination, const col_tensor* recv,
                             int32_t source, const col_options* options, col_error** error);

typedef struct col_message {
  int32_t direction; /* COL_SEND or COL_RECV */
  int32_t peer;      /* the other rank */
  int32_t tag;       /* in place of col_options.tag */
  int32_t reserved;
  col_tensor data;
} col_message;

/* All messages at once, in any order. Requires: a buffer to receive into overlaps no other buffer of the batch. */
COL_API int32_t col_batch(col_group* group, const col_message* messages, size_t count, const col_options* options,
                          col_error** error);

COL_API int32_t col_isend(col_group* group, const col_tensor* data, int32_t destination, const col_options* options,
                          col_work** work, col_error** error);
COL_API int32_t col_irecv(col_group* group, const col_tensor* data, int32_t source, const col_options* options,
                          col_work** work, col_error** error);
COL_API int32_t col_irecv_any(col_group* group, const col_tensor* data, const col_options* options, col_work** work,
                              col_error** error);
COL_API int32_t col_ibatch(col_group* group, const col_message* messages, size_t count, const col_options* options,
                           col_work** work, col_error** error);

/* ---- Works ------------------------------------------------------------------------------------------------------- */

/* Blocks until the operation has ended, for its timeout at most, counted from now. Returns the operation's error, at
 * every call. */
COL_API int32_t col_work_wait(col_work* work, col_error** error);
/* The same for `timeout_ns` at most; the operation then goes on. `*ended` is 1 if it has ended, else 0. Zero: as
 * col_work_test(). */
COL_API int32_t col_work_wait_for(col_work* work, int64_t timeout_ns, int32_t* ended, col_error** error);
/* The same without blocking. */
COL_API int32_t col_work_test(col_work* work, int32_t* ended, col_error** error);
/* In a group of GPUs: lets all work that `stream` (a cudaStream_t; NULL: the legacy default stream) gets from now on
 * wait for the operation, and returns while the operation may still run. See Work::wait(Stream) in <col/work.hpp>.
 * Errors: unavailable if only the host sees the operation's end, invalid_argument for a stream that cannot wait for it;
 * the group stays usable. */
COL_API int32_t col_work_wait_stream(col_work* work, void* stream, col_error** error);
/* Waits for all works of the list, for each as col_work_wait() does. Returns the first error in the order of the list.
 * With `timeout_ns` above zero, `*ended` is 0 if they do not all end in time. They may be of several groups. */
COL_API int32_t col_work_wait_all(col_work* const* works, size_t count, int64_t timeout_ns, int32_t* ended,
                                  col_error** error);
/* Waits until one of the works has ended: `*index` is its place in the list. Returns the error of that work. Blocks for
 * the shortest of their timeouts. With `timeout_ns` above zero, `*index` is `count` if none ends in time. */
COL_API int32_t col_work_wait_any(col_work* const* works, size_t count, int64_t timeout_ns, size_t* index,
                                  col_error** error);
/* Calls `function` in a thread of the library when the operation has ended, with its error, or with NULL after success.
 * The error object belongs to the library. The function may start operations; calls that block are invalid_argument
 * there. `*after` gets a work that ends when the function has returned; `after` may be NULL. The function may run
 * before `*after` is written, so it must not read `*after`. Does not block. Errors: resource (no thread). */
COL_API int32_t col_work_then(col_work* work, void (*function)(const col_error* error, void* user), void* user,
                              col_work** after, col_error** error);
/* After the end of a receive: the rank that sent the message. Otherwise -1. Does not block. */
COL_API int32_t col_work_source(const col_work* work, int32_t* source, col_error** error);
/* Frees the handle alone. The operation goes on, and uses its buffers until a barrier of the group (for collectives) or
 * the end of the group. */
COL_API void col_work_free(col_work* work);

/* ---- Memory ------------------------------------------------------------------------------------------------------ */

/* Memory of this rank, zeroed and aligned to 64 bytes at least, that the other ranks of the node can read in place, so
 * that calls on it copy less. Collective: all ranks call it with equal `bytes`, and block. It uses only the timeout of
 * the options. Errors: resource on all ranks if one has no room, after which the group stays usable; mismatch.
 * <col/memory.hpp> says when it pays. */
COL_API int32_t col_alloc(col_group* group, size_t bytes, const col_options* options, void** memory, col_error** error);
/* Frees memory of col_alloc(), also after the end of the group. Not collective, does not block. Ignores NULL.
 * invalid_argument, and nothing freed, if it does not come from col_alloc(), or if an operation uses it. */
COL_API int32_t col_free(void* memory, col_error** error);

/* ---- Insight ----------------------------------------------------------------------------------------------------- */

/* Explains in words which algorithm a call would run, and why. `bytes`: of the whole vector, or of all blocks together.
 * Free the text with col_text_free(). Not collective, does not block. */
COL_API int32_t col_group_explain(const col_group* group, int32_t collective, size_t bytes, uint32_t dtype,
                                  const col_options* options, char** text, col_error** error);
/* The names that col_options.algorithm may have for a collective in this group, one a line. Free the text with
 * col_text_free(). Not collective, does not block. */
COL_API int32_t col_group_algorithms(const col_group* group, int32_t collective, char** names, col_error** error);
/* Later calls of this rank in this group carry the label: in `coljob`, in reports and in traces. An empty one ends
 * that. Not collective, does not block, and never compared: the ranks' labels may differ. While another thread's call
 * uses the group: invalid_argument. */
COL_API int32_t col_group_annotate(col_group* group, const char* label, col_error** error);

#ifdef __cplusplus
}
#endif

#endif /* COL_COL_H */
