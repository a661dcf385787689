/* The errors of NC_COUNT_IGNORE and of other negative counts, in every kind of flexible call, and
 * what it means for each predefined datatype. On any number of ranks; prints what went wrong and
 * returns 0 if nothing did. */
#include <stdio.h>
#include <string.h>
#include <pnetcdf.h>

enum { LENGTH = 6 };

static int rank, ranks, ncid, number, failures;
static MPI_Offset start[1], count[1] = {LENGTH}, stride[1] = {1}, map[1] = {1};
static MPI_Offset *starts[1] = {start}, *counts[1] = {count};
static MPI_Offset *strides[1] = {stride}, *maps[1] = {map};

static void is(int err, int wanted, const char *call) {
    if (err != wanted) {
        printf("rank %d: %s: %s, not %s\n", rank, call, ncmpi_strerrno(err), ncmpi_strerrno(wanted));
        failures++;
    }
}
#define IS(call, wanted) is(call, wanted, #call)
#define DO(call) is(call, NC_NOERR, #call)

/* Every collective call with this buffer must give this error on this rank, and others go on. */
static void together(MPI_Offset n, MPI_Datatype type, int err) {
    int buf[LENGTH * 64] = {0}, *bufs[1] = {buf}, v = number;
#define EACH(DIRECTION)                                                                     \
    IS(ncmpi_##DIRECTION##_var_all(ncid, v, buf, n, type), err);                            \
    IS(ncmpi_##DIRECTION##_var1_all(ncid, v, start, buf, n, type), err);                    \
    IS(ncmpi_##DIRECTION##_vara_all(ncid, v, start, count, buf, n, type), err);             \
    IS(ncmpi_##DIRECTION##_vars_all(ncid, v, start, count, stride, buf, n, type), err);     \
    IS(ncmpi_##DIRECTION##_varm_all(ncid, v, start, count, stride, map, buf, n, type), err); \
    IS(ncmpi_##DIRECTION##_varn_all(ncid, v, 1, starts, counts, buf, n, type), err);        \
    IS(ncmpi_m##DIRECTION##_var_all(ncid, 1, &v, (void **)bufs, &n, &type), err);           \
    IS(ncmpi_m##DIRECTION##_vara_all(ncid, 1, &v, starts, counts, (void **)bufs, &n, &type), err); \
    IS(ncmpi_m##DIRECTION##_varm_all(ncid, 1, &v, starts, counts, strides, maps, (void **)bufs, &n, &type), err);
    EACH(put)
    EACH(get)
#undef EACH
}

/* The same alone, and posted: nothing is queued. */
static void alone(MPI_Offset n, MPI_Datatype type, int err) {
    int buf[LENGTH * 64] = {0}, *bufs[1] = {buf}, v = number, r, queued;
#define EACH(DIRECTION)                                                                     \
    IS(ncmpi_##DIRECTION##_var(ncid, v, buf, n, type), err);                                \
    IS(ncmpi_##DIRECTION##_vara(ncid, v, start, count, buf, n, type), err);                 \
    IS(ncmpi_##DIRECTION##_varn(ncid, v, 1, starts, counts, buf, n, type), err);            \
    IS(ncmpi_m##DIRECTION##_vars(ncid, 1, &v, starts, counts, strides, (void **)bufs, &n, &type), err);
    EACH(put)
    EACH(get)
#undef EACH
#define EACH(CALL)                                                                          \
    IS(ncmpi_##CALL##_var(ncid, v, buf, n, type, &r), err);                                 \
    IS(ncmpi_##CALL##_var1(ncid, v, start, buf, n, type, &r), err);                         \
    IS(ncmpi_##CALL##_vara(ncid, v, start, count, buf, n, type, &r), err);                  \
    IS(ncmpi_##CALL##_vars(ncid, v, start, count, stride, buf, n, type, &r), err);          \
    IS(ncmpi_##CALL##_varm(ncid, v, start, count, stride, map, buf, n, type, &r), err);     \
    IS(ncmpi_##CALL##_varn(ncid, v, 1, starts, counts, buf, n, type, &r), err);
    EACH(iput)
    EACH(iget)
    EACH(bput)
#undef EACH
    DO(ncmpi_inq_nreqs(ncid, &queued));
    is(queued, 0, "requests that are queued");
}

/* Values of a type of C through its datatype, and by the function of that type. */
#define KIND(NAME, C, TYPE)                                                                 \
    do {                                                                                    \
        C out[LENGTH], in[LENGTH] = {0};                                                    \
        for (int k = 0; k < LENGTH; k++) out[k] = (C)(k + 1 + 10 * rank);                   \
        DO(ncmpi_put_vara_all(ncid, number, start, count, out, NC_COUNT_IGNORE, TYPE));     \
        DO(ncmpi_get_vara_##NAME##_all(ncid, number, start, count, in));                    \
        is(memcmp(out, in, sizeof in), 0, #TYPE " is put");                                 \
        memset(in, 0, sizeof in);                                                           \
        DO(ncmpi_get_vara_all(ncid, number, start, count, in, NC_COUNT_IGNORE, TYPE));      \
        is(memcmp(out, in, sizeof in), 0, #TYPE " is got");                                 \
    } while (0)

int main(int argc, char **argv) {
    int dim, letters;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    start[0] = LENGTH * rank;
    DO(ncmpi_create(MPI_COMM_WORLD, "count_ignore.nc", NC_CLOBBER | NC_64BIT_DATA, MPI_INFO_NULL, &ncid));
    DO(ncmpi_def_dim(ncid, "x", LENGTH * ranks, &dim));
    DO(ncmpi_def_var(ncid, "numbers", NC_DOUBLE, 1, &dim, &number));
    DO(ncmpi_def_var(ncid, "letters", NC_CHAR, 1, &dim, &letters));
    DO(ncmpi_enddef(ncid));
    DO(ncmpi_buffer_attach(ncid, 4096));

    MPI_Datatype pair;
    MPI_Type_contiguous(2, MPI_INT, &pair);
    MPI_Type_commit(&pair);
    together(NC_COUNT_IGNORE, pair, NC_EINVAL);
    together(-2, MPI_INT, NC_EIOMISMATCH);
    together(-1000000000000, MPI_DOUBLE, NC_EIOMISMATCH);
    /* A rank that is wrong does not keep the others. */
    int one = rank == 0, buf[LENGTH] = {1, 2, 3, 4, 5, 6};
    IS(ncmpi_put_vara_all(ncid, number, start, count, buf, NC_COUNT_IGNORE, one ? pair : MPI_INT),
       one ? NC_EINVAL : NC_NOERR);
    DO(ncmpi_begin_indep_data(ncid));
    alone(NC_COUNT_IGNORE, pair, NC_EINVAL);
    alone(-2, MPI_INT, NC_EIOMISMATCH);
    DO(ncmpi_end_indep_data(ncid));
    MPI_Type_free(&pair);

    KIND(schar, signed char, MPI_SIGNED_CHAR);
    KIND(uchar, unsigned char, MPI_UNSIGNED_CHAR);
    KIND(short, short, MPI_SHORT);
    KIND(ushort, unsigned short, MPI_UNSIGNED_SHORT);
    KIND(int, int, MPI_INT);
    KIND(uint, unsigned int, MPI_UNSIGNED);
    KIND(long, long, MPI_LONG);
    KIND(float, float, MPI_FLOAT);
    KIND(double, double, MPI_DOUBLE);
    KIND(longlong, long long, MPI_LONG_LONG_INT);
    KIND(ulonglong, unsigned long long, MPI_UNSIGNED_LONG_LONG);
    char text[LENGTH + 1] = "abcdef", back[LENGTH + 1] = "";
    DO(ncmpi_put_vara_all(ncid, letters, start, count, text, NC_COUNT_IGNORE, MPI_CHAR));
    DO(ncmpi_get_vara_text_all(ncid, letters, start, count, back));
    is(strcmp(text, back), 0, "MPI_CHAR is put");
    /* The rules of conversion are those of the typed functions. */
    IS(ncmpi_put_vara_all(ncid, number, start, count, text, NC_COUNT_IGNORE, MPI_CHAR), NC_ECHAR);
    /* Without a datatype the count is not looked at. */
    double dense[LENGTH] = {0};
    DO(ncmpi_get_vara_all(ncid, number, start, count, dense, -5, MPI_DATATYPE_NULL));
    is((int)dense[1], 2 + 10 * rank, "a value that is read without a datatype");

    DO(ncmpi_buffer_detach(ncid));
    DO(ncmpi_close(ncid));
    MPI_Allreduce(MPI_IN_PLACE, &failures, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    MPI_Finalize();
    return failures > 0;
}
