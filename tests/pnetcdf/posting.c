/* What is not data: a million short runs posted through iput_varn and iget_varn, and ten thousand small variables.
 *
 *   posting FILE [RUNS [VARIABLES]]      runs that each rank posts (1200000), small variables (10000)
 *
 * Prints "phase milliseconds", of the rank that took longest. What is read is compared with what was written. */
#include <mpi.h>
#include <pnetcdf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define DO(call) do { int code = (call); if (code != NC_NOERR) { \
    fprintf(stderr, "line %d: %s\n", __LINE__, ncmpi_strerror(code)); MPI_Abort(MPI_COMM_WORLD, 1); } } while (0)

static int rank, ranks;
static double since;

/* Everyone begins together: what a phase takes is not what the one before it made somebody wait. */
static void begin(void) {
    MPI_Barrier(MPI_COMM_WORLD);
    since = MPI_Wtime();
}

static void end(const char *phase) {
    double took = MPI_Wtime() - since, most;
    MPI_Reduce(&took, &most, 1, MPI_DOUBLE, MPI_MAX, 0, MPI_COMM_WORLD);
    if (rank == 0) printf("%s %.3f\n", phase, most * 1e3);
    begin();
}

/* As the history of an atmosphere (E3SM F): variables (time, level, column), and each rank has short pieces of
 * columns, which it gives as one list for all variables of a kind. */
enum { LEVELS = 72, LIST = 20000 };

static void many_runs(const char *path, int runs) {
    int ncid, dims[3], lists = (runs + LIST - 1) / LIST;
    int *vars = malloc(lists * sizeof *vars), *requests = malloc(lists * sizeof *requests);
    int *states = malloc(lists * sizeof *states);
    /* Runs of 1 to 3 columns, then as many for each other rank. */
    int columns = 0, per_level = (LIST + LEVELS - 1) / LEVELS, mine = 0;
    for (int i = 0; i < per_level * ranks; i++) columns += 1 + i % 3;
    MPI_Offset *numbers = malloc((size_t)LIST * 6 * sizeof *numbers);
    MPI_Offset **starts = malloc(LIST * sizeof *starts), **counts = malloc(LIST * sizeof *counts);
    for (int i = 0; i < LIST; i++) {
        starts[i] = numbers + 6 * i;
        counts[i] = starts[i] + 3;
    }
    for (int level = 0, i = 0; level < LEVELS && i < LIST; level++)
        for (int run = 0, at = 0; run < per_level * ranks && i < LIST; at += 1 + run % 3, run++) {
            if (run % ranks != rank) continue;
            MPI_Offset start[3] = {0, level, at}, count[3] = {1, 1, 1 + run % 3};
            memcpy(starts[i], start, sizeof start);
            memcpy(counts[i++], count, sizeof count);
            mine += 1 + run % 3;
        }
    float *values = malloc((size_t)lists * mine * sizeof *values);
    float *back = calloc((size_t)lists * mine, sizeof *back);
    for (size_t i = 0; i < (size_t)lists * mine; i++) values[i] = (float)(rank + i % 100000);

    begin();
    DO(ncmpi_create(MPI_COMM_WORLD, path, NC_CLOBBER | NC_64BIT_DATA, MPI_INFO_NULL, &ncid));
    end("runs_create");
    DO(ncmpi_def_dim(ncid, "time", NC_UNLIMITED, &dims[0]));
    DO(ncmpi_def_dim(ncid, "lev", LEVELS, &dims[1]));
    DO(ncmpi_def_dim(ncid, "ncol", columns, &dims[2]));
    for (int v = 0; v < lists; v++) {
        char name[32];
        snprintf(name, sizeof name, "field_%d", v);
        DO(ncmpi_def_var(ncid, name, NC_FLOAT, 3, dims, &vars[v]));
    }
    end("runs_define");
    DO(ncmpi_enddef(ncid));
    end("runs_enddef");
    for (int v = 0; v < lists; v++)
        DO(ncmpi_iput_varn_float(ncid, vars[v], LIST, starts, counts, values + (size_t)v * mine, &requests[v]));
    end("runs_post");
    DO(ncmpi_wait_all(ncid, lists, requests, states));
    end("runs_wait");
    DO(ncmpi_close(ncid));
    end("runs_close");
    DO(ncmpi_open(MPI_COMM_WORLD, path, NC_NOWRITE, MPI_INFO_NULL, &ncid));
    end("runs_open");
    for (int v = 0; v < lists; v++)
        DO(ncmpi_iget_varn_float(ncid, vars[v], LIST, starts, counts, back + (size_t)v * mine, &requests[v]));
    end("runs_post_read");
    DO(ncmpi_wait_all(ncid, lists, requests, states));
    end("runs_wait_read");
    DO(ncmpi_close(ncid));
    end("runs_close_read");
    if (memcmp(values, back, (size_t)lists * mine * sizeof *values) != 0) {
        fprintf(stderr, "rank %d: what was read is not what was written\n", rank);
        MPI_Abort(MPI_COMM_WORLD, 2);
    }
    free(vars), free(requests), free(states), free(numbers), free(starts), free(counts), free(values), free(back);
}

