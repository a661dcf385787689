/* A process that is forked while a dataset is open: it reads, and may not write what has one writer; what its parent has
 * open, defines and writes stays whole. Its arguments are the name of the dataset and whether it has one writer (1 or 0). */
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include <pnetcdf.h>

enum { X = 1000 };
static int failures;

static void check(int code, int wanted, const char *what, int line) {
    if (code != wanted) failures++, printf("line %d: %s: %s\n", line, what, ncmpi_strerror(code)), fflush(stdout);
}
#define IS(code, call) check((call), (code), #call, __LINE__)
#define DO(call) IS(NC_NOERR, call)

static void put(int ncid, int record, int wanted) {
    int values[X];
    MPI_Offset start[2] = {record, 0}, count[2] = {1, X};
    for (int i = 0; i < X; i++) values[i] = record * X + i;
    IS(wanted, ncmpi_put_vara_int_all(ncid, 0, start, count, values));
}

static void wait_for_child(pid_t child) {
    int status;
    if (waitpid(child, &status, 0) != child || status != 0) failures++, printf("the child ended with %d\n", status);
}

/* Aborts in a child, which gives up what it has and touches nothing that has this name. */
static void abort_in_a_child(int ncid, const char *name) {
    struct stat before, after;
    int was = stat(name, &before);
    pid_t child = fork();
    if (child == 0) {
        DO(ncmpi_abort(ncid));
        IS(NC_EBADID, ncmpi_abort(ncid));
        _exit(failures > 0);
    }
    wait_for_child(child);
    int is = stat(name, &after);
    if (is != was || (is == 0 && (before.st_ino != after.st_ino || before.st_size != after.st_size)))
        failures++, printf("an abort in a child has changed %s\n", name);
}

/* Ends a child; its exit code says how it went. */
static void end_child(int ncid, int one_writer) {
    int wanted = one_writer ? NC_EACCESS : NC_NOERR;
    if (one_writer) {
        put(ncid, 1, wanted);
        put(ncid, 0, wanted);
        IS(wanted, ncmpi_sync(ncid));
        IS(wanted, ncmpi_close(ncid));
    }
    _exit(failures > 0);
}

int main(int argc, char **argv) {
    int ncid, dims[2], var, all[4 * X];
    pid_t child;
    MPI_Init(&argc, &argv);
    int one_writer = argc < 3 || atoi(argv[2]);
    DO(ncmpi_create(MPI_COMM_WORLD, argv[1], NC_CLOBBER | NC_64BIT_DATA, MPI_INFO_NULL, &ncid));
    DO(ncmpi_def_dim(ncid, "t", NC_UNLIMITED, &dims[0]));
    DO(ncmpi_def_dim(ncid, "x", X, &dims[1]));
    DO(ncmpi_def_var(ncid, "v", NC_INT, 2, dims, &var));
    /* A child that ends with a definition of its parent's: the draft is the parent's. */
    if ((child = fork()) == 0) {
        IS(NC_EACCESS, ncmpi_enddef(ncid));
        IS(NC_EACCESS, ncmpi_close(ncid));
        _exit(failures > 0);
    }
    wait_for_child(child);
    abort_in_a_child(ncid, argv[1]);
    DO(ncmpi_enddef(ncid));
    put(ncid, 0, NC_NOERR);
    abort_in_a_child(ncid, argv[1]);
    if ((child = fork()) == 0) end_child(ncid, one_writer);
    wait_for_child(child);
    put(ncid, 1, NC_NOERR);
    DO(ncmpi_sync(ncid));
    if ((child = fork()) == 0) end_child(ncid, one_writer);
    put(ncid, 2, NC_NOERR);
    wait_for_child(child);
    put(ncid, 3, NC_NOERR);
    DO(ncmpi_redef(ncid));
    DO(ncmpi_put_att_text(ncid, NC_GLOBAL, "title", 5, "again"));
    abort_in_a_child(ncid, argv[1]);
    DO(ncmpi_enddef(ncid));
    DO(ncmpi_close(ncid));
    /* Nor the dataset that another one is to replace. */
    DO(ncmpi_create(MPI_COMM_WORLD, argv[1], NC_CLOBBER | NC_64BIT_DATA, MPI_INFO_NULL, &ncid));
    DO(ncmpi_def_dim(ncid, "t", NC_UNLIMITED, &dims[0]));
    DO(ncmpi_def_dim(ncid, "x", X, &dims[1]));
    DO(ncmpi_def_var(ncid, "v", NC_INT, 2, dims, &var));
    abort_in_a_child(ncid, argv[1]);
    DO(ncmpi_enddef(ncid));
    for (int record = 0; record < 4; record++) put(ncid, record, NC_NOERR);
    DO(ncmpi_close(ncid));
    DO(ncmpi_open(MPI_COMM_WORLD, argv[1], NC_NOWRITE, MPI_INFO_NULL, &ncid));
    DO(ncmpi_get_var_int_all(ncid, 0, all));
    for (int i = 0; i < 4 * X; i++)
        if (all[i] != i) failures++, printf("element %d is %d\n", i, all[i]), i += X;
    DO(ncmpi_close(ncid));
    MPI_Finalize();
    return failures > 0;
}
