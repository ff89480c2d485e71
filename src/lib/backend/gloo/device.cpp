#include "backend/gloo/device.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstdint>
#include <cstring>
#include <fstream>
#include <limits>
#include <mutex>
#include <optional>
#include <sstream>
#include <utility>
#include <vector>

#include <arpa/inet.h>
#include <fmt/format.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>
#include <pthread.h>
#include <sys/epoll.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include <col/error.hpp>

namespace col::gloo_backend {
namespace {

using Attributes = ::gloo::transport::tcp::attr;

// ---- The interface

std::optional<Interface> usable(const ifaddrs& entry) {
  if (entry.ifa_addr == nullptr) return std::nullopt;
  Interface result;
  std::array<char, INET6_ADDRSTRLEN> text{};
  if (entry.ifa_addr->sa_family == AF_INET) {
    result.sockaddr_bytes = sizeof(sockaddr_in);
    std::memcpy(&result.sockaddr, entry.ifa_addr, sizeof(sockaddr_in));
    inet_ntop(AF_INET, &reinterpret_cast<const sockaddr_in*>(entry.ifa_addr)->sin_addr, text.data(), text.size());
  } else if (entry.ifa_addr->sa_family == AF_INET6) {
    const auto& address = reinterpret_cast<const sockaddr_in6*>(entry.ifa_addr)->sin6_addr;
    // A link-local address has no meaning on another machine.
    if (IN6_IS_ADDR_LINKLOCAL(&address)) return std::nullopt;
    result.sockaddr_bytes = sizeof(sockaddr_in6);
    std::memcpy(&result.sockaddr, entry.ifa_addr, sizeof(sockaddr_in6));
    inet_ntop(AF_INET6, &address, text.data(), text.size());
  } else {
    return std::nullopt;
  }
  result.name = entry.ifa_name;
  result.address = text.data();
  result.up = (entry.ifa_flags & IFF_UP) != 0;
  return result;
}

// IPv4 before IPv6, otherwise in the kernel's order.
std::vector<Interface> list_interfaces() {
  ifaddrs* first = nullptr;
  if (getifaddrs(&first) != 0) {
    throw Error(ErrorCode::io, fmt::format("gloo: cannot list the network interfaces: {}", std::strerror(errno)));
  }
  const std::unique_ptr<ifaddrs, decltype(&freeifaddrs)> owner(first, &freeifaddrs);
  std::vector<Interface> all;
  for (const ifaddrs* entry = first; entry != nullptr; entry = entry->ifa_next) {
    if (auto interface = usable(*entry)) all.push_back(*std::move(interface));
  }
  std::stable_partition(all.begin(), all.end(), [](const Interface& i) { return i.sockaddr.ss_family == AF_INET; });
  return all;
}

std::string candidates(const std::vector<Interface>& all) {
  std::string text;
  for (const Interface& i : all) {
    text += fmt::format("{}{} ({}{})", text.empty() ? "" : ", ", i.name, i.address, i.up ? "" : ", down");
  }
  return text.empty() ? "none" : text;
}

// The interface of the IPv4 default route with the lowest metric; empty if there is none.
std::string default_route_interface() {
  std::ifstream table("/proc/net/route");
  std::string line;
  std::getline(table, line);  // the heading
  std::string best;
  long best_metric = std::numeric_limits<long>::max();
  while (std::getline(table, line)) {
    std::istringstream fields(line);
    std::string name, destination, gateway, flags, references, uses, mask;
    long metric = 0;
    fields >> name >> destination >> gateway >> flags >> references >> uses >> metric >> mask;
    if (fields && destination == "00000000" && mask == "00000000" && metric < best_metric) {
      best = name;
      best_metric = metric;
    }
  }
  return best;
}

bool looks_virtual(const std::string& name) {
  static constexpr std::array<std::string_view, 8> kPrefixes = {"docker", "veth",    "virbr", "br-",
                                                                "cni",    "flannel", "cali",  "tun"};
  return std::any_of(kPrefixes.begin(), kPrefixes.end(), [&](std::string_view p) { return name.starts_with(p); });
}

template <class Predicate>
const Interface* first_up(const std::vector<Interface>& all, Predicate predicate) {
  const auto found = std::find_if(all.begin(), all.end(), [&](const Interface& i) { return i.up && predicate(i); });
  return found == all.end() ? nullptr : &*found;
}

bool is_loopback(const Interface& i) {
  if (i.sockaddr.ss_family == AF_INET6) return i.address == "::1";
  return i.address.starts_with("127.");
}

Interface choose_wanted(const std::vector<Interface>& all, std::string_view wanted) {
  std::istringstream names{std::string(wanted)};
  for (std::string name; std::getline(names, name, ',');) {
    const auto is_space = [](char c) { return c == ' ' || c == '\t'; };
    name.erase(std::remove_if(name.begin(), name.end(), is_space), name.end());
    if (const Interface* found = first_up(all, [&](const Interface& i) { return i.name == name; })) return *found;
  }
  throw Error(ErrorCode::unavailable,
              fmt::format("gloo: COL_SOCKET_IFNAME={} names no interface that is up and has an address; there are: {}",
                          wanted, candidates(all)));
}

// ---- The loop

constexpr long kFastTickNs = 500'000;

// Blocks every signal, so that a thread that is started meanwhile inherits the mask. So signals of the process are
// never delivered to a thread that the program does not know about.
class AllSignalsBlocked {
 public:
  AllSignalsBlocked() noexcept {
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before_);
  }
  ~AllSignalsBlocked() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
  AllSignalsBlocked(const AllSignalsBlocked&) = delete;
  AllSignalsBlocked& operator=(const AllSignalsBlocked&) = delete;

