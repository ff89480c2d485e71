#include "backend/ucx/worker.hpp"

#include <array>
#include <csignal>
#include <cstdarg>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <system_error>
#include <utility>

#include <fmt/format.h>
#include <poll.h>
#include <ucs/config/global_opts.h>
#include <ucs/debug/debug.h>
#include <ucs/debug/log_def.h>
#include <unistd.h>

#include "backend/spare_descriptors.hpp"
#include "core/blocked_signal.hpp"
#include "core/clock/clock.hpp"
#include "core/log.hpp"
#include "net/interfaces.hpp"

namespace col::ucx_backend {
namespace {

// UCX's lines go to col's log, one level lower: a connection that closes is an error to UCX, and col says it in its own
// words.
ucs_log_func_rc_t pass_on(const char* /*file*/, unsigned /*line*/, const char* /*function*/, ucs_log_level_t level,
                          const ucs_log_component_config_t* /*component*/, const char* message, va_list arguments) {
  const auto at = level <= UCS_LOG_LEVEL_FATAL ? core::log::Level::warn : core::log::Level::debug;
  if (!core::log::enabled(at)) return UCS_LOG_FUNC_RC_STOP;
  std::array<char, 512> text{};
  std::vsnprintf(text.data(), text.size(), message, arguments);
  core::log::write(at, fmt::format("ucx: {}", text.data()));
  return UCS_LOG_FUNC_RC_STOP;
}

// The ports of InfiniBand and RoCE, as UCX names them: "mlx5_0:1".
std::string rdma_devices() {
  namespace fs = std::filesystem;
  std::string all;
  std::error_code error;
  for (const auto& device : fs::directory_iterator("/sys/class/infiniband", error)) {
    for (const auto& port : fs::directory_iterator(device.path() / "ports", error))
      all += fmt::format(",{}:{}", device.path().filename().string(), port.path().filename().string());
  }
  return all;
}

using Config = std::unique_ptr<ucp_config_t, decltype(&ucp_config_release)>;

Config read_config() {
  ucp_config_t* config = nullptr;
  require_ok(ucp_config_read(nullptr, nullptr, &config), "read its settings");
  return {config, &ucp_config_release};
}

void set(const Config& config, const char* name, const std::string& value) {
  if (!value.empty()) require_ok(ucp_config_modify(config.get(), name, value.c_str()), fmt::format("set {}", name));
}

// A group takes these at once.
constexpr std::size_t kFirstDescriptors = 32;

// UCX ends the process where its thread finds no descriptor.
void require_descriptors() {
  if (const auto why = backend::why_few_descriptors(kFirstDescriptors))
    throw Error(ErrorCode::resource,
                fmt::format("ucx: a group takes {} file descriptors, and more for each rank that is talked to, and {}",
                            kFirstDescriptors, *why));
}

}  // namespace

void tame(const backend::Module::Environment& environment) {
  if (!environment("UCX_LOG_LEVEL")) ucs_log_push_handler(&pass_on);
  if (environment("UCX_HANDLE_ERRORS")) return;
  // Those that UCX has by default, with the one that makes it wait for a debugger (SIGHUP).
  for (const int signal : {SIGILL, SIGSEGV, SIGBUS, SIGFPE, SIGHUP}) ucs_debug_disable_signal(signal);
  ucs_global_opts_set_value("HANDLE_ERRORS", "none");
}

void require_ok(ucs_status_t status, const std::string& what) {
  if (status == UCS_OK) return;
  const bool is_resource = status == UCS_ERR_NO_MEMORY || status == UCS_ERR_NO_RESOURCE ||
                           status == UCS_ERR_EXCEEDS_LIMIT || status == UCS_ERR_IO_ERROR;
  // UCX does not say why.
  std::string cause;
  if (const auto few = is_resource ? backend::why_few_descriptors(kFirstDescriptors) : std::nullopt)
    cause = "; " + *few;
  else if (::access("/proc/self", F_OK) != 0)
    cause = "; UCX reads /proc, which is not mounted here";
  throw Error(is_resource ? ErrorCode::resource : ErrorCode::unavailable,
              fmt::format("ucx: cannot {}: {}{}; COL_LOG=debug shows what UCX says, `ucx_info -d` what it finds", what,
                          ucs_status_string(status), cause));
}

ucp_request_param_t parameters_for(void* user) noexcept {
  ucp_request_param_t parameters{};
  parameters.op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA | UCP_OP_ATTR_FIELD_MEMORY_TYPE;
  parameters.memory_type = UCS_MEMORY_TYPE_HOST;
  parameters.user_data = user;
  return parameters;
}

Settings choose_settings(const ConnectRequest& request, const backend::Module::Environment& environment) {
  Settings settings;
  // No shared memory of UCX's own: with errors of peers, UCX has none that reports them, and ranks of one host have
  // shm.
  if (!environment("UCX_TLS")) settings.transports = "^shm";
  if (environment("UCX_NET_DEVICES")) return settings;
  if (!request.same_host && names_device(request.socket_ifname)) {
    settings.devices = request.socket_ifname;
    return settings;
  }
  for (const auto& interface : net::choose_interfaces("ucx", request.same_host, request.socket_ifname))
    settings.devices += (settings.devices.empty() ? "" : ",") + interface.name;
  if (!request.same_host && request.socket_ifname.empty()) settings.devices += rdma_devices();
  return settings;
}

Worker::Worker(const Settings& settings, int peers, const backend::Module::Environment& environment) {
  require_descriptors();
  // UCX starts a thread with the first worker.
  const core::AllSignalsBlocked for_the_new_thread;
  const Config config = read_config();
  set(config, "TLS", settings.transports);
  set(config, "NET_DEVICES", settings.devices);
  if (!environment("UCX_KEEPALIVE_INTERVAL")) set(config, "KEEPALIVE_INTERVAL", "1s");
  ucp_params_t params{};
  params.field_mask = UCP_PARAM_FIELD_FEATURES | UCP_PARAM_FIELD_ESTIMATED_NUM_EPS | UCP_PARAM_FIELD_NAME;
  params.features = UCP_FEATURE_AM | UCP_FEATURE_WAKEUP;
  params.estimated_num_eps = static_cast<std::size_t>(peers);
  params.name = "col";
  require_ok(ucp_init(&params, config.get(), &context_),
             settings.devices.empty() ? "start" : fmt::format("start on {}", settings.devices));
  ucp_worker_params_t of_worker{};
  of_worker.field_mask = UCP_WORKER_PARAM_FIELD_THREAD_MODE;
  of_worker.thread_mode = UCS_THREAD_MODE_SERIALIZED;
  if (const ucs_status_t status = ucp_worker_create(context_, &of_worker, &worker_); status != UCS_OK) {
    ucp_cleanup(std::exchange(context_, nullptr));
    require_ok(status, "make a worker");
  }
}

Worker::~Worker() {
  if (worker_ != nullptr) ucp_worker_destroy(worker_);
  if (context_ != nullptr) ucp_cleanup(context_);
}

std::string Worker::address() const {
  ucp_address_t* address = nullptr;
  std::size_t bytes = 0;
  require_ok(ucp_worker_get_address(worker_, &address, &bytes), "tell its address");
  std::string text(reinterpret_cast<const char*>(address), bytes);
  ucp_worker_release_address(worker_, address);
  return text;
}

int Worker::event_descriptor() const {
  int descriptor = -1;
  require_ok(ucp_worker_get_efd(worker_, &descriptor), "wait for events");
  return descriptor;
}

void Worker::sleep(Duration time) const {
  if (!arm()) return;
  pollfd events{event_descriptor(), POLLIN, 0};
  core::poll_for({&events, 1}, time);
}

bool Worker::arm() const {
  const ucs_status_t status = ucp_worker_arm(worker_);
  if (status == UCS_ERR_BUSY) return false;
  require_ok(status, "wait for events");
  return true;
}

}  // namespace col::ucx_backend
