// What Open MPI and MPICH have in common here: each runs in processes of its own (elsewhere.h),
// kolo-bench-openmpi and kolo-bench-mpich, made of the same mpi_worker.cpp. Two MPIs do not fit
// into one process, as they have the same names for everything.
#pragma once

#include <memory>
#include <string>

#include "bench/measure/library.h"
#include "bench/p2p/pipe.h"
#include "bench/peers/worker_processes.h"

namespace kolo::bench {

// Which of the peers' own transports stands beside kolo's: "tcp" beside tcp, "shm" beside the
// others.
std::string mpi_transport(const LibraryRequest& request);

// Whether more ranks than cores will run.
bool is_crowded(const LibraryRequest& request);

// The program that does a peer's work, beside this one, built or installed.
std::string worker_program(const std::string& name);

// One of them, as it is asked for.
struct MpiPeer {
  std::string library;  // for the table, as are the next two
  std::string algorithm;
  std::string transport;
  StartCommand command;
  std::string caution = {};  // as in library.h
};

// Where more ranks than cores will run: has an MPICH yield, which helps it little, as the table
// then says.
void let_mpich_yield(const LibraryRequest& request, MpiPeer& peer);

// A limit of all MPIs: 2^31 - 1 elements.
std::unique_ptr<Library> make_mpi(MpiPeer peer, const LibraryRequest& request);

// MPI_Isend and MPI_Irecv. The request has two ranks.
std::unique_ptr<Pipe> make_mpi_pipe(MpiPeer peer, const LibraryRequest& request);

}  // namespace kolo::bench
