// A faulty MPI library: its all-reduce falsifies the last element of rank 1, and its barrier does
// not wait. Uses MPI's profiling interface (MPI-3.1, chapter 14).
#include <mpi.h>

extern "C" int MPI_Allreduce(const void* in, void* out, int count, MPI_Datatype type, MPI_Op op,
                             MPI_Comm communicator) {
  const int code = PMPI_Allreduce(in, out, count, type, op, communicator);
  int rank = 0;
  int bytes = 0;
  PMPI_Comm_rank(communicator, &rank);
  PMPI_Type_size(type, &bytes);
  if (rank == 1 && count > 0) {
    char* last = static_cast<char*>(out) + static_cast<long>(count) * bytes - 1;
    *last = static_cast<char>(*last ^ 0x40);
  }
  return code;
}

extern "C" int MPI_Barrier(MPI_Comm) { return MPI_SUCCESS; }
