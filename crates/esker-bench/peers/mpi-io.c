/* MPI-IO without a library above it: all ranks in one file, which has the data section of the classic netCDF file in the machine's
 * byte order, as `posix` has. A request is a collective call, at its place where every rank has one stretch of the file, else
 * through a view; requests of the ranks that a step has are matched one by one. */
#include "plan.h"

static MPI_File file;

/* A stretch of the file, from the beginning of a variable, and where it is in the request's memory. */
typedef struct { uint64_t at, memory, bytes; } Stretch;

/* Those of a list, in the order of the file; shared by all requests that cut an array of one shape by it. */
typedef struct Stretches {
    const List *list;
    const Var *var;
    uint64_t n, room;
    Stretch *stretch;
    /* What a view has of the file, and what goes there of memory. */
    MPI_Datatype in_file, in_memory;
    struct Stretches *before;
} Stretches;

/* What a request is in the file. */
typedef struct { uint64_t begin; Stretches *stretches; } Place;

/* MPI counts bytes by an int. */
static const uint64_t longest = UINT64_C(1) << 30;

static uint64_t *begins, record_bytes;

static void check(int status, const char *what)
{
    char why[MPI_MAX_ERROR_STRING] = "";
    int length;
    if (status == MPI_SUCCESS)
        return;
    MPI_Error_string(status, why, &length);
    end_job(what, why);
}

static uint64_t inner(const Plan *plan, const Var *v)
{
    uint64_t product = 1;
    for (int d = 0; d < v->dims; d++)
        product *= plan->dim[v->dim[d]].length ? plan->dim[v->dim[d]].length : 1;
    return product;
}

static int has_records(const Plan *plan, const Var *v) { return v->dims && !plan->dim[v->dim[0]].length; }

static void place_variables(const Plan *plan)
{
    uint64_t fixed = 0;
    begins = allocate((size_t)plan->vars * sizeof *begins);
    record_bytes = 0;
    for (int records = 0; records < 2; records++)
        for (int i = 0; i < plan->vars; i++) {
            const Var *v = &plan->var[i];
            if (has_records(plan, v) != records)
                continue;
            begins[i] = fixed + record_bytes;
            *(records ? &record_bytes : &fixed) += inner(plan, v) * size_of(v->type);
        }
}

static int same_shape(const Var *a, const Var *b)
{
    return a->dims == b->dims && size_of(a->type) == size_of(b->type) && !memcmp(a->dim, b->dim, (size_t)a->dims * sizeof *a->dim);
}

static void add(Stretches *s, uint64_t at, uint64_t memory, uint64_t bytes)
{
    Stretch *last = s->n ? &s->stretch[s->n - 1] : NULL;
    if (last && last->at + last->bytes == at && last->memory + last->bytes == memory && last->bytes + bytes <= longest) {
        last->bytes += bytes;
        return;
    }
    if (s->n == s->room) {
        s->room = 2 * s->room + 8;
        s->stretch = realloc(s->stretch, s->room * sizeof *s->stretch);
        if (!s->stretch)
            fail("out of memory");
    }
    s->stretch[s->n++] = (Stretch){at, memory, bytes};
}

static int by_place(const void *a, const void *b)
{
    uint64_t x = ((const Stretch *)a)->at, y = ((const Stretch *)b)->at;
    return (x > y) - (x < y);
}

static MPI_Datatype type_of(const Stretches *s, int in_file)
{
    MPI_Datatype type;
    MPI_Aint *at = allocate(s->n * sizeof *at);
    int *length = allocate(s->n * sizeof *length);
    for (uint64_t i = 0; i < s->n; i++) {
        at[i] = (MPI_Aint)(in_file ? s->stretch[i].at : s->stretch[i].memory);
        length[i] = (int)s->stretch[i].bytes;
    }
    check(MPI_Type_create_hindexed((int)s->n, length, at, MPI_BYTE, &type), "hindexed");
    check(MPI_Type_commit(&type), "commit");
    free(at);
    free(length);
    return type;
}

static Stretches *stretches_of(const Plan *plan, const Var *v, const List *l, Stretches **known)
{
    for (Stretches *s = *known; s; s = s->before)
        if (s->list == l && same_shape(s->var, v))
            return s;
    Stretches *s = allocate(sizeof *s);
    uint64_t size = size_of(v->type), whole = inner(plan, v), memory = 0, index[64];
    int extra = v->dims - l->dims, split = has_records(plan, v);
    s->list = l;
    s->var = v;
    s->before = *known;
    *known = s;
    for (uint64_t i = 0; i < l->slabs; i++) {
        const uint64_t *start = l->starts + i * (uint64_t)l->dims, *count = l->counts + i * (uint64_t)l->dims;
        uint64_t length = l->dims ? count[l->dims - 1] : 1, rows = 1;
        for (int d = 0; d + 1 < l->dims; d++) {
            rows *= count[d];
            index[d] = 0;
        }
        for (uint64_t row = 0; length && row < rows; row++) {
            uint64_t linear = 0, left = length;
            for (int d = 0; d < l->dims; d++)
                linear = linear * plan->dim[v->dim[d + extra]].length + start[d] + (d + 1 < l->dims ? index[d] : 0);
            while (left) {
                /* A row of a variable with no other dimension goes through records. */
                uint64_t inside = split ? linear % whole : linear, piece = left;
                if (split && piece > whole - inside)
                    piece = whole - inside;
                if (piece > longest / size)
                    piece = longest / size;
                add(s, (split ? linear / whole * record_bytes : 0) + inside * size, memory, piece * size);
                memory += piece * size;
                linear += piece;
                left -= piece;
            }
            for (int d = l->dims - 2; d >= 0 && ++index[d] == count[d]; d--)
                index[d] = 0;
        }
    }
    /* A view has its stretches in the order of the file. */
    qsort(s->stretch, s->n, sizeof *s->stretch, by_place);
    s->in_file = type_of(s, 1);
    s->in_memory = type_of(s, 0);
    return s;
}

