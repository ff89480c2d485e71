// The launcher's name for the job, asked for over PMI-1: lines of key=value pairs on a socket that the launcher (hydra:
// mpiexec of MPICH, Intel MPI, MVAPICH) has left open for each rank.
//
//   cmd=init pmi_version=1 pmi_subversion=1   ->  cmd=response_to_init pmi_version=1 pmi_subversion=1 rc=0
//   cmd=get_my_kvsname                        ->  cmd=my_kvsname kvsname=kvs_4711_0_83_host
//   cmd=finalize                              ->  cmd=finalize_ack
#pragma once

#include <string>

#include <col/types.hpp>

namespace col::group::adopt {

// Asks for the name of the job's key-value space, which no other job of the launcher has, and ends the conversation:
// hydra takes a rank that goes without doing so for a crash, and kills the others. The launcher then closes its end, so
// this can be done once in the life of a process, and not beside an MPI library in it.
//
// `fd` is left open: it is the launcher's. Blocks for `timeout` at most. Errors: unavailable (no such socket, somebody
// has ended the conversation before, or an answer that is none), timeout, io.
std::string ask_pmi_for_job(int fd, Duration timeout);

}  // namespace col::group::adopt
