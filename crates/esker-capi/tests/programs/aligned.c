/* Where the data begin, by PnetCDF's rules since 1.13: hints first, then the arguments of
 * ncmpi__enddef, then 512; every redefinition anew. Checks header size and extent and each variable's
 * offset against a model, and the data after each move. Arguments: what the environment's hint
 * nc_var_align_size is (0: none). Returns 0 if all is as it should be. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <pnetcdf.h>

enum { LENGTH = 5, RECORDS = 3, MOST = 6 };
typedef MPI_Offset N;

static int rank, ranks, failures, scenario;
static N environment;

static void is(N is, N should, const char *what, int line) {
    if (is != should) {
        if (failures++ < 20)
            printf("rank %d, line %d, scenario %d: %s is %lld, not %lld\n", rank, line, scenario, what,
                   (long long)is, (long long)should);
    }
}
#define IS(what, value) is((what), (value), #what, __LINE__)
#define DO(call) is((call), NC_NOERR, #call, __LINE__)

/* What is known of a file by the rules: its variables in order, and where they begin. */
typedef struct {
    int vars, record[MOST];
    N begin[MOST], extent, section;
} Model;

static N up(N value, N unit) { return (value + unit - 1) / unit * unit; }
static N first(N a, N b, N c) { return up(a > 0 ? a : b > 0 ? b : c, 4); }
static N larger(N a, N b) { return a > b ? a : b; }

static void place(Model *m, N size, N v_hint, N r_hint, N h_minfree, N v_align, N v_minfree, N r_align) {
    int fixed = 0;
    Model old = *m;
    N row = up(LENGTH * 4, 4) * ranks;
    for (int i = 0; i < m->vars; i++) fixed += !m->record[i];
    if (m->vars == 0) {
        m->extent = m->section = larger(m->extent, size);
        return;
    }
    N end = larger(m->extent, size + h_minfree);
    if (fixed) end = up(end, first(v_hint, v_align, 512));
    m->extent = end;
    for (int i = 0; i < m->vars; i++)
        if (!m->record[i]) {
            m->begin[i] = larger(up(end, 4), old.begin[i]);
            end = m->begin[i] + row;
        }
    if (fixed) end += v_minfree;
    m->section = up(larger(up(end, 4), old.section), first(r_hint, r_align, fixed ? 4 : 512));
    if (!fixed) m->extent = m->section;
    end = m->section;
    for (int i = 0; i < m->vars; i++)
        if (m->record[i]) m->begin[i] = larger(end, old.begin[i]), end += row;
}

static void look(int ncid, const Model *m) {
    N n;
    DO(ncmpi_inq_header_extent(ncid, &n)), IS(n, m->extent);
    for (int i = 0; i < m->vars; i++) DO(ncmpi_inq_varoffset(ncid, i, &n)), IS(n, m->begin[i]);
}

static void move(int ncid, const Model *m, int put) {
    for (int i = 0; i < m->vars; i++)
        for (int r = 0; r < (m->record[i] ? RECORDS : 1); r++) {
            int buf[LENGTH];
            N start[2] = {r, LENGTH * rank}, count[2] = {1, LENGTH};
            N *s = start + !m->record[i], *c = count + !m->record[i];
            for (int k = 0; k < LENGTH; k++) buf[k] = 1000 * i + 100 * r + 10 * rank + k;
            if (put) {
                DO(ncmpi_put_vara_int_all(ncid, i, s, c, buf));
                continue;
            }
            memset(buf, 0, sizeof buf);
            DO(ncmpi_get_vara_int_all(ncid, i, s, c, buf));
            for (int k = 0; k < LENGTH; k++) IS(buf[k], 1000 * i + 100 * r + 10 * rank + k);
        }
}

static void define(int ncid, Model *m, const int *dims, int record) {
    char name[20];
    int id;
    sprintf(name, "v%d", m->vars);
    DO(ncmpi_def_var(ncid, name, NC_INT, record ? 2 : 1, record ? dims : dims + 1, &id));
    m->begin[m->vars] = 0;
    m->record[m->vars++] = record;
}

