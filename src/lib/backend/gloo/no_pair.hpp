// What Gloo's collectives find where they look whether there is a connection: there is, as soon as it is needed. They
// only compare it with null.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include <gloo/transport/pair.h>

#include <col/error.hpp>

namespace col::gloo_backend {

class NoPair final : public ::gloo::transport::Pair {
 public:
  NoPair() { localRank_ = 0; }  // left uninitialised by Gloo

  const ::gloo::transport::Address& address() const override { refuse(); }
  void connect(const std::vector<char>& /*bytes*/) override { refuse(); }
  void close() override {}
  void setSync(bool /*enable*/, bool /*busyPoll*/) override { refuse(); }
  std::unique_ptr<::gloo::transport::Buffer> createSendBuffer(int /*slot*/, void* /*memory*/,
                                                              std::size_t /*bytes*/) override {
    refuse();
  }
  std::unique_ptr<::gloo::transport::Buffer> createRecvBuffer(int /*slot*/, void* /*memory*/,
                                                              std::size_t /*bytes*/) override {
    refuse();
  }
  void send(::gloo::transport::UnboundBuffer* /*buffer*/, std::uint64_t /*tag*/, std::size_t /*offset*/,
            std::size_t /*bytes*/) override {
    refuse();
  }
  void recv(::gloo::transport::UnboundBuffer* /*buffer*/, std::uint64_t /*tag*/, std::size_t /*offset*/,
            std::size_t /*bytes*/) override {
    refuse();
  }
  // In newer versions.
  bool isConnected() { return true; }

 private:
  [[noreturn]] static void refuse() {
    throw Error(ErrorCode::internal, "gloo: messages go through buffers, not through pairs; please report this");
  }
};

}  // namespace col::gloo_backend
