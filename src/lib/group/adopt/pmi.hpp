// Asks the launcher for its name of the job, over PMI-1: lines of key=value pairs on a socket that the launcher (hydra:
// mpiexec of MPICH, Intel MPI, MVAPICH) has left open for each rank.
//
//   cmd=init pmi_version=1 pmi_subversion=1   ->  cmd=response_to_init pmi_version=1 pmi_subversion=1 rc=0
//   cmd=get_my_kvsname                        ->  cmd=my_kvsname kvsname=kvs_4711_0_83_host
//   cmd=finalize                              ->  cmd=finalize_ack
//
// Between these, the ranks of several hosts tell one another where rank 0 is:
//
//   cmd=put kvsname=K key=col-rank0 value=n1  ->  cmd=put_result rc=0          (rank 0)
//   cmd=barrier_in                            ->  cmd=barrier_out              (when all ranks have said so)
//   cmd=get kvsname=K key=col-rank0           ->  cmd=get_result rc=0 value=n1
#pragma once

#include <string>

#include <col/types.hpp>

namespace col::group::adopt {

// Asks for the name of the job's key-value space, which no other job of the launcher has, and ends the conversation. If
// a rank ended without doing so, hydra would treat that as a crash, and kill the others. The launcher then closes its
// end. So this can be done once in the life of a process, and not together with an MPI library in the process.
//
// `fd` stays open, because it belongs to the launcher. Blocks for `timeout` at most. Errors: unavailable (no such
// socket, the conversation was ended before, or an invalid answer), timeout, io.
std::string ask_pmi_for_job(int fd, Duration timeout);

struct PmiJob {
  std::string name;        // of the job
  std::string first_host;  // of rank 0
};

// The same, and where rank 0 is: on `host`, if this is rank 0. Waits for all ranks of the job. Errors: also
// invalid_argument (a host with spaces in its name).
PmiJob ask_pmi_for_meeting(int fd, int rank, const std::string& host, Duration timeout);

}  // namespace col::group::adopt
