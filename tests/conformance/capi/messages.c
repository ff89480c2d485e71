/* Messages between ranks. */
#include "ranks.h"

static int next_of(const rank_place* at) {
  return (at->rank + 1) % at->size;
}
static int before(const rank_place* at) {
  return (at->rank + at->size - 1) % at->size;
}

static void pass_around(const rank_place* at) {
  col_error* error;
  double mine = at->rank + 1, got = 0;
  const col_tensor out = doubles(&mine, 1), in = doubles(&got, 1);

  OK(col_sendrecv(at->world, &out, next_of(at), &in, before(at), NULL, &error));
  CHECK(got == before(at) + 1);

  /* Rank 0 sends, the others pass it on. */
  got = 0;
  if (at->rank == 0) OK(col_send(at->world, &out, next_of(at), NULL, &error));
  OK(col_recv(at->world, &in, before(at), NULL, &error));
  CHECK(got == 1);
  if (at->rank != 0) OK(col_send(at->world, &in, next_of(at), NULL, &error));
}

static void take_from_any(const rank_place* at) {
  col_error* error;
  double mine = at->rank + 1, got = 0;
  const col_tensor out = doubles(&mine, 1), in = doubles(&got, 1);
  const col_options tagged = {.size = sizeof tagged, .tag = 5};
  if (at->rank != 0) {
    OK(col_send(at->world, &out, 0, &tagged, &error));
    return;
  }
  int seen = 0;
  for (int i = 1; i < at->size; ++i) {
    int32_t source = -1;
    if (i % 2 == 1) {
      OK(col_recv_any(at->world, &in, &tagged, &source, &error));
    } else {
      col_work* work;
      OK(col_irecv_any(at->world, &in, &tagged, &work, &error));
      OK(col_work_wait(work, &error));
      OK(col_work_source(work, &source, &error));
      col_work_free(work);
    }
    CHECK(source > 0 && got == source + 1);
    seen |= 1 << source;
  }
  CHECK(seen == (1 << at->size) - 2);
}

static void exchange_at_once(const rank_place* at) {
  col_error* error;
  double mine[2] = {at->rank + 1, at->rank + 101}, got[2] = {0, 0};
  const col_message messages[] = {
      {.direction = COL_RECV, .peer = before(at), .tag = 2, .data = doubles(&got[1], 1)},
      {.direction = COL_SEND, .peer = next_of(at), .tag = 1, .data = doubles(&mine[0], 1)},
      {.direction = COL_RECV, .peer = before(at), .tag = 1, .data = doubles(&got[0], 1)},
      {.direction = COL_SEND, .peer = next_of(at), .tag = 2, .data = doubles(&mine[1], 1)},
  };
  OK(col_batch(at->world, messages, 4, NULL, &error));
  CHECK(got[0] == before(at) + 1 && got[1] == before(at) + 101);

  got[0] = got[1] = 0;
  col_work* work;
  OK(col_ibatch(at->world, messages, 4, NULL, &work, &error));
  OK(col_work_wait(work, &error));
  CHECK(got[0] == before(at) + 1 && got[1] == before(at) + 101);
  col_work_free(work);
  OK(col_batch(at->world, NULL, 0, NULL, &error));
}

static void start_messages(const rank_place* at) {
  col_error* error;
  double mine = at->rank + 1, got = 0;
  const col_tensor out = doubles(&mine, 1), in = doubles(&got, 1);
  col_work *sent, *received;
  int32_t source = 9;
  OK(col_irecv(at->world, &in, before(at), NULL, &received, &error));
  OK(col_isend(at->world, &out, next_of(at), NULL, &sent, &error));
  OK(col_work_wait(received, &error));
  OK(col_work_wait(sent, &error));
  CHECK(got == before(at) + 1);
  OK(col_work_source(received, &source, &error));
  CHECK(source == before(at));
  OK(col_work_source(sent, &source, &error));
  CHECK(source == -1);
  col_work_free(sent);
  col_work_free(received);
}

static void refuse_wrong_messages(const rank_place* at) {
  col_error* error;
  double value = 1;
  const col_tensor tensor = doubles(&value, 1);
  col_work* work = (col_work*)&value;
  const col_message wrong = {.direction = COL_BARRIER, .data = tensor};
  const col_message dirty = {.direction = COL_SEND, .reserved = 1, .data = tensor};
  int32_t source = 9;
  FAILS(col_send(at->world, &tensor, 7, NULL, &error), COL_ERROR_INVALID_ARGUMENT, "7 is not in the group");
  FAILS(col_send(NULL, &tensor, 0, NULL, &error), COL_ERROR_INVALID_ARGUMENT, "group is NULL");
  FAILS(col_send(at->world, NULL, 0, NULL, &error), COL_ERROR_INVALID_ARGUMENT, "data is NULL");
  FAILS(col_recv(at->world, NULL, 0, NULL, &error), COL_ERROR_INVALID_ARGUMENT, "data is NULL");
  FAILS(col_recv(at->world, &tensor, at->rank, NULL, &error), COL_ERROR_INVALID_ARGUMENT, "nothing was sent");
  FAILS(col_recv_any(at->world, NULL, NULL, &source, &error), COL_ERROR_INVALID_ARGUMENT, "data is NULL");
  CHECK(source == 0);
  FAILS(col_sendrecv(at->world, &tensor, 0, NULL, 0, NULL, &error), COL_ERROR_INVALID_ARGUMENT, "recv is NULL");
  FAILS(col_sendrecv(at->world, &tensor, 0, &tensor, 0, NULL, &error), COL_ERROR_INVALID_ARGUMENT, "overlap");
  FAILS(col_batch(at->world, &wrong, 1, NULL, &error), COL_ERROR_INVALID_ARGUMENT, "no direction 15");
  FAILS(col_batch(at->world, &dirty, 1, NULL, &error), COL_ERROR_INVALID_ARGUMENT, "reserved is 1");
  FAILS(col_batch(at->world, NULL, 2, NULL, &error), COL_ERROR_INVALID_ARGUMENT, "messages is NULL");
  FAILS(col_isend(at->world, &tensor, -1, NULL, &work, &error), COL_ERROR_INVALID_ARGUMENT, "-1 is not in the group");
  CHECK(work == NULL);
  FAILS(col_irecv(at->world, &tensor, 0, NULL, NULL, &error), COL_ERROR_INVALID_ARGUMENT, "'work' is NULL");
  FAILS(col_irecv_any(NULL, &tensor, NULL, &work, &error), COL_ERROR_INVALID_ARGUMENT, "group is NULL");
  FAILS(col_ibatch(at->world, &wrong, 1, NULL, &work, &error), COL_ERROR_INVALID_ARGUMENT, "no direction 15");
}

void test_messages(void) {
  on_ranks(2, refuse_wrong_messages);
  for (int n = 2; n <= 3; ++n) {
    on_ranks(n, pass_around);
    on_ranks(n, take_from_any);
  }
  for (int n = 1; n <= 3; ++n) {
    on_ranks(n, exchange_at_once);
    on_ranks(n, start_messages);
  }
}
