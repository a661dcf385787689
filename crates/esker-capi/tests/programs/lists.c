/* The same lists of blocks again and again, as programs give them for each of their variables, and in between changed
 * where they are: another block, another record, other lengths, none. What is in the file is what a plain array has. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <pnetcdf.h>

enum { BLOCKS = 40, RECORDS = 3, ROWS = 8, COLUMNS = 60, VARIABLES = 3, POSTS = 60, MOST = BLOCKS * 3 };

static int rank, ranks, failures;
static unsigned seed = 7;

static unsigned next(unsigned below) {
    seed = seed * 1103515245u + 12345u;
    return (seed >> 16) % below;
}

static void check(int err, int line) {
    if (err != NC_NOERR) {
        printf("rank %d, line %d: %s\n", rank, line, ncmpi_strerrno(err));
        failures++;
    }
}
#define DO(call) check(call, __LINE__)

static int model[VARIABLES][RECORDS][ROWS][COLUMNS];
static MPI_Offset numbers[BLOCKS][2][3], *starts[BLOCKS], *counts[BLOCKS];

/* A block of one to three columns of a row; blocks of one list have no element together. */
static void block(int i, int record) {
    MPI_Offset start[3] = {record, i % ROWS, i / ROWS * 3 + next(2)}, count[3] = {1, 1, 1 + next(2)};
    start[2] += COLUMNS * rank;
    memcpy(numbers[i][0], start, sizeof start);
    memcpy(numbers[i][1], count, sizeof count);
}

int main(int argc, char **argv) {
    int ncid, dims[3], vars[VARIABLES], requests[POSTS], states[POSTS], posted = 0, value = 0;
    static int memory[POSTS][MOST], back[RECORDS][ROWS][COLUMNS];
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    DO(ncmpi_create(MPI_COMM_WORLD, argc > 1 ? argv[1] : "lists.nc", NC_CLOBBER | NC_64BIT_DATA, MPI_INFO_NULL, &ncid));
    DO(ncmpi_def_dim(ncid, "t", NC_UNLIMITED, &dims[0]));
    DO(ncmpi_def_dim(ncid, "y", ROWS, &dims[1]));
    DO(ncmpi_def_dim(ncid, "x", COLUMNS * ranks, &dims[2]));
    DO(ncmpi_def_var(ncid, "a", NC_INT, 3, dims, &vars[0]));
    DO(ncmpi_def_var(ncid, "b", NC_INT, 3, dims, &vars[1]));
    /* Elements of another size, which are elsewhere in a record. */
    DO(ncmpi_def_var(ncid, "c", NC_DOUBLE, 3, dims, &vars[2]));
    DO(ncmpi_enddef(ncid));
    MPI_Offset whole[3] = {RECORDS, ROWS, COLUMNS}, first[3] = {0, 0, COLUMNS * rank};
    for (int v = 0; v < VARIABLES; v++) DO(ncmpi_put_vara_int_all(ncid, vars[v], first, whole, &model[v][0][0][0]));

    for (int i = 0; i < BLOCKS; i++) {
        starts[i] = numbers[i][0], counts[i] = numbers[i][1];
        block(i, 0);
    }
    for (int post = 0; post < POSTS; post++) {
        int v = next(VARIABLES), no_counts = 0, at = 0;
        switch (next(6)) {
        case 0: block(BLOCKS - 1 - next(3), (int)starts[0][0]); break; /* one of the last */
        case 1: { int record = next(RECORDS); for (int i = 0; i < BLOCKS; i++) starts[i][0] = record; break; }
        case 2: counts[next(BLOCKS)][2] = 0; break; /* no elements */
        case 3: { int record = (int)starts[0][0]; for (int i = 0; i < BLOCKS; i++) block(i, record); break; }
        case 4: no_counts = 1; break;
        default: break; /* as it was */
        }
        for (int i = 0; i < BLOCKS; i++)
            for (int k = 0; k < (no_counts ? 1 : counts[i][2]); k++) {
                memory[post][at++] = ++value;
                model[v][starts[i][0]][starts[i][1]][starts[i][2] - COLUMNS * rank + k] = value;
            }
        DO(ncmpi_iput_varn_int(ncid, vars[v], BLOCKS, starts, no_counts ? NULL : counts, memory[post], &requests[posted++]));
        if (next(5) == 0 || post == POSTS - 1) {
            DO(ncmpi_wait_all(ncid, posted, requests, states));
            posted = 0;
        }
    }
    DO(ncmpi_sync(ncid));
    MPI_Barrier(MPI_COMM_WORLD);
    for (int v = 0; v < VARIABLES; v++) {
        DO(ncmpi_get_vara_int_all(ncid, vars[v], first, whole, &back[0][0][0]));
        if (memcmp(back, model[v], sizeof back) != 0) {
            printf("rank %d: variable %d is not what was written\n", rank, v);
            failures++;
        }
        /* The same list for reading, and then where there is no record. */
        for (int turn = 0; turn < 2; turn++) {
            int at = 0;
            DO(ncmpi_get_varn_int_all(ncid, vars[v], BLOCKS, starts, NULL, memory[0]));
            for (int i = 0; i < BLOCKS; i++, at++)
                failures += memory[0][at] != model[v][starts[i][0]][starts[i][1]][starts[i][2] - COLUMNS * rank];
        }
    }
    MPI_Offset record = starts[BLOCKS - 1][0];
    starts[BLOCKS - 1][0] = RECORDS;
    DO(ncmpi_begin_indep_data(ncid));
    if (ncmpi_get_varn_int(ncid, vars[0], BLOCKS, starts, NULL, memory[0]) != NC_EINVALCOORDS) {
        printf("rank %d: a record that does not exist was read\n", rank);
        failures++;
    }
    starts[BLOCKS - 1][0] = record;
    starts[BLOCKS - 1][1] = ROWS;
    if (ncmpi_put_varn_int(ncid, vars[0], BLOCKS, starts, NULL, memory[0]) != NC_EINVALCOORDS) {
        printf("rank %d: a row that does not exist was written\n", rank);
        failures++;
    }
    DO(ncmpi_end_indep_data(ncid));
    DO(ncmpi_close(ncid));
    MPI_Allreduce(MPI_IN_PLACE, &failures, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    MPI_Finalize();
    return failures != 0;
}
