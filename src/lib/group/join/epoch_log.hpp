// Tells the launcher of this host of an epoch that has opened.
#pragma once

#include <span>
#include <string>

#include <col/request.hpp>

#include "group/join/epoch_record.hpp"
#include "group/join/renewal.hpp"

namespace col::group {

// Writes a line into the file at `path`, if this rank, number `own` of `now`, is the lowest survivor of its host.
// `before`: the members of the epoch before. Does nothing where the path is empty, and never throws: the group is in
// use already.
void tell_epoch(const std::string& path, const EpochRecord& record, const Stages& stages,
                std::span<const PeerInfo> before, std::span<const PeerInfo> now, int own) noexcept;

}  // namespace col::group
