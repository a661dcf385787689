/* The types of an MPI as its header has them, for building the C++ classes for each MPI without
 * having it: their names are part of the names of functions. ESKER_MPI says which. */
#ifndef ESKER_MPI_TYPES
#define ESKER_MPI_TYPES

#if ESKER_MPI == 1 /* OpenMPI */
typedef struct ompi_communicator_t *MPI_Comm;
typedef struct ompi_info_t *MPI_Info;
typedef struct ompi_datatype_t *MPI_Datatype;
typedef long long MPI_Offset;
#elif ESKER_MPI == 2 /* MPICH */
typedef int MPI_Comm, MPI_Info, MPI_Datatype;
typedef long MPI_Offset;
#elif ESKER_MPI == 3 /* MPICH, configured with another type for offsets */
typedef int MPI_Comm, MPI_Info, MPI_Datatype;
typedef long long MPI_Offset;
#else /* MPI 5's ABI */
typedef struct MPI_ABI_Comm *MPI_Comm;
typedef struct MPI_ABI_Info *MPI_Info;
typedef struct MPI_ABI_Datatype *MPI_Datatype;
typedef long MPI_Offset;
#endif

/* For default arguments, which are the caller's. */
#define MPI_INFO_NULL ((MPI_Info)0)

#endif
