#include "colbench/rank/lead.hpp"

namespace col::colbench {

void follow(Player& player, Duration patience) {
  for (;;) {
    Command told;
    player.control().broadcast(std::span(reinterpret_cast<std::byte*>(&told), sizeof told), {.timeout = patience});
    if (told.kind == Command::Kind::dismiss) return;
    if (told.kind == Command::Kind::order) {
      std::string text;
      player.control().broadcast_object(text);
      player.take_order(decode_order(text));
      continue;
    }
    player.control().gather_object(encode(player.carry_out(told)));
  }
}

}  // namespace col::colbench
