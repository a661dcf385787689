/* Parallel HDF5 as its programs write: a dataset for each variable, collective calls, a list of rows
 * as a union of hyperslabs. HDF5 1.10 has no H5Dwrite_multi, so variables come one after the other. */
#include <hdf5.h>

#include "chunked.h"

static hid_t file, *dataset, *extent;
static int datasets;
static Rounds rounds;

static hid_t check(hid_t id, const char *what)
{
    if (id < 0)
        fail(what);
    return id;
}

static hid_t type_of(const Var *v)
{
    return v->type == DOUBLE ? H5T_NATIVE_DOUBLE : v->type == FLOAT ? H5T_NATIVE_FLOAT : v->type == INT64 ? H5T_NATIVE_INT64 : v->type == USHORT ? H5T_NATIVE_UINT16 : H5T_NATIVE_INT;
}

/* One call if a union of the list's slabs has the order of memory: they are rows, one behind the
 * other. Else a call for each slab. */
static uint64_t calls_of(const Plan *plan, const Request *r)
{
    const List *l = r->list;
    uint64_t end = 0;
    int extra = r->var->dims - l->dims;
    for (uint64_t s = 0; l->slabs > 1 && s < l->slabs; s++) {
        uint64_t linear = 0;
        for (int d = 0; d < l->dims; d++) {
            uint64_t at = s * (uint64_t)l->dims + (uint64_t)d;
            if (d + 1 < l->dims && l->counts[at] != 1)
                return l->slabs;
            linear = linear * plan->dim[r->var->dim[d + extra]].length + l->starts[at];
        }
        if (linear < end)
            return l->slabs;
        end = linear + l->counts[(s + 1) * (uint64_t)l->dims - 1];
    }
    return 1;
}

static void prepare(Plan *plan) { rounds = rounds_of(plan, calls_of); }

static hid_t access_list(void)
{
    hid_t access = check(H5Pcreate(H5P_FILE_ACCESS), "property list");
    check(H5Pset_fapl_mpio(access, MPI_COMM_WORLD, MPI_INFO_NULL), "MPI-IO");
    check(H5Pset_libver_bounds(access, H5F_LIBVER_LATEST, H5F_LIBVER_LATEST), "format");
    /* One rank reads and writes metadata for all. */
    check(H5Pset_all_coll_metadata_ops(access, 1), "collective metadata");
    check(H5Pset_coll_metadata_write(access, 1), "collective metadata");
    return access;
}

static hid_t transfer_list(H5FD_mpio_xfer_t how)
{
    hid_t list = check(H5Pcreate(H5P_DATASET_XFER), "property list");
    check(H5Pset_dxpl_mpio(list, how), "transfer");
    return list;
}

static void create_file(const char *path)
{
    hid_t access = access_list();
    file = check(H5Fcreate(path, H5F_ACC_TRUNC, H5P_DEFAULT, access), "create");
    H5Pclose(access);
}

/* There are as many records as there will be: HDF5 is spared growing. */
static void define(const Plan *plan)
{
    Filters filters = filters_of(plan);
    datasets = plan->vars;
    dataset = allocate((size_t)plan->vars * sizeof *dataset);
    extent = allocate((size_t)plan->vars * sizeof *extent);
    for (int i = 0; i < plan->vars; i++) {
        const Var *v = &plan->var[i];
        hsize_t shape[64], chunk[64];
        for (int d = 0; d < v->dims; d++) {
            uint64_t length = plan->dim[v->dim[d]].length;
            shape[d] = length ? length : plan->records;
            chunk[d] = v->chunk ? v->chunk[d] : 0;
        }
        hid_t create = check(H5Pcreate(H5P_DATASET_CREATE), "property list");
        check(H5Pset_fill_time(create, H5D_FILL_TIME_NEVER), "fill time");
        if (v->chunk) {
            check(H5Pset_chunk(create, v->dims, chunk), v->name);
            if (filters.shuffle)
                check(H5Pset_shuffle(create), v->name);
            if (filters.level)
                check(H5Pset_deflate(create, (unsigned)filters.level), v->name);
        }
        extent[i] = check(v->dims ? H5Screate_simple(v->dims, shape, NULL) : H5Screate(H5S_SCALAR), v->name);
        dataset[i] = check(H5Dcreate2(file, v->name, type_of(v), extent[i], H5P_DEFAULT, create, H5P_DEFAULT), v->name);
        H5Pclose(create);
    }
}

/* What is selected in the file and in memory. Many variables of a step have the same list: the
 * selection is made once for those that stand together. */
