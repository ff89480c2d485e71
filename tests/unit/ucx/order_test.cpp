// Messages that overtake one another, as they may where UCX has several rails: a member that sends them so.
#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "support/catch.hpp"
#include "unit/ucx/ucx_ranks.hpp"

namespace {

using namespace col;
using namespace col::test;
using namespace std::chrono_literals;
using ucx_backend::Header;
using ucx_backend::Keys;
using ucx_backend::Kind;
using ucx_backend::Record;

// Rank 1 of 2, by hand.
class Member {
 public:
  explicit Member(const std::shared_ptr<Store>& store)
      : store_(store),
        worker_(ucx_backend::choose_settings(request_of({.rank = 1, .size = 2}), &no_variable), 1, &no_variable) {
    ucp_am_handler_param_t handler{};
    handler.field_mask = UCP_AM_HANDLER_PARAM_FIELD_ID | UCP_AM_HANDLER_PARAM_FIELD_CB | UCP_AM_HANDLER_PARAM_FIELD_ARG;
    handler.id = 1;
    handler.cb = &Member::on_message;
    handler.arg = this;
    ucx_backend::require_ok(ucp_worker_set_am_recv_handler(worker_.handle(), &handler), "take messages");
    const Record record{.secret = secret_, .listens = {}, .hosts = {}, .address = worker_.address()};
    store_->set(Record::key(1), record.encode(kToken));
    if (store_->add("entered", 1) == 2) store_->set("word", "complete -");
    store_->wait_for("word", 20s);
  }

  void connect() {
    const Record record = Record::decode(*store_->get(Record::key(0)), kToken).value();
    introduction_ =
        std::make_unique<ucx_backend::Introduction>(fmt::format("{:016x} {} {}", kToken, record.secret, secret_), 1, 0);
    ucp_ep_params_t parameters{};
    parameters.field_mask = UCP_EP_PARAM_FIELD_REMOTE_ADDRESS | UCP_EP_PARAM_FIELD_ERR_HANDLING_MODE;
    parameters.address = reinterpret_cast<const ucp_address_t*>(record.address.data());
    parameters.err_mode = UCP_ERR_HANDLING_MODE_PEER;
    ucx_backend::require_ok(ucp_ep_create(worker_.handle(), &parameters, &endpoint_), "connect");
    say({.kind = Kind::hello, .from = 1}, introduction_->nonce());
    const auto end = std::chrono::steady_clock::now() + 20s;
    while (!keys_ && std::chrono::steady_clock::now() < end) worker_.progress();
    expect(keys_.has_value(), "rank 0 has proven itself");
    say({.kind = Kind::proof, .from = 1}, introduction_->answer(nonce_of_0_));
  }

  void send(std::uint64_t number, std::uint64_t slot, const std::vector<std::int32_t>& data) {
    say({.kind = Kind::message, .from = 1, .key = keys_->out, .slot = slot, .number = number},
        std::string(reinterpret_cast<const char*>(data.data()), data.size() * sizeof(std::int32_t)));
  }
  void leave(std::uint64_t number) { say({.kind = Kind::goodbye, .from = 1, .key = keys_->out, .number = number}, ""); }

 private:
  static ucs_status_t on_message(void* self, const void* header, std::size_t /*header_bytes*/, void* data,
                                 std::size_t bytes, const ucp_am_recv_param_t* /*parameters*/) {
    auto& member = *static_cast<Member*>(self);
    if (static_cast<const Header*>(header)->kind != Kind::proof) return UCS_OK;
    const std::string words(static_cast<const char*>(data), bytes);
    member.keys_ = member.introduction_->check(words);
    member.nonce_of_0_ = words.substr(0, kNonceBytes);
    return UCS_OK;
  }

  // Waits until it is on its way. A large one is when it is fetched.
  void say(const Header& header, const std::string& text) {
    ucp_request_param_t parameters{};
    parameters.op_attr_mask = UCP_OP_ATTR_FIELD_FLAGS;
    parameters.flags = UCP_AM_SEND_FLAG_EAGER;
    const ucs_status_ptr_t request =
        ucp_am_send_nbx(endpoint_, 1, &header, sizeof header, text.data(), text.size(), &parameters);
    if (!UCS_PTR_IS_PTR(request)) return;
    const auto end = std::chrono::steady_clock::now() + 20s;
    while (ucp_request_check_status(request) == UCS_INPROGRESS && std::chrono::steady_clock::now() < end)
      worker_.progress();
    ucp_request_free(request);
  }

  const std::shared_ptr<Store> store_;
  const std::string secret_ = make_nonce();
  std::unique_ptr<ucx_backend::Introduction> introduction_;
  std::optional<Keys> keys_;
  std::string nonce_of_0_;
  ucx_backend::Worker worker_;
  ucp_ep_h endpoint_ = nullptr;
};

}  // namespace

TEST_CASE("ucx: messages that overtake one another are received in the order of sending", "[ucx]") {
  const auto store = make_memory_store();
  require_well(run_each(2, [&](int rank) {
    constexpr int kMessages = 6;
    constexpr int kOrder[kMessages] = {2, 0, 5, 3, 1, 4};
    if (rank == 1) {
      Member member(store);
      member.connect();
      member.leave(kMessages);  // counts when all that was sent before has come
      for (const int number : kOrder) member.send(static_cast<std::uint64_t>(number), 1, {number, 10 * number});
      store->wait_for("received", 20s);
      return;
    }
    const auto channel = connect({.rank = 0, .size = 2, .store = store});
    for (int number = 0; number < kMessages; ++number) {
      std::vector<std::int32_t> data(2);
      recv(*channel, number % 2 == 0 ? 1 : kAnyPeer, 1, data);
      expect(data[0] == number && data[1] == 10 * number, fmt::format("message {} is {}", number, data[0]));
    }
    std::vector<std::int32_t> data(2);
    const Ending ending = ending_of([&] { recv(*channel, 1, 1, data); });
    expect(ending.code == ErrorCode::peer_lost && ending.says("left the group"), ending.text);
    store->set("received", "yes");
  }));
}
