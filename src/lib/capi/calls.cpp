// Collectives, messages, works and memory.
#include <cstdint>
#include <memory>
#include <optional>
#include <string_view>
#include <vector>

#include <col/group.hpp>
#include <col/memory.hpp>

#include "capi/convert.hpp"
#include "capi/guard.hpp"
#include "capi/handles.hpp"

namespace col::capi {
namespace {

// The tensor of a message.
TensorView data_of(const col_tensor* tensor, std::string_view role) {
  return tensor_of(required(tensor, role), role);
}

// What a function that starts an operation does: `start` takes the group.
template <class Start>
std::int32_t started(col_group* group, col_work** work, col_error** error, const Start& start) {
  return guarded(error, [&] {
    col_work*& made = result(work, "work");
    auto handle = std::make_unique<col_work>();  // first: there must be a handle for what has been started
    handle->value = start(required(group, "group").value);
    made = handle.release();
  });
}

// The works of a list, in its order.
std::vector<Work> works_of(col_work* const* works, std::size_t count) {
  std::vector<Work> all;
  if (count > 0) required(works, "works");
  for (std::size_t i = 0; i < count; ++i) all.push_back(required(works[i], "a work of the list").value);
  return all;
}

}  // namespace
}  // namespace col::capi

using namespace col::capi;  // NOLINT(google-build-using-namespace): the functions below have no namespace

