/* Transactions with numbers, on all ranks and on halves of them at once; one rank aborts for all; a number that is skipped; a reader that waits. */
#include <stdio.h>
#include <esker_pnetcdf.h>

static int failures, rank, ranks;

static void check(int code, int wanted, const char *what, int line) {
    if (code != wanted) failures++, printf("line %d: %s: %d, %s\n", line, what, code, ncmpi_strerror(code)), fflush(stdout);
}
#define IS(code, call) check((call), (code), #call, __LINE__)
#define DO(call) IS(NC_NOERR, call)
static void same(long long found, long long wanted, int line) {
    if (found != wanted) failures++, printf("line %d: %lld instead of %lld\n", line, found, wanted), fflush(stdout);
}
#define SAME(found, wanted) same((found), (wanted), __LINE__)

static int begin(MPI_Comm comm, const char *name, MPI_Offset number) {
    int ncid = -1;
    DO(ncmpi_begin_transaction(comm, name, MPI_INFO_NULL, number, 0, "of C", &ncid));
    return ncid;
}

static void put(int ncid, MPI_Offset at, int value) {
    MPI_Offset count = 1;
    DO(ncmpi_put_vara_int_all(ncid, 0, &at, &count, &value));
}

static void commit(int ncid, MPI_Offset wanted, int visible) {
    MPI_Offset number = -1;
    int seen = -1;
    DO(ncmpi_commit_transaction(ncid, &number, &seen));
    SAME(number, wanted);
    SAME(seen, visible);
    DO(ncmpi_close(ncid));
}

static void expect(const char *name, MPI_Offset version, int value) {
    int ncid, found;
    MPI_Offset number, at = rank;
    DO(ncmpi_open(MPI_COMM_WORLD, name, NC_NOWRITE, MPI_INFO_NULL, &ncid));
    DO(ncmpi_inq_container_version(ncid, &number));
    SAME(number, version);
    DO(ncmpi_get_var1_int_all(ncid, 0, &at, &found));
    SAME(found, value);
    DO(ncmpi_close(ncid));
}

int main(int argc, char **argv) {
    int ncid, dim, var, visible, code;
    const char *name = argv[argc - 1];
    MPI_Offset number;
    MPI_Comm half;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    DO(ncmpi_create(MPI_COMM_WORLD, name, NC_CLOBBER, MPI_INFO_NULL, &ncid));
    DO(ncmpi_def_dim(ncid, "x", ranks, &dim));
    DO(ncmpi_def_var(ncid, "v", NC_INT, 1, &dim, &var));
    DO(ncmpi_enddef(ncid));
    put(ncid, rank, 1);
    DO(ncmpi_sync(ncid));
    IS(NC_EINVAL, ncmpi_commit_transaction(ncid, &number, &visible));
    DO(ncmpi_close(ncid));
    expect(name, 2, 1);

    /* Number 5 of all ranks, and 3 and 4 of half of them each: all are open at once, and the last is committed first. */
    int upper = rank >= (ranks + 1) / 2;
    MPI_Comm_split(MPI_COMM_WORLD, upper, rank, &half);
    int all = begin(MPI_COMM_WORLD, name, 5), own = begin(half, name, 3 + upper);
    put(own, rank, 30 + upper);
    if (rank == 0) put(all, 0, 50); else { MPI_Offset zero = 0; DO(ncmpi_put_vara_int_all(all, 0, &zero, &zero, NULL)); }
    commit(all, 5, 0);
    MPI_Barrier(MPI_COMM_WORLD);
    if (ranks == 1) {
        /* There is no other half. */
        commit(own, 3, 1);
        DO(ncmpi_skip_number(name, 4, "no other half"));
        IS(NC_EFILE, ncmpi_skip_number(name, 3, NULL));
    } else {
        DO(ncmpi_commit_transaction(own, &number, NULL));
        SAME(number, 3 + upper);
        DO(ncmpi_close(own));
    }
    MPI_Barrier(MPI_COMM_WORLD);
    expect(name, 5, rank == 0 ? 50 : 30 + upper);

    /* One rank aborts, and nobody commits; what needs it is given up, too. */
    int needing = begin(MPI_COMM_WORLD, name, 7);
    DO(ncmpi_transaction_needs(needing, 6));
    put(needing, rank, 70);
    commit(needing, 7, 0);
    ncid = begin(MPI_COMM_WORLD, name, 6);
    put(ncid, rank, 60);
    if (rank == ranks - 1) {
        DO(ncmpi_abort(ncid));
    } else {
        code = ncmpi_commit_transaction(ncid, &number, &visible);
        if (code == NC_NOERR) failures++, puts("committed what a rank has aborted");
        DO(ncmpi_close(ncid));
    }
    MPI_Barrier(MPI_COMM_WORLD);
    expect(name, 5, rank == 0 ? 50 : 30 + upper);

    /* Definitions belong to it, and closing commits it, too. */
    ncid = begin(MPI_COMM_WORLD, name, 0);
    DO(ncmpi_redef(ncid));
    DO(ncmpi_put_att_text(ncid, NC_GLOBAL, "title", 3, "new"));
    DO(ncmpi_enddef(ncid));
    put(ncid, rank, 80);
    expect(name, 5, rank == 0 ? 50 : 30 + upper);
    DO(ncmpi_close(ncid));
    expect(name, 8, 80);

    /* A reader gets the first version behind 5 that is one; behind 8 there is none. */
    DO(ncmpi_open_next(MPI_COMM_WORLD, name, MPI_INFO_NULL, 5, -1, &ncid));
    DO(ncmpi_inq_container_version(ncid, &number));
    SAME(number, 8);
    DO(ncmpi_close(ncid));
    IS(NC_ENOENT, ncmpi_open_next(MPI_COMM_WORLD, name, MPI_INFO_NULL, 8, 0.01, &ncid));
    /* What was made for a version reads it. */
    DO(ncmpi_begin_transaction(MPI_COMM_WORLD, name, MPI_INFO_NULL, 0, 2, NULL, &ncid));
    MPI_Offset at = rank;
    DO(ncmpi_get_var1_int_all(ncid, 0, &at, &var));
    SAME(var, 1);
    DO(ncmpi_abort(ncid));
    IS(NC_EINVAL, ncmpi_begin_transaction(MPI_COMM_WORLD, name, MPI_INFO_NULL, -1, 0, NULL, &ncid));
    MPI_Comm_free(&half);
    MPI_Allreduce(MPI_IN_PLACE, &failures, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    MPI_Finalize();
    return failures > 0;
}