 private:
  sigset_t before_;
};

template <class Device>
constexpr bool listens_itself() {
  return requires {
    &Device::isInitiator;
  };
}

// Devices that no group uses. In a forked child, the devices of the parent are dead, because their threads do not exist
// there.
struct IdleDevice {
  pid_t pid;
  Attributes attributes;
  LoopDevice* device;
};
struct Idle {
  std::mutex mutex;
  std::vector<IdleDevice> devices;
};

Idle& idle_devices() {
  static auto* const idle = new Idle;  // never destroyed, like the devices
  return *idle;
}

LoopDevice* take_idle(const Attributes& attr) {
  Idle& idle = idle_devices();
  const std::lock_guard lock(idle.mutex);
  const auto found = std::find_if(idle.devices.begin(), idle.devices.end(), [&](const IdleDevice& one) {
    return one.pid == getpid() && std::memcmp(&one.attributes.ai_addr, &attr.ai_addr, sizeof(attr.ai_addr)) == 0;
  });
  if (found == idle.devices.end()) return nullptr;
  LoopDevice* const device = found->device;
  idle.devices.erase(found);
  return device;
}

std::shared_ptr<LoopDevice> lend(LoopDevice* device, const Attributes& attr) {
  return std::shared_ptr<LoopDevice>(device, [attr](LoopDevice* returned) {
    returned->ticker().stop();
    Idle& idle = idle_devices();
    const std::lock_guard lock(idle.mutex);
    idle.devices.push_back({getpid(), attr, returned});
  });
}

}  // namespace

Interface choose_interface(bool same_host, std::string_view wanted) {
  const std::vector<Interface> all = list_interfaces();
  if (same_host) {
    if (const Interface* lo = first_up(all, [](const Interface& i) { return i.address == "127.0.0.1"; })) return *lo;
    throw Error(
        ErrorCode::unavailable,
        fmt::format("gloo: the loopback interface is down or lacks 127.0.0.1 (ip link set lo up); there are: {}",
                    candidates(all)));
  }
  if (!wanted.empty()) return choose_wanted(all, wanted);
  const std::string routed = default_route_interface();
  const Interface* chosen = first_up(all, [&](const Interface& i) { return i.name == routed; });
  if (chosen == nullptr) {
    chosen = first_up(all, [](const Interface& i) { return !is_loopback(i) && !looks_virtual(i.name); });
  }
  if (chosen == nullptr) chosen = first_up(all, [](const Interface& i) { return !is_loopback(i); });
  if (chosen != nullptr) return *chosen;
  throw Error(ErrorCode::unavailable,
              fmt::format("gloo: no network interface that other hosts can reach is up; there are: {}; bring one up or "
                          "name one in COL_SOCKET_IFNAME",
                          candidates(all)));
}

::gloo::transport::tcp::attr device_attributes(const Interface& interface) {
  ::gloo::transport::tcp::attr attr;
  attr.iface = interface.name;
  attr.ai_family = interface.sockaddr.ss_family;
  attr.ai_socktype = SOCK_STREAM;
  attr.ai_protocol = 0;
  attr.ai_addr = interface.sockaddr;
  attr.ai_addrlen = static_cast<int>(interface.sockaddr_bytes);
  return attr;
}

const bool LoopDevice::kOutlivesGroups = listens_itself<::gloo::transport::tcp::Device>();

Ticker::Ticker() : fd_(timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC)) {
  if (fd_ < 0) {
    const int error = errno;
    const auto code = error == EMFILE || error == ENFILE ? ErrorCode::resource : ErrorCode::io;
    throw Error(code,
                fmt::format("gloo: cannot create a timer descriptor: {}; raise the limit of open files (ulimit -n)",
                            std::strerror(error)));
  }
}

Ticker::~Ticker() {
  close(fd_);
}

void Ticker::handleEvents(int /*events*/) {
  std::uint64_t expirations = 0;
  // Nothing to do with the count, and EAGAIN (the timer was just stopped) is fine: being called is the purpose.
  [[maybe_unused]] const ssize_t got = ::read(fd_, &expirations, sizeof(expirations));
}

void Ticker::set_period(long nanoseconds) noexcept {
  itimerspec spec{};
  spec.it_value.tv_nsec = nanoseconds;
  spec.it_interval.tv_nsec = nanoseconds;
  timerfd_settime(fd_, 0, &spec, nullptr);
}

void Ticker::start() noexcept {
  set_period(kFastTickNs);
}
void Ticker::stop() noexcept {
  set_period(0);
}

LoopDevice::LoopDevice(const Attributes& attr) : ::gloo::transport::tcp::Device(attr) {
  registerDescriptor(ticker().fd(), EPOLLIN, &ticker());
}

std::shared_ptr<LoopDevice> LoopDevice::create(const Attributes& attr) {
  if (LoopDevice* const idle = kOutlivesGroups ? take_idle(attr) : nullptr; idle != nullptr) return lend(idle, attr);
  const AllSignalsBlocked for_the_new_thread;
  if (kOutlivesGroups) return lend(new LoopDevice(attr), attr);
  return std::make_shared<LoopDevice>(attr);
}

}  // namespace col::gloo_backend