extern "C" {

int32_t col_run(col_group* group, const col_call* call, const col_options* options, col_error** error) {
  return guarded(error, [&] { required(group, "group").value.run(call_of(call), options_of(options)); });
}

int32_t col_start(col_group* group, const col_call* call, const col_options* options, col_work** work,
                  col_error** error) {
  return started(group, work, error, [&](col::Group& its) { return its.start(call_of(call), options_of(options)); });
}

int32_t col_prepare(col_group* group, const col_call* call, const col_options* options, col_prepared** prepared,
                    col_error** error) {
  return guarded(error, [&] {
    col_prepared*& made = result(prepared, "prepared");
    auto handle = std::make_unique<col_prepared>();
    handle->value = required(group, "group").value.prepare(call_of(call), options_of(options));
    made = handle.release();
  });
}

int32_t col_prepared_start(col_prepared* prepared, col_error** error) {
  return guarded(error, [&] { required(prepared, "prepared").value.start(); });
}

int32_t col_prepared_wait(col_prepared* prepared, col_error** error) {
  return guarded(error, [&] { required(prepared, "prepared").value.wait(); });
}

int32_t col_prepared_wait_for(col_prepared* prepared, int64_t timeout_ns, int32_t* ended, col_error** error) {
  return guarded(error, [&] {
    std::int32_t& has_ended = result(ended, "ended");
    has_ended = required(prepared, "prepared").value.wait_for(duration_of(timeout_ns, "timeout_ns")) ? 1 : 0;
  });
}

int32_t col_prepared_test(col_prepared* prepared, int32_t* ended, col_error** error) {
  return guarded(error, [&] {
    std::int32_t& has_ended = result(ended, "ended");
    has_ended = required(prepared, "prepared").value.test() ? 1 : 0;
  });
}

void col_prepared_free(col_prepared* prepared) {
  delete prepared;
}

int32_t col_send(col_group* group, const col_tensor* data, int32_t destination, const col_options* options,
                 col_error** error) {
  return guarded(error,
                 [&] { required(group, "group").value.send(data_of(data, "data"), destination, options_of(options)); });
}

int32_t col_recv(col_group* group, const col_tensor* data, int32_t source, const col_options* options,
                 col_error** error) {
  return guarded(error,
                 [&] { required(group, "group").value.recv(data_of(data, "data"), source, options_of(options)); });
}

int32_t col_recv_any(col_group* group, const col_tensor* data, const col_options* options, int32_t* source,
                     col_error** error) {
  return guarded(error, [&] {
    if (source != nullptr) *source = 0;
    const int sender = required(group, "group").value.recv_any(data_of(data, "data"), options_of(options));
    if (source != nullptr) *source = sender;
  });
}

int32_t col_sendrecv(col_group* group, const col_tensor* send, int32_t destination, const col_tensor* recv,
                     int32_t source, const col_options* options, col_error** error) {
  return guarded(error, [&] {
    required(group, "group")
        .value.sendrecv(data_of(send, "send"), destination, data_of(recv, "recv"), source, options_of(options));
  });
}

int32_t col_batch(col_group* group, const col_message* messages, size_t count, const col_options* options,
                  col_error** error) {
  return guarded(error,
                 [&] { required(group, "group").value.batch(messages_of(messages, count), options_of(options)); });
}

int32_t col_isend(col_group* group, const col_tensor* data, int32_t destination, const col_options* options,
                  col_work** work, col_error** error) {
  return started(group, work, error,
                 [&](col::Group& its) { return its.isend(data_of(data, "data"), destination, options_of(options)); });
}

int32_t col_irecv(col_group* group, const col_tensor* data, int32_t source, const col_options* options, col_work** work,
                  col_error** error) {
  return started(group, work, error,
                 [&](col::Group& its) { return its.irecv(data_of(data, "data"), source, options_of(options)); });
}

int32_t col_irecv_any(col_group* group, const col_tensor* data, const col_options* options, col_work** work,
                      col_error** error) {
  return started(group, work, error,
                 [&](col::Group& its) { return its.irecv_any(data_of(data, "data"), options_of(options)); });
}

int32_t col_ibatch(col_group* group, const col_message* messages, size_t count, const col_options* options,
                   col_work** work, col_error** error) {
  return started(group, work, error,
                 [&](col::Group& its) { return its.ibatch(messages_of(messages, count), options_of(options)); });
}

int32_t col_work_wait(col_work* work, col_error** error) {
  return guarded(error, [&] { required(work, "work").value.wait(); });
}

int32_t col_work_wait_for(col_work* work, int64_t timeout_ns, int32_t* ended, col_error** error) {
  return guarded(error, [&] {
    std::int32_t& has_ended = result(ended, "ended");
    has_ended = required(work, "work").value.wait_for(duration_of(timeout_ns, "timeout_ns")) ? 1 : 0;
  });
}

int32_t col_work_test(col_work* work, int32_t* ended, col_error** error) {
  return guarded(error, [&] {
    std::int32_t& has_ended = result(ended, "ended");
    has_ended = required(work, "work").value.test() ? 1 : 0;
  });
}

int32_t col_work_wait_stream(col_work* work, void* stream, col_error** error) {
  return guarded(error, [&] { required(work, "work").value.wait(col::Stream{stream}); });
}

int32_t col_work_wait_all(col_work* const* works, size_t count, int64_t timeout_ns, int32_t* ended, col_error** error) {
  return guarded(error, [&] {
    int32_t& have_ended = result(ended, "ended");
    auto all = works_of(works, count);
    have_ended = col::wait_all(all, duration_of(timeout_ns, "timeout_ns")) ? 1 : 0;
  });
}

int32_t col_work_wait_any(col_work* const* works, size_t count, int64_t timeout_ns, size_t* index, col_error** error) {
  return guarded(error, [&] {
    size_t& place = result(index, "index");
    auto all = works_of(works, count);
    place = col::wait_any(all, duration_of(timeout_ns, "timeout_ns")).value_or(count);
  });
}

int32_t col_work_then(col_work* work, void (*function)(const col_error* error, void* user), void* user,
                      col_work** after, col_error** error) {
  return guarded(error, [&] {
    if (after != nullptr) *after = nullptr;
    col::Work& before = required(work, "work").value;
    if (function == nullptr) refuse("function is NULL; this function needs it");
    auto handle = std::make_unique<col_work>();  // first: there must be a handle for what has been started
    handle->value = before.then([function, user](const std::optional<col::Error>& failure) {
      if (!failure) return function(nullptr, user);
      const col_error given{*failure};
      function(&given, user);
    });
    if (after != nullptr) *after = handle.release();
  });
}

int32_t col_work_source(const col_work* work, int32_t* source, col_error** error) {
  return guarded(error, [&] {
    std::int32_t& sender = result(source, "source");
    sender = required(work, "work").value.source();
  });
}

void col_work_free(col_work* work) {
  delete work;
}

int32_t col_alloc(col_group* group, size_t bytes, const col_options* options, void** memory, col_error** error) {
  return guarded(error, [&] {
    void*& given = result(memory, "memory");
    given = required(group, "group").value.alloc(bytes, options_of(options));
  });
}

int32_t col_free(void* memory, col_error** error) {
  return guarded(error, [&] { col::free(memory); });
}

}  // extern "C"
