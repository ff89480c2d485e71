#include "support/fake_gpu/control.hpp"

#include <algorithm>

#include "support/fake_gpu/nccl/library.hpp"
#include "support/fake_gpu/nccl/registry.hpp"

using namespace fake_nccl;

void fake_nccl_fail(const char* name, int code, int nth) {
  call_log().fail(name, code, nth);
}

size_t fake_nccl_calls(const char* name) {
  return call_log().calls(name);
}

const char* fake_nccl_called(void) {
  thread_local std::string names;
  names = call_log().names();
  return names.c_str();
}

void fake_nccl_reset(void) {
  call_log().reset();
}

void fake_nccl_end_waits(void) {
  Communicator::end_waits();
}

size_t fake_nccl_alive(const char* what) {
  const std::string word = what;
  const auto communicators = all_communicators();
  if (word == "communicators") return communicators.size();
  if (word == "unconnected") {
    return static_cast<size_t>(
        std::count_if(communicators.begin(), communicators.end(), [](const auto& one) { return !one->joined(); }));
  }
  if (word == "memory") {
    std::lock_guard lock(registry().mutex);
    return registry().memory.size();
  }
  if (word != "operators" && word != "windows" && word != "registrations") {
    fake_gpu::die("fake_nccl_alive does not count '" + word + "'");
  }
  size_t count = 0;
  for (const auto& communicator : communicators) {
    std::lock_guard lock(communicator->mutex);
    count += word == "operators" ? communicator->operators.size()
             : word == "windows" ? communicator->windows.size()
                                 : communicator->registrations.size();
  }
  return count;
}

void fake_nccl_async_error(int rank, int code) {
  for (const auto& communicator : all_communicators()) {
    if (rank == -1 || communicator->rank() == rank) communicator->set_state(static_cast<ncclResult_t>(code));
  }
}

void fake_nccl_hang(int rank, int nth) {
  for (const auto& communicator : all_communicators()) {
    if (rank == -1 || communicator->rank() == rank) communicator->hang_launch(nth);
  }
}

void fake_nccl_hang_revoke(int rank) {
  for (const auto& communicator : all_communicators()) {
    if (rank == -1 || communicator->rank() == rank) communicator->hang_revoke();
  }
}

void fake_nccl_hang_revoke_call(int rank) {
  for (const auto& communicator : all_communicators()) {
    if (rank == -1 || communicator->rank() == rank) communicator->hang_revoke_call();
  }
}

void fake_nccl_hang_deregister(int rank) {
  for (const auto& communicator : all_communicators()) {
    if (rank == -1 || communicator->rank() == rank) communicator->hang_deregister();
  }
}

void fake_nccl_look_every(int milliseconds) {
  Communicator::look_every(milliseconds);
}

void fake_nccl_hang_abort(int rank) {
  for (const auto& communicator : all_communicators()) {
    if (rank == -1 || communicator->rank() == rank) communicator->hang_abort();
  }
}

void fake_nccl_release_aborts(void) {
  Communicator::release_aborts();
}

const char* fake_nccl_settings(void) {
  thread_local std::string settings;
  settings.clear();
  for (const auto& communicator : all_communicators()) settings += communicator->config().settings + '\n';
  return settings.c_str();
}

size_t fake_nccl_launches(void) {
  return launches_so_far();
}

int fake_nccl_max_ctas(void) {
  int most = 0;
  for (const auto& communicator : all_communicators()) most = std::max(most, communicator->config().max_ctas);
  return most;
}

const char* fake_nccl_names(void) {
  thread_local std::string names;
  names.clear();
  for (const auto& communicator : all_communicators()) {
    const char* const name = communicator->config().name;
    if (name != nullptr) names += std::string(name) + '\n';
  }
  return names.c_str();
}

void fake_nccl_lose_peer(int rank) {
  for (const auto& communicator : all_communicators()) communicator->lose(rank);
}

size_t fake_nccl_running(void) {
  return running_launches();
}
