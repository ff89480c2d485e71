#include "backend/nccl/own_thread.hpp"

#include <future>
#include <system_error>
#include <thread>
#include <utility>

namespace col::nccl_backend {

std::future<void> run_in_own_thread(std::function<void()> body) {
  std::packaged_task<void()> task([own = body]() mutable {
    own();
    own = nullptr;  // before its end is known
  });
  std::future<void> end = task.get_future();
  try {
    std::thread(std::move(task)).detach();
    body = nullptr;
  } catch (const std::system_error&) {
    std::promise<void> done;
    body();
    done.set_value();
    return done.get_future();
  }
  return end;
}

bool ends_within(Duration limit, std::function<void()> body) {
  return run_in_own_thread(std::move(body)).wait_for(limit) == std::future_status::ready;
}

}  // namespace col::nccl_backend
