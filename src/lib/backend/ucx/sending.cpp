// Messages on their way out.
#include "backend/ucx/engine.hpp"

namespace col::ucx_backend {

Operation& Engine::send(int to, std::uint64_t slot, const std::byte* data, std::uint64_t bytes) {
  Operation& operation = add(to, slot, bytes);
  operation.sending = true;
  operation.source = data;
  Peer& receiver = *peer(to);
  receiver.outbox.push_back(&operation);
  greet(receiver);
  if (receiver.proven) push_out(receiver);
  return operation;
}

void Engine::push_out(Peer& peer) {
  while (!peer.outbox.empty() && !peer.closed) {
    Operation& send = *peer.outbox.front();
    peer.outbox.pop_front();
    start(peer, send);
  }
}

void Engine::start(Peer& peer, Operation& send) {
  send.header = {.kind = Kind::message, .from = rank_, .key = peer.keys.out, .slot = send.slot, .number = peer.sent++};
  ucp_request_param_t parameters = parameters_for(&send);
  parameters.cb.send = &Engine::on_sent;
  const ucs_status_ptr_t request = ucp_am_send_nbx(peer.endpoint, kMessageId, &send.header, sizeof send.header,
                                                   send.source, static_cast<std::size_t>(send.bytes), &parameters);
  if (request == nullptr)
    send.done = true;
  else if (UCS_PTR_IS_ERR(request))
    send.status = UCS_PTR_STATUS(request);
}

void Engine::on_sent(void* request, ucs_status_t status, void* operation) {
  auto& send = *static_cast<Operation*>(operation);
  send.done = status == UCS_OK;
  send.status = status;
  ucp_request_free(request);
}

}  // namespace col::ucx_backend
