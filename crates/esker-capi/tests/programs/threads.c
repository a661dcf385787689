/* Several threads use files of their own, each collective over MPI_COMM_SELF, at the same time: what
 * PNETCDF_THREAD_SAFE says. Returns 0 if every thread read back what it wrote; 77 if MPI has no threads. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <pnetcdf.h>

enum { THREADS = 4, ROUNDS = 20, LENGTH = 500 };
static int rank;

#define DO(call) do { int code = (call); if (code != NC_NOERR) { \
    printf("rank %d thread %d, line %d: %s\n", rank, me, __LINE__, ncmpi_strerror(code)); return "failed"; } } while (0)

static void *work(void *argument) {
    int me = *(int *)argument;
    for (int round = 0; round < ROUNDS; round++) {
        char name[60];
        int ncid, dim, var, values[LENGTH], back[LENGTH];
        sprintf(name, "threads.%d.%d.nc", rank, me);
        for (int i = 0; i < LENGTH; i++) values[i] = 1000000 * rank + 100000 * me + 1000 * round + i;
        DO(ncmpi_create(MPI_COMM_SELF, name, NC_CLOBBER, MPI_INFO_NULL, &ncid));
        DO(ncmpi_def_dim(ncid, "x", LENGTH, &dim));
        DO(ncmpi_def_var(ncid, "v", NC_INT, 1, &dim, &var));
        DO(ncmpi_enddef(ncid));
        DO(ncmpi_put_var_int_all(ncid, var, values));
        DO(ncmpi_close(ncid));
        DO(ncmpi_open(MPI_COMM_SELF, name, NC_NOWRITE, MPI_INFO_NULL, &ncid));
        DO(ncmpi_get_var_int_all(ncid, var, back));
        DO(ncmpi_close(ncid));
        for (int i = 0; i < LENGTH; i++)
            if (back[i] != values[i]) return "other values";
    }
    return NULL;
}

int main(int argc, char **argv) {
    int provided, numbers[THREADS], failed = 0;
    pthread_t threads[THREADS];
    MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    if (!PNETCDF_THREAD_SAFE || provided < MPI_THREAD_MULTIPLE) {
        MPI_Finalize();
        return 77;
    }
    for (int i = 0; i < THREADS; i++) numbers[i] = i, pthread_create(&threads[i], NULL, work, &numbers[i]);
    for (int i = 0; i < THREADS; i++) {
        void *said;
        pthread_join(threads[i], &said);
        failed += said != NULL;
    }
    MPI_Finalize();
    return failed > 0;
}
