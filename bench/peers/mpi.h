// Shared code of Open MPI and MPICH. Each runs in worker processes (worker_processes.h),
// kolo-bench-openmpi and kolo-bench-mpich, both made of mpi_worker.cpp. Two MPIs do not fit into
// one process, as they define the same symbols.
#pragma once

#include <memory>
#include <string>

#include "bench/measure/library.h"
#include "bench/p2p/pipe.h"
#include "bench/peers/worker_processes.h"

namespace kolo::bench {

// The peers' own transport that is compared: "tcp" beside tcp, "shm" beside the others.
std::string mpi_transport(const LibraryRequest& request);

// Whether there are more ranks than cores.
bool is_oversubscribed(const LibraryRequest& request);

// The path of a worker program, beside this one, built or installed.
std::string worker_program(const std::string& name);

// An MPI and its options.
struct MpiPeer {
  std::string library;  // for the table, as the next two
  std::string algorithm;
  std::string transport;
  StartCommand command;
  std::string caution = {};  // as in library.h
};

// With more ranks than cores, tells MPICH to yield. This helps little, and the table says so.
void let_mpich_yield(const LibraryRequest& request, MpiPeer& peer);

// All MPIs have a limit of 2^31 - 1 elements.
std::unique_ptr<Library> make_mpi(MpiPeer peer, const LibraryRequest& request);

// MPI_Isend and MPI_Irecv. The request has two ranks.
std::unique_ptr<Pipe> make_mpi_pipe(MpiPeer peer, const LibraryRequest& request);

}  // namespace kolo::bench
