// A device as Gloo has it: the network interface that the connections of a group use, and the event loop that serves
// them (one thread with one epoll descriptor).
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include <sys/socket.h>

#include <gloo/transport/tcp/attr.h>
#include <gloo/transport/tcp/device.h>
#include <gloo/transport/tcp/loop.h>

namespace col::gloo_backend {

struct Interface {
  std::string name;
  std::string address;  // as text
  bool up = false;
  sockaddr_storage sockaddr{};  // port 0
  socklen_t sockaddr_bytes = 0;
};

// Chooses, in this order:
//   same_host         loopback, 127.0.0.1
//   wanted not empty  the first name of the comma-separated list that is up and has an address
//   otherwise         the interface of the default route, else the first that is up, is not loopback, and does not look
//                     like a bridge of containers or virtual machines, else the first of those
// It never looks up the host's name: on Debian this gives 127.0.1.1, which other hosts cannot reach. Throws
// unavailable, with the candidates.
Interface choose_interface(bool same_host, std::string_view wanted);

::gloo::transport::tcp::attr device_attributes(const Interface& interface);

// A timer in the event loop. Gloo waits for a turn of the loop each time it releases a socket (once for each connection
// that is made or closed). An idle loop turns every 10 ms. While the ticker runs, the loop turns every half
// millisecond.
class Ticker final : public ::gloo::transport::tcp::Handler {
 public:
  Ticker();  // throws Error: resource if the process has no descriptors left
  ~Ticker() override;
  Ticker(const Ticker&) = delete;
  Ticker& operator=(const Ticker&) = delete;

  int fd() const noexcept { return fd_; }
  void start() noexcept;
  void stop() noexcept;
  void handleEvents(int events) override;

 private:
  void set_period(long nanoseconds) noexcept;
  int fd_;
};

namespace detail {
struct TickerHolder {
  Ticker ticker;
};
}  // namespace detail

// A Gloo device whose thread takes no signals, and whose loop can be made to turn fast.
//
// Each group has its own device. A shared one would save one thread for each group. But two groups used by two threads
// would wait for each other, and a half-made connection could not be removed while others use the loop.
//
// Newer versions of Gloo listen once for each device. A stranger's connection then keeps the loop alive. If this
// connection ended last, the loop's thread would join itself. So with these versions a device is never destroyed, but
// waits for the next group.
//
// The ticker is the first base, because it must outlive the loop's thread, which ~Device joins.
class LoopDevice final : private detail::TickerHolder, public ::gloo::transport::tcp::Device {
 public:
  static const bool kOutlivesGroups;

  static std::shared_ptr<LoopDevice> create(const ::gloo::transport::tcp::attr& attr);
  explicit LoopDevice(const ::gloo::transport::tcp::attr& attr);

  Ticker& ticker() noexcept { return detail::TickerHolder::ticker; }
};

}  // namespace col::gloo_backend
