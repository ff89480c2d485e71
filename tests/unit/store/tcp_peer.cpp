#include "unit/store/tcp_peer.hpp"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <system_error>

#include <col/job.hpp>
#include <col/proof.hpp>

#include "store/tcp/handshake.hpp"
#include "store/tcp/message_reader.hpp"
#include "support/catch.hpp"
#include "unit/store/child.hpp"

namespace col::test {
namespace {

using namespace store::tcp;

sockaddr_in loopback(int port) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<std::uint16_t>(port));
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  return address;
}

// Whether bytes, or the end, come before the deadline.
bool is_readable(int fd, const Deadline& deadline) {
  pollfd entry{fd, POLLIN, 0};
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline.remaining()).count();
  return ::poll(&entry, 1, static_cast<int>(left)) > 0;
}

core::UniqueFd make_socket() {
  core::UniqueFd fd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (!fd) throw std::system_error(errno, std::generic_category(), "socket");
  return fd;
}

}  // namespace

RawClient::RawClient(int port) : fd_(make_socket()) {
  const sockaddr_in address = loopback(port);
  if (::connect(fd_.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0)
    throw std::system_error(errno, std::generic_category(), "connect");
}

bool RawClient::send(std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t sent = ::send(fd_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (sent < 0) return false;
    bytes.remove_prefix(static_cast<std::size_t>(sent));
  }
  return true;
}

std::string RawClient::receive(std::size_t enough, Duration limit) {
  const Deadline deadline = Deadline::after(limit);
  std::string text;
  std::array<char, 65536> buffer;
  while (text.size() < enough && is_readable(fd_.get(), deadline)) {
    const ssize_t got = ::recv(fd_.get(), buffer.data(), std::min(buffer.size(), enough - text.size()), 0);
    if (got <= 0) break;
    text.append(buffer.data(), static_cast<std::size_t>(got));
  }
  return text;
}

bool RawClient::is_dropped(Duration limit) {
  const Deadline deadline = Deadline::after(limit);
  std::array<char, 65536> buffer;
  while (is_readable(fd_.get(), deadline)) {
    if (::recv(fd_.get(), buffer.data(), buffer.size(), 0) <= 0) return true;
  }
  return false;
}

std::string RawClient::read_nonce() {
  const std::string line = receive(kGreetingStart.size() + kNonceBytes + 1);
  const auto nonce = nonce_in_greeting(line);
  require(nonce.has_value(), "no greeting");
  return std::string(*nonce);
}

void RawClient::log_in(std::string_view token) {
  const std::string server_nonce = read_nonce();
  const std::string nonce = make_nonce();
  require(send(make_hello(1, {.token = token, .job = {}, .server_nonce = server_nonce}, nonce)), "cannot say hello");
  const std::string header = receive(kHeaderBytes);
  require(header.size() == kHeaderBytes, "no answer to the hello");
  require(decode_header(header).type == static_cast<std::uint8_t>(AnswerType::value), "the proof is refused");
  require(check_welcome(receive(decode_header(header).body_bytes),
                        {.token = token, .job = {}, .server_nonce = server_nonce}, nonce)
              .has_value(),
          "the server has no proof");
}

RawServer::RawServer() : fd_(make_socket()) {
  sockaddr_in address = loopback(0);
  socklen_t size = sizeof address;
  auto* const generic = reinterpret_cast<sockaddr*>(&address);
  if (::bind(fd_.get(), generic, size) != 0 || ::listen(fd_.get(), 16) != 0 ||
      ::getsockname(fd_.get(), generic, &size) != 0)
    throw std::system_error(errno, std::generic_category(), "cannot listen");
  port_ = ntohs(address.sin_port);
}

core::UniqueFd RawServer::accept(std::string_view greeting) {
  core::UniqueFd client(::accept4(fd_.get(), nullptr, nullptr, SOCK_CLOEXEC));
  if (!client) throw std::system_error(errno, std::generic_category(), "accept");
  (void)!::send(client.get(), greeting.data(), greeting.size(), MSG_NOSIGNAL);
  return client;
}

core::UniqueFd RawServer::accept_as_store(std::string_view more, std::string_view token) {
  const std::string server_nonce = make_nonce();
  core::UniqueFd client = accept(greeting(server_nonce));
  MessageReader reader(kMaxHelloBytes);
  MessageReader::Message message;
  std::array<char, 4096> buffer;
  while (reader.next(message) != MessageReader::Status::complete) {
    const ssize_t got = ::recv(client.get(), buffer.data(), buffer.size(), 0);
    require(got > 0, "no hello");
    reader.feed({buffer.data(), static_cast<std::size_t>(got)});
  }
  const auto hello = decode_request(message.header, message.body);
  require(hello.has_value(), "no hello");
  const Handshake handshake{.token = token, .job = hello->key, .server_nonce = server_nonce};
  const std::string welcome = make_welcome(handshake, hello->value.substr(0, kNonceBytes), 1000);
  const std::string text =
      encode(Answer{.type = AnswerType::value, .id = hello->id, .bytes = welcome}) + std::string(more);
  (void)!::send(client.get(), text.data(), text.size(), MSG_NOSIGNAL);
  return client;
}

void check_has(const std::string& text, const std::vector<std::string>& parts) {
  for (const std::string& part : parts) {
    INFO("looking for '" << part << "' in: " << text);
    CHECK(has(text, part));
  }
}

std::string hear_out(int fd) {
  std::string heard;
  std::array<char, 4096> buffer;
  for (ssize_t got; (got = ::recv(fd, buffer.data(), buffer.size(), 0)) > 0;)
    heard.append(buffer.data(), static_cast<std::size_t>(got));
  return heard;
}

}  // namespace col::test
