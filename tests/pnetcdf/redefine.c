/* Redefinitions that move data, as programs make them that add variables as they go: a file is made, closed, opened, and gets a
 * fixed-size variable, a record variable, and a longer header, again and again. Prints the seconds of a round. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <mpi.h>
#include <pnetcdf.h>

enum { SIDE = 100, ROUNDS = 20 };
#define DO(call) do { int code = (call); if (code != NC_NOERR) { \
    fprintf(stderr, "line %d: %s\n", __LINE__, ncmpi_strerror(code)); MPI_Abort(MPI_COMM_WORLD, 1); } } while (0)

int main(int argc, char **argv) {
    int rank, ranks, ncid, dims[3], vars[6];
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    float *values = malloc(sizeof(float) * SIDE * SIDE), *back = malloc(sizeof(float) * SIDE * SIDE);
    for (int i = 0; i < SIDE * SIDE; i++) values[i] = (float)(rank + i);
    MPI_Offset start[3] = {0, SIDE * rank, 0}, count[3] = {1, SIDE, SIDE};
    double begin = MPI_Wtime();
    for (int round = 0; round < ROUNDS; round++) {
        char text[2000];
        memset(text, 'a', sizeof text);
        DO(ncmpi_create(MPI_COMM_WORLD, argv[1], NC_CLOBBER, MPI_INFO_NULL, &ncid));
        DO(ncmpi_def_dim(ncid, "t", NC_UNLIMITED, &dims[0]));
        DO(ncmpi_def_dim(ncid, "y", SIDE * ranks, &dims[1]));
        DO(ncmpi_def_dim(ncid, "x", SIDE, &dims[2]));
        DO(ncmpi_def_var(ncid, "f", NC_FLOAT, 2, dims + 1, &vars[0]));
        DO(ncmpi_def_var(ncid, "r", NC_FLOAT, 3, dims, &vars[1]));
        DO(ncmpi_enddef(ncid));
        DO(ncmpi_put_vara_float_all(ncid, vars[0], start + 1, count + 1, values));
        for (start[0] = 0; start[0] < 2; start[0]++) DO(ncmpi_put_vara_float_all(ncid, vars[1], start, count, values));
        DO(ncmpi_close(ncid));
        DO(ncmpi_open(MPI_COMM_WORLD, argv[1], NC_WRITE, MPI_INFO_NULL, &ncid));
        for (int step = 0; step < 3; step++) {
            DO(ncmpi_redef(ncid));
            if (step == 0) DO(ncmpi_def_var(ncid, "g", NC_FLOAT, 2, dims + 1, &vars[2]));
            if (step == 1) DO(ncmpi_def_var(ncid, "s", NC_FLOAT, 3, dims, &vars[3]));
            if (step == 2) DO(ncmpi_put_att_text(ncid, NC_GLOBAL, "text", sizeof text, text));
            DO(ncmpi_enddef(ncid));
            start[0] = 1;
            DO(ncmpi_get_vara_float_all(ncid, vars[1], start, count, back));
            if (memcmp(values, back, sizeof(float) * SIDE * SIDE) != 0) MPI_Abort(MPI_COMM_WORLD, 2);
        }
        DO(ncmpi_close(ncid));
    }
    double seconds = (MPI_Wtime() - begin) / ROUNDS;
    if (rank == 0) printf("%.4f\n", seconds);
    MPI_Finalize();
    return 0;
}