enum { SMALL = 16 };

static void many_variables(const char *path, int variables) {
    int ncid, dim, *vars = malloc(variables * sizeof *vars), *requests = malloc(variables * sizeof *requests);
    int *states = malloc(variables * sizeof *states), *values = malloc((size_t)variables * SMALL * sizeof *values);
    MPI_Offset start = SMALL * rank, count = SMALL;
    for (size_t i = 0; i < (size_t)variables * SMALL; i++) values[i] = rank + (int)i;
    begin();
    DO(ncmpi_create(MPI_COMM_WORLD, path, NC_CLOBBER | NC_64BIT_DATA, MPI_INFO_NULL, &ncid));
    end("vars_create");
    DO(ncmpi_def_dim(ncid, "x", SMALL * ranks, &dim));
    for (int v = 0; v < variables; v++) {
        char name[32];
        snprintf(name, sizeof name, "variable_%d", v);
        DO(ncmpi_def_var(ncid, name, NC_INT, 1, &dim, &vars[v]));
        DO(ncmpi_put_att_text(ncid, vars[v], "units", 5, "m s-1"));
    }
    end("vars_define");
    DO(ncmpi_enddef(ncid));
    end("vars_enddef");
    for (int v = 0; v < variables; v++)
        DO(ncmpi_iput_vara_int(ncid, vars[v], &start, &count, values + (size_t)v * SMALL, &requests[v]));
    end("vars_post");
    DO(ncmpi_wait_all(ncid, variables, requests, states));
    end("vars_wait");
    for (int v = 0; v < variables; v++)
        DO(ncmpi_put_vara_int_all(ncid, vars[v], &start, &count, values + (size_t)v * SMALL));
    end("vars_put_each");
    DO(ncmpi_close(ncid));
    end("vars_close");
    DO(ncmpi_open(MPI_COMM_WORLD, path, NC_NOWRITE, MPI_INFO_NULL, &ncid));
    end("vars_open");
    for (int v = 0; v < variables; v++) {
        char name[NC_MAX_NAME + 1], units[6] = "";
        int found, kind, rank_of, dims[1], attributes;
        MPI_Offset length;
        DO(ncmpi_inq_var(ncid, v, name, &kind, &rank_of, dims, &attributes));
        DO(ncmpi_inq_varid(ncid, name, &found));
        DO(ncmpi_inq_attlen(ncid, v, "units", &length));
        DO(ncmpi_get_att_text(ncid, v, "units", units));
        if (found != v || kind != NC_INT || rank_of != 1 || attributes != 1 || length != 5 || strcmp(units, "m s-1") != 0)
            MPI_Abort(MPI_COMM_WORLD, 3);
    }
    end("vars_inquire");
    DO(ncmpi_close(ncid));
    end("vars_close_read");
    free(vars), free(requests), free(states), free(values);
}

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    if (argc < 2) MPI_Abort(MPI_COMM_WORLD, 4);
    many_runs(argv[1], argc > 2 ? atoi(argv[2]) : 1200000);
    many_variables(argv[1], argc > 3 ? atoi(argv[3]) : 10000);
    MPI_Finalize();
    return 0;
}
