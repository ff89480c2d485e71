// Strangers at the port of a rank: those that only connect, and those that speak UCX and our messages.
#include <chrono>
#include <list>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include "core/log.hpp"
#include "support/catch.hpp"
#include "unit/ucx/ucx_ranks.hpp"

namespace {

using namespace col;
using namespace col::test;
using namespace std::chrono_literals;
using ucx_backend::Header;
using ucx_backend::Kind;

constexpr std::string_view kWords = "has not proven to be of this group";

enum class Manner { silent, talks, resets, greets };

// Connects to every port that this process listens on. Returns its sockets.
std::vector<int> visit_all(Manner manner, int times) {
  std::vector<int> sockets;
  for (const int fd : own_descriptors()) {
    int listening = 0;
    socklen_t bytes = sizeof listening;
    if (getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, &listening, &bytes) != 0 || listening == 0) continue;
    sockaddr_in address{};
    socklen_t length = sizeof address;
    if (getsockname(fd, reinterpret_cast<sockaddr*>(&address), &length) != 0) continue;
    for (int time = 0; time < times; ++time) {
      const int visitor = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
      expect(::connect(visitor, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0,
             "a visitor connects");
      if (manner == Manner::talks) ::send(visitor, std::string(512, 'X').data(), 512, MSG_NOSIGNAL);
      // UCX's greeting, and then nothing.
      if (manner == Manner::greets) ::send(visitor, "\x78\x56\x34\x12\xbe\xba\xfe\xca", 8, MSG_NOSIGNAL);
      if (manner == Manner::resets) {
        const linger at_once{1, 0};
        setsockopt(visitor, SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
        ::close(visitor);
        continue;
      }
      sockets.push_back(visitor);
    }
  }
  return sockets;
}

// Somebody who has UCX, and the address of a rank.
class Impostor {
 public:
  explicit Impostor(const std::string& text)
      : worker_(ucx_backend::choose_settings(request_of({.rank = 0, .size = 2}), &no_variable), 1, &no_variable) {
    const std::string address = ucx_backend::Record::decode(text, kToken).value().address;
    ucp_ep_params_t parameters{};
    parameters.field_mask = UCP_EP_PARAM_FIELD_REMOTE_ADDRESS | UCP_EP_PARAM_FIELD_ERR_HANDLING_MODE;
    parameters.address = reinterpret_cast<const ucp_address_t*>(address.data());
    parameters.err_mode = UCP_ERR_HANDLING_MODE_PEER;
    ucx_backend::require_ok(ucp_ep_create(worker_.handle(), &parameters, &endpoint_), "connect");
  }

  void say(const Header& header, const std::string& text) {
    const auto& said = said_.emplace_back(header, text);
    ucp_request_param_t parameters{};
    const ucs_status_ptr_t request =
        ucp_am_send_nbx(endpoint_, 1, &said.first, sizeof header, said.second.data(), said.second.size(), &parameters);
    if (UCS_PTR_IS_PTR(request)) under_way_.push_back(request);
    for (int i = 0; i < 100; ++i) worker_.progress();
  }
  // Returns whether nothing of his is under way: else UCX ends the process when his worker goes.
  bool progress() {
    worker_.progress();
    std::erase_if(under_way_, [](void* request) {
      if (ucp_request_check_status(request) == UCS_INPROGRESS) return false;
      ucp_request_free(request);
      return true;
    });
    return under_way_.empty();
  }

 private:
  std::list<std::pair<Header, std::string>> said_;  // as long as UCX may read it
  std::vector<void*> under_way_;                    // requests
  ucx_backend::Worker worker_;
  ucp_ep_h endpoint_ = nullptr;
};

}  // namespace

TEST_CASE("ucx connect: strangers who connect first, and others while the ranks work, change nothing", "[ucx]") {
  for (const Manner manner : {Manner::silent, Manner::talks, Manner::resets, Manner::greets}) {
    constexpr int kSize = 3;
    const auto store = make_memory_store();
    std::vector<int> visitors;
    std::mutex mutex;
    require_well(run_each(kSize, [&](int rank) {
      const auto channel = connect({.rank = rank, .size = kSize, .store = store});
      for (std::uint64_t round = 1; round <= 3; ++round) {
        if (rank == 0) {
          const std::lock_guard lock(mutex);
          for (const int visitor : visit_all(manner, 20)) visitors.push_back(visitor);
        }
        meet_all(*channel, rank, kSize, round);
      }
    }));
    for (const int visitor : visitors) ::close(visitor);
  }
}

TEST_CASE("ucx: who speaks our messages and has proven nothing is dropped, said once, and changes nothing",
          "[ucx][rest]") {
  const core::log::Capture log(core::log::Level::warn);
  const auto store = make_memory_store();
  const auto intrude = [&] {
    Impostor impostor(store->wait_for("address/0", 20s));
    const std::string nonce = make_nonce();
    for (const char* when : {"before", "after"}) {
      store->wait_for(when, 20s);
      for (const int from : {1, 0, 2, -1, 1 << 30}) {
        impostor.say({.kind = Kind::hello, .from = from}, nonce);
        impostor.say({.kind = Kind::hello, .from = from}, "short");
        impostor.say({.kind = Kind::proof, .from = from}, nonce + nonce);
        impostor.say({.kind = Kind::message, .from = from, .slot = 2}, "four");
        impostor.say({.kind = Kind::message, .from = from, .slot = 2}, std::string(1 << 20, 'x'));
        impostor.say({.kind = Kind::goodbye, .from = from}, "");
        impostor.say({.kind = Kind::broken, .from = from}, "all is lost");
        impostor.say({.kind = static_cast<Kind>(99), .from = from}, "what");
      }
      store->set(std::string("said ") + when, "yes");
    }
    for (bool has_told = false; !store->get("done");) {
      if (impostor.progress() && !std::exchange(has_told, true)) store->set("dropped", "yes");
    }
  };
  require_well(run_each(3, [&](int rank) {
    if (rank == 2) return intrude();
    const auto channel = connect({.rank = rank, .size = 2, .store = store});
    // The first messages of the two, and later ones.
    std::uint64_t round = 0;
    for (const char* when : {"before", "after"}) {
      if (rank == 0) store->set(when, "yes");
      store->wait_for(std::string("said ") + when, 20s);
      for (int i = 0; i < 100; ++i) meet_all(*channel, rank, 2, ++round);
    }
    // Rank 0 looks until it has heard him; only then does the other rank send what it waits for.
    std::vector<std::int32_t> last(1, 7);
    if (rank == 1) {
      store->wait_for("heard", 20s);
      return send(*channel, 0, ++round, last);
    }
    const Ticket ticket = channel->post_recv(1, ++round, last);
    const auto end = std::chrono::steady_clock::now() + 20s;
    while ((log.text().find(kWords) == std::string::npos || !store->get("dropped")) &&
           std::chrono::steady_clock::now() < end)
      expect(!channel->test(ticket), "nothing was sent");
    store->set("heard", "yes");
    wait_for(*channel, ticket);
    store->set("done", "yes");
  }));
  CHECK(store->get("dropped"));  // all that he has said, large messages too
  const std::string said = log.text();
  INFO(said);
  const auto first = said.find(kWords);
  REQUIRE(first != std::string::npos);
  CHECK(said.find(kWords, first + 1) == std::string::npos);
}
