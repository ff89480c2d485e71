#include "colbench/workload/store_server.hpp"

#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstdint>
#include <exception>
#include <functional>
#include <list>
#include <map>
#include <new>
#include <system_error>
#include <utility>
#include <vector>

#include <fmt/format.h>

namespace col::colbench {
namespace {

using Clock = std::chrono::steady_clock;

// Memory of one object. shared_ptr: the map and every reply that is on its way hold it.
struct Block {
  explicit Block(std::size_t capacity_)
      : capacity(capacity_), bytes(std::make_unique_for_overwrite<std::byte[]>(capacity_)) {}
  std::size_t capacity;
  std::size_t size = 0;
  std::unique_ptr<std::byte[]> bytes;
};
using BlockRef = std::shared_ptr<Block>;

// Memory is used again, so that a store that has been at work for a while does not pay for fresh pages.
class Pool {
 public:
  BlockRef take(std::size_t size) {
    const auto fits = std::find_if(free_.begin(), free_.end(), [size](const BlockRef& block) {
      return block.use_count() == 1 && block->capacity >= size && block->capacity / 2 <= size;
    });
    BlockRef block = fits != free_.end() ? *fits : free_.emplace_back(std::make_shared<Block>(size));
    block->size = size;
    return block;
  }

 private:
  std::vector<BlockRef> free_;  // those in use have another owner
};

struct Object {
  BlockRef block;
  std::uint32_t readers = 0;  // readers that still have to get it
};

struct Client {
  explicit Client(tools::UniqueFd fd_) : fd(std::move(fd_)) {}

  tools::UniqueFd fd;
  // A request, as far as it has come.
  FrameBytes header{};
  std::size_t header_bytes = 0;
  Frame request = {};
  BlockRef incoming;
  std::size_t incoming_bytes = 0;
  // A reply, as far as it has gone.
  bool replying = false;
  FrameBytes reply{};
  BlockRef outgoing;
  std::string text;
  std::size_t sent = 0;
  bool last_reply = false;  // then it is dropped
  Clock::time_point moved = Clock::now();

  bool in_the_middle() const { return replying || header_bytes > 0; }
  std::span<const std::byte> payload() const {
    if (outgoing) return {outgoing->bytes.get(), outgoing->size};
    return std::as_bytes(std::span(text));
  }

  void begin_reply(const Frame& frame) {
    reply = encode(frame);
    replying = true;
    sent = 0;
    header_bytes = 0;
  }
};

}  // namespace

class StoreServer::Loop {
 public:
  Loop(Listener listener, int stop, const StoreLimits& limits, std::function<void(int)> tell_clients)
      : listener_(std::move(listener)), stop_(stop), limits_(limits), tell_clients_(std::move(tell_clients)) {}

  void run() {
    constexpr int kLookAround = 200;  // ms between looks for clients that do not go on
    for (;;) {
      std::vector<pollfd> entries = {{.fd = stop_, .events = POLLIN, .revents = 0},
                                     {.fd = listener_.fd(), .events = POLLIN, .revents = 0}};
      for (const Client& client : clients_) {
        const short events = client.replying ? POLLOUT : POLLIN;
        entries.push_back({.fd = client.fd.get(), .events = events, .revents = 0});
      }
      if (::poll(entries.data(), entries.size(), kLookAround) < 0 && errno != EINTR)
        throw std::system_error(errno, std::generic_category(), "poll");
      if (entries[0].revents != 0) return;
      const auto now = Clock::now();
      std::size_t entry = 2;
      std::erase_if(clients_, [&](Client& client) {
        if (entries[entry++].revents == 0) return client.in_the_middle() && now - client.moved > limits_.timeout;
        client.moved = now;
        return !(client.replying ? send(client) : receive(client));
      });
      if (entries[1].revents != 0) accept_clients();
      tell_clients_(static_cast<int>(clients_.size()));
    }
  }

  void drop_all() {
    clients_.clear();
    tell_clients_(0);
  }

 private:
  void accept_clients() {
    for (;;) {
      tools::UniqueFd fd = listener_.accept();
      if (!fd) {
        if (errno == EAGAIN || errno == EINTR || errno == ECONNABORTED) return;
        throw std::system_error(errno, std::generic_category(), "accept");
      }
      if (static_cast<int>(clients_.size()) >= limits_.clients) continue;
      clients_.emplace_back(std::move(fd));
      tell_clients_(static_cast<int>(clients_.size()));
    }
  }

  // Each returns false if the client must be dropped.
  bool receive(Client& client) {
    // No client may keep the thread to itself for long.
    constexpr std::size_t kMostAtOnce = std::size_t{1} << 20;
    std::size_t got_now = 0;
    bool more = true;
    if (client.header_bytes < kFrameBytes && !receive_header(client, more)) return false;
    while (more && client.header_bytes == kFrameBytes && !client.replying) {
      const std::size_t left = client.request.length - client.incoming_bytes;
      if (left == 0) {
        finish_put(client);
        break;
      }
      if (got_now >= kMostAtOnce) break;
      const ssize_t got =
          ::recv(client.fd.get(), client.incoming->bytes.get() + client.incoming_bytes, std::min(left, kMostAtOnce), 0);
      if (got == 0) return false;
      if (got < 0) return errno == EAGAIN || errno == EINTR;
      client.incoming_bytes += static_cast<std::size_t>(got);
      got_now += static_cast<std::size_t>(got);
    }
    return true;
  }

