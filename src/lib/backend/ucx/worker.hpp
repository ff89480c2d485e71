// What UCX has for one rank of one group: a context, and a worker in it.
//
// UCX belongs to the whole process: when it is loaded it installs handlers of signals, and it writes to stdout. tame()
// takes that back. It reads UCX_* by itself. A thread of its own accepts connections.
#pragma once

#include <string>

#include <ucp/api/ucp.h>

#include <col/request.hpp>

#include "backend/module.hpp"

namespace col::ucx_backend {

// To be called before anything else of UCX, as soon as it is loaded.
void tame(const backend::Module::Environment& environment);

struct Settings {
  // As UCX takes them, with commas between; empty: what UCX says, or was told by UCX_TLS and UCX_NET_DEVICES.
  std::string transports;
  std::string devices;

  // Whether a fabric may be among them, or nobody knows.
  bool has_rdma() const noexcept { return devices.empty() || devices.find(':') != std::string::npos; }
};
// Whether COL_SOCKET_IFNAME names a port of UCX's, which is no interface: "mlx5_0:1".
inline bool names_device(const std::string& socket_ifname) noexcept {
  return socket_ifname.find(':') != std::string::npos;
}
// What a group of `request` uses. Throws unavailable if COL_SOCKET_IFNAME names nothing that is up.
Settings choose_settings(const ConnectRequest& request, const backend::Module::Environment& environment);

// One thread at a time may use it.
class Worker {
 public:
  // Throws unavailable (no transport, no such device) or resource, with UCX's reason.
  Worker(const Settings& settings, int peers, const backend::Module::Environment& environment);
  ~Worker();
  Worker(const Worker&) = delete;
  Worker& operator=(const Worker&) = delete;

  ucp_worker_h handle() const noexcept { return worker_; }
  // What a peer needs to connect, in bytes.
  std::string address() const;
  // Readable when there may be something to do, once arm() has returned true.
  int event_descriptor() const;
  // Returns false if there is something to do now.
  bool arm() const;
  // Until there may be something to do, or for that time.
  void sleep(Duration time) const;
  // Whether anything moved.
  bool progress() noexcept { return ucp_worker_progress(worker_) != 0; }

 private:
  ucp_context_h context_ = nullptr;
  ucp_worker_h worker_ = nullptr;
};

// Of a request on host memory whose callback gets `user`.
ucp_request_param_t parameters_for(void* user) noexcept;

// Throws if a call of UCX has failed. `what`: "make a worker".
void require_ok(ucs_status_t status, const std::string& what);

}  // namespace col::ucx_backend