/* Calls that all ranks make in a step, and whether in one of them somebody has several stretches. */
static int *rounds, *scattered;

static void prepare(Plan *plan)
{
    Stretches *known = NULL;
    place_variables(plan);
    rounds = allocate((size_t)plan->steps * sizeof *rounds);
    scattered = allocate((size_t)plan->steps * sizeof *scattered);
    EACH_REQUEST(plan, r)
    {
        Place *place = allocate(sizeof *place);
        place->begin = begins[r->var->id] + (r->record == no_record ? 0 : r->record * record_bytes);
        place->stretches = stretches_of(plan, r->var, r->list, &known);
        r->prepared = place;
    }
    for (int i = 0; i < plan->steps; i++) {
        rounds[i] = plan->step[i].requests;
        for (int k = 0; k < plan->step[i].requests; k++)
            scattered[i] |= ((Place *)plan->step[i].request[k].prepared)->stretches->n > 1;
    }
    MPI_Allreduce(MPI_IN_PLACE, rounds, plan->steps, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
    MPI_Allreduce(MPI_IN_PLACE, scattered, plan->steps, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
}

static void independent(const Request *r, int writing)
{
    const Place *place = r->prepared;
    for (uint64_t i = 0; i < place->stretches->n; i++) {
        const Stretch *one = &place->stretches->stretch[i];
        MPI_Offset at = (MPI_Offset)(place->begin + one->at);
        char *m = r->memory + one->memory;
        check(writing ? MPI_File_write_at(file, at, m, (int)one->bytes, MPI_BYTE, MPI_STATUS_IGNORE)
                      : MPI_File_read_at(file, at, m, (int)one->bytes, MPI_BYTE, MPI_STATUS_IGNORE),
              r->var->name);
    }
}

/* `r` is NULL on a rank that has nothing to say in this round. */
static void collective(const Request *r, int writing, int by_view)
{
    const Place *place = r ? r->prepared : NULL;
    const Stretches *s = place && place->stretches->n ? place->stretches : NULL;
    void *m = r ? r->memory : NULL;
    const char *what = r ? r->var->name : "nothing";
    if (by_view) {
        MPI_Offset begin = s ? (MPI_Offset)place->begin : 0;
        MPI_Datatype type = s ? s->in_memory : MPI_BYTE;
        check(MPI_File_set_view(file, begin, MPI_BYTE, s ? s->in_file : MPI_BYTE, "native", MPI_INFO_NULL), what);
        check(writing ? MPI_File_write_all(file, m, s != NULL, type, MPI_STATUS_IGNORE)
                      : MPI_File_read_all(file, m, s != NULL, type, MPI_STATUS_IGNORE),
              what);
        return;
    }
    MPI_Offset at = s ? (MPI_Offset)(place->begin + s->stretch[0].at) : 0;
    int bytes = s ? (int)s->stretch[0].bytes : 0;
    check(writing ? MPI_File_write_at_all(file, at, m, bytes, MPI_BYTE, MPI_STATUS_IGNORE)
                  : MPI_File_read_at_all(file, at, m, bytes, MPI_BYTE, MPI_STATUS_IGNORE),
          what);
}

static void transfer(const Plan *plan, int writing)
{
    int viewed = 0;
    for (int i = 0; i < plan->steps; i++) {
        const Step *step = &plan->step[i];
        int by_view = step->calls != INDEPENDENT && scattered[i];
        if (viewed && !by_view)
            check(MPI_File_set_view(file, 0, MPI_BYTE, MPI_BYTE, "native", MPI_INFO_NULL), "view");
        viewed = by_view;
        for (int k = 0; k < (step->calls == INDEPENDENT ? step->requests : rounds[i]); k++) {
            const Request *r = k < step->requests ? &step->request[k] : NULL;
            if (step->calls == INDEPENDENT)
                independent(r, writing);
            else
                collective(r, writing, by_view);
        }
        if (writing && syncs_steps)
            check(MPI_File_sync(file), "sync");
    }
}

static void open_as(const char *path, int mode)
{
    check(MPI_File_open(MPI_COMM_WORLD, path, mode, MPI_INFO_NULL, &file), path);
}

static void create_file(const char *path) { open_as(path, MPI_MODE_CREATE | MPI_MODE_WRONLY); }
static void open_file(const char *path) { open_as(path, MPI_MODE_RDONLY); }
static void define(const Plan *plan) { (void)plan; }
static void write_plan(const Plan *plan) { transfer(plan, 1); }
static void read_back(const Plan *plan) { transfer(plan, 0); }
static void sync_file(void) { check(MPI_File_sync(file), "sync"); }
static void close_file(void) { check(MPI_File_close(&file), "close"); }
static const char *library(void) { return "MPI-IO"; }

int main(int argc, char **argv)
{
    const Peer peer = {library,   prepare,    create_file, define,    write_plan,
                       sync_file, close_file, open_file,   read_back, 0};
    return carry_out(argc, argv, &peer);
}