static struct { const List *list; uint64_t record, first, slabs, elements; hid_t file, memory; } selected = {.file = -1};

static void select_slabs(const Var *v, const Request *r, uint64_t first, uint64_t slabs)
{
    const List *list = r ? r->list : NULL;
    uint64_t record = r ? r->record : no_record, elements = 0;
    if (selected.file >= 0) {
        if (slabs && selected.list == list && selected.record == record && selected.first == first &&
            selected.slabs == slabs && H5Sextent_equal(selected.file, extent[v->id]) > 0)
            return;
        H5Sclose(selected.file);
        H5Sclose(selected.memory);
    }
    hid_t space = check(H5Scopy(extent[v->id]), v->name);
    for (uint64_t s = first; s < first + slabs; s++) {
        hsize_t start[64], count[64];
        uint64_t more = slab_elements(list, s);
        SLAB_OF(r, s, start, count);
        if (more && v->dims)
            check(H5Sselect_hyperslab(space, elements ? H5S_SELECT_OR : H5S_SELECT_SET, start, NULL, count, NULL), v->name);
        elements += more;
    }
    hsize_t length = elements ? elements : 1;
    hid_t memory = check(H5Screate_simple(1, &length, NULL), v->name);
    if (!elements) {
        check(H5Sselect_none(space), v->name);
        check(H5Sselect_none(memory), v->name);
    }
    selected.list = list;
    selected.record = record;
    selected.first = first;
    selected.slabs = slabs;
    selected.elements = elements;
    selected.file = space;
    selected.memory = memory;
}

/* One call: `slabs` slabs of a request from the one numbered `first`. Returns how many elements. */
static uint64_t call(const Var *v, const Request *r, uint64_t first, uint64_t slabs, char *at, hid_t how, int writing)
{
    select_slabs(v, r, first, slabs);
    herr_t status = writing ? H5Dwrite(dataset[v->id], type_of(v), selected.memory, selected.file, how, at)
                            : H5Dread(dataset[v->id], type_of(v), selected.memory, selected.file, how, at);
    check(status, v->name);
    return selected.elements;
}

static void transfer(const Plan *plan, int writing)
{
    hid_t collective = transfer_list(H5FD_MPIO_COLLECTIVE), independent = transfer_list(H5FD_MPIO_INDEPENDENT);
    for (int i = 0; i < rounds.rounds; i++) {
        const Round *round = &rounds.round[i];
        int together = is_collective(plan, round, writing);
        char nothing[8] = "", *at = round->mine ? round->mine->memory : nothing;
        for (uint64_t k = 0; k < (together ? round->most : round->calls); k++) {
            uint64_t slabs = k >= round->calls ? 0 : round->calls == 1 ? round->mine->list->slabs : 1;
            at += size_of(round->var->type) *
                  call(round->var, round->mine, k, slabs, at, together ? collective : independent, writing);
        }
    }
    H5Pclose(collective);
    H5Pclose(independent);
}

static void write_plan(const Plan *plan) { transfer(plan, 1); }

static void sync_file(void) { check(H5Fflush(file, H5F_SCOPE_GLOBAL), "flush"); }

static void close_file(void)
{
    for (int i = 0; i < datasets; i++) {
        check(H5Dclose(dataset[i]), "close a dataset");
        check(H5Sclose(extent[i]), "close an extent");
    }
    check(H5Fclose(file), "close");
}

static void open_file(const char *path)
{
    hid_t access = access_list();
    file = check(H5Fopen(path, H5F_ACC_RDONLY, access), "open");
    H5Pclose(access);
}

/* Opening the datasets is part of reading, since that is when programs do it. */
static void read_back(const Plan *plan)
{
    for (int i = 0; i < plan->vars; i++) {
        dataset[i] = check(H5Dopen2(file, plan->var[i].name, H5P_DEFAULT), plan->var[i].name);
        extent[i] = check(H5Dget_space(dataset[i]), plan->var[i].name);
    }
    transfer(plan, 0);
}

static const char *library(void)
{
    static char name[80];
    unsigned major, minor, release;
    H5get_libversion(&major, &minor, &release);
    snprintf(name, sizeof name, "HDF5 %u.%u.%u", major, minor, release);
    return name;
}

int main(int argc, char **argv)
{
    const Peer peer = {library,   prepare,    create_file, define,    write_plan,
                       sync_file, close_file, open_file,   read_back, 0};
    return carry_out(argc, argv, &peer);
}