/* With `stays_open` the file is defined anew without having been closed. */
static void one(N var_hint, N header_hint, N record_hint, const N *args, const N *later, int kinds, int stays_open) {
    int ncid, dims[2];
    char text[1000], number[30];
    Model m = {0};
    N size, before, put;
    MPI_Info info;
    MPI_Info_create(&info);
    if (var_hint) sprintf(number, "%lld", (long long)var_hint), MPI_Info_set(info, "nc_var_align_size", number);
    if (header_hint) sprintf(number, "%lld", (long long)header_hint), MPI_Info_set(info, "nc_header_align_size", number);
    if (record_hint) sprintf(number, "%lld", (long long)record_hint), MPI_Info_set(info, "nc_record_align_size", number);
    N v = environment ? environment : var_hint ? var_hint : header_hint;
    DO(ncmpi_create(MPI_COMM_WORLD, "aligned.nc", NC_CLOBBER | NC_64BIT_DATA, info, &ncid));
    DO(ncmpi_def_dim(ncid, "t", NC_UNLIMITED, &dims[0]));
    DO(ncmpi_def_dim(ncid, "x", LENGTH * ranks, &dims[1]));
    if (kinds & 1) define(ncid, &m, dims, 0);
    if (kinds & 2) define(ncid, &m, dims, 1), define(ncid, &m, dims, 1);
    /* The size is known before, the extent is not. */
    DO(ncmpi_inq_header_size(ncid, &before));
    DO(ncmpi_inq_header_extent(ncid, &size)), IS(size, 0);
    if (args) DO(ncmpi__enddef(ncid, args[0], args[1], args[2], args[3]));
    else DO(ncmpi_enddef(ncid));
    DO(ncmpi_inq_header_size(ncid, &size)), IS(size, before);
    DO(ncmpi_inq_put_size(ncid, &put)), IS(put, rank == 0 ? size : 0);
    N none[4] = {0};
    const N *a = args ? args : none;
    place(&m, size, v, record_hint, a[0], a[1], a[2], a[3]);
    look(ncid, &m), move(ncid, &m, 1);
    if (!stays_open) {
        DO(ncmpi_close(ncid));
        DO(ncmpi_open(MPI_COMM_WORLD, "aligned.nc", NC_WRITE, info, &ncid));
        DO(ncmpi_inq_get_size(ncid, &put)), IS(put, rank == 0 ? size : 0);
        look(ncid, &m);
    }
    MPI_Info_free(&info);

    /* Again, with a longer header and more variables. */
    DO(ncmpi_redef(ncid));
    memset(text, 'a', sizeof text);
    DO(ncmpi_put_att_text(ncid, NC_GLOBAL, "text", sizeof text, text));
    /* The room that was kept for records that did not come is forgotten when the file is closed. */
    if (kinds == 1 && !stays_open) m.section = m.begin[0] + up(LENGTH * 4, 4) * ranks;
    define(ncid, &m, dims, kinds == 1);
    define(ncid, &m, dims, 0);
    DO(ncmpi_inq_header_size(ncid, &before));
    if (later) DO(ncmpi__enddef(ncid, later[0], later[1], later[2], later[3]));
    else DO(ncmpi_enddef(ncid));
    DO(ncmpi_inq_header_size(ncid, &size)), IS(size, before);
    a = later ? later : none;
    place(&m, size, v, record_hint, a[0], a[1], a[2], a[3]);
    look(ncid, &m);
    Model old = m;
    old.vars -= 2;
    move(ncid, &old, 0), move(ncid, &m, 1), move(ncid, &m, 0);
    DO(ncmpi_close(ncid));
}

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    environment = argc > 1 ? atoll(argv[1]) : 0;
    const N few[4] = {0, 300, 0, 100}, much[4] = {200, 0, 77, 0}, all[4] = {10, 1030, 4096, 2048};
    const N *arguments[4] = {NULL, few, much, all};
    const N hints[4][3] = {{0, 0, 0}, {1000, 64, 0}, {0, 30, 4000}, {4096, 0, 8192}};
    for (int kinds = 0; kinds < 4; kinds++)
        for (int h = 0; h < 4; h++)
            for (int i = 0; i < 4; i++)
                for (int open = 0; open < 2; open++) {
                    int j = (kinds + h + i) % 4;
                    scenario = 10000 * open + 1000 * kinds + 100 * h + 10 * i + j;
                    one(hints[h][0], hints[h][1], hints[h][2], arguments[i], arguments[j], kinds, open);
                }
    MPI_Allreduce(MPI_IN_PLACE, &failures, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    MPI_Finalize();
    return failures > 0;
}