  bool receive_header(Client& client, bool& more) {
    const ssize_t got =
        ::recv(client.fd.get(), client.header.data() + client.header_bytes, kFrameBytes - client.header_bytes, 0);
    more = got > 0;
    if (got == 0) return false;
    if (got < 0) return errno == EAGAIN || errno == EINTR;
    client.header_bytes += static_cast<std::size_t>(got);
    return client.header_bytes < kFrameBytes || begin_request(client);
  }

  bool begin_request(Client& client) {
    const std::optional<Frame> frame = decode(client.header);
    if (!frame) {
      refuse(client, ErrorCode::internal, "the object store was sent what is no frame", true);
      return true;
    }
    client.request = *frame;
    client.incoming_bytes = 0;
    if (frame->kind == Frame::Kind::get && frame->length == 0) {
      begin_get(client);
    } else if (frame->kind != Frame::Kind::put) {
      refuse(client, ErrorCode::internal, "the object store takes put and get, and nothing else", true);
    } else if (frame->length > limits_.object_bytes) {
      refuse(
          client, ErrorCode::invalid_argument,
          fmt::format("an object of {} bytes; the object store takes {} at most", frame->length, limits_.object_bytes),
          true);
    } else if (frame->argument == 0 || objects_.contains(frame->object)) {
      refuse(client, ErrorCode::invalid_argument,
             fmt::format("object {:#x} {}", frame->object,
                         frame->argument == 0 ? "has no readers" : "is in the object store already"),
             true);
    } else {
      try {
        client.incoming = pool_.take(frame->length);
      } catch (const std::bad_alloc&) {
        refuse(client, ErrorCode::resource, fmt::format("the object store has no memory for {} bytes", frame->length),
               true);
      }
    }
    return true;
  }

  void finish_put(Client& client) {
    objects_[client.request.object] = {std::exchange(client.incoming, {}), client.request.argument};
    client.outgoing.reset();
    client.text.clear();
    client.begin_reply({.kind = Frame::Kind::done, .object = client.request.object});
  }

  void begin_get(Client& client) {
    const auto found = objects_.find(client.request.object);
    if (found == objects_.end()) {
      refuse(client, ErrorCode::invalid_argument,
             fmt::format("object {:#x} is not in the object store", client.request.object), false);
      return;
    }
    client.text.clear();
    client.outgoing = found->second.block;
    if (--found->second.readers == 0) objects_.erase(found);
    client.begin_reply({.kind = Frame::Kind::data, .object = client.request.object, .length = client.outgoing->size});
  }

  bool send(Client& client) {
    const std::span<const std::byte> payload = client.payload();
    const std::size_t total = kFrameBytes + payload.size();
    const std::size_t of_header = std::min(client.sent, kFrameBytes);
    const std::size_t of_payload = client.sent - of_header;
    std::array<iovec, 2> parts = {{{client.reply.data() + of_header, kFrameBytes - of_header},
                                   {const_cast<std::byte*>(payload.data()) + of_payload, payload.size() - of_payload}}};
    msghdr message{};
    message.msg_iov = parts.data();
    message.msg_iovlen = parts.size();
    const ssize_t sent = ::sendmsg(client.fd.get(), &message, MSG_NOSIGNAL);
    if (sent < 0) return errno == EAGAIN || errno == EINTR;
    client.sent += static_cast<std::size_t>(sent);
    if (client.sent < total) return true;
    client.replying = false;
    client.outgoing.reset();
    return !client.last_reply;
  }

  void refuse(Client& client, ErrorCode code, const std::string& why, bool last) {
    client.incoming.reset();
    client.outgoing.reset();
    client.text = why;
    client.last_reply = last;
    client.begin_reply(failed_frame(code, -1, why));
  }

  Listener listener_;
  int stop_;
  const StoreLimits limits_;
  std::function<void(int)> tell_clients_;
  std::list<Client> clients_;
  std::map<std::uint64_t, Object> objects_;
  Pool pool_;
};

StoreServer::StoreServer(Listener listener, const StoreLimits& limits)
    : stop_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
  if (!stop_) throw std::system_error(errno, std::generic_category(), "cannot make an eventfd");
  const auto tell_clients = [this](int clients) {
    const std::lock_guard lock(mutex_);
    clients_ = clients;
    if (clients == 0) left_.notify_all();
  };
  loop_ = std::make_unique<Loop>(std::move(listener), stop_.get(), limits, tell_clients);
  thread_ = std::jthread([this] { serve(*loop_); });
}

StoreServer::~StoreServer() {
  // Fails only when the counter is full, and then the thread has been told already.
  [[maybe_unused]] const int told = ::eventfd_write(stop_.get(), 1);
}

void StoreServer::serve(Loop& loop) noexcept {
  try {
    loop.run();
  } catch (const std::exception& error) {
    const std::lock_guard lock(mutex_);
    failure_ = error.what();
  }

  loop.drop_all();
}

bool StoreServer::wait_until_left(Duration limit) {
  std::unique_lock lock(mutex_);
  return left_.wait_for(lock, limit, [this] { return clients_ == 0; });
}

std::string StoreServer::failure() const {
  const std::lock_guard lock(mutex_);
  return failure_;
}

}  // namespace col::colbench
