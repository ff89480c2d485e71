// The network interface that the connections of a group use.
#pragma once

#include <string_view>

#include "backend/interfaces.hpp"

namespace col::gloo_backend {

using backend::Interface;

// The first of backend::choose_interfaces().
inline Interface choose_interface(bool same_host, std::string_view wanted) {
  return backend::choose_interfaces("gloo", same_host, wanted).front();
}

}  // namespace col::gloo_backend
