/* MPICH over UCX polls without ever giving up its core, and with more ranks than cores a run takes
 * many times as long. Preloaded, this yields whenever there was nothing to do, which OpenMPI does by
 * itself (mpi_yield_when_idle). */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <sched.h>

unsigned ucp_worker_progress(void *worker)
{
    static unsigned (*progress)(void *);
    if (!progress)
        progress = (unsigned (*)(void *))dlsym(RTLD_NEXT, "ucp_worker_progress");
    if (!progress) {
        /* Who loads MPI late and for itself alone, as mpi4py does, has UCX where RTLD_NEXT does not look. */
        void *ucx = dlopen("libucp.so.0", RTLD_LAZY | RTLD_NOLOAD);
        if (ucx)
            progress = (unsigned (*)(void *))dlsym(ucx, "ucp_worker_progress");
    }
    if (!progress)
        return sched_yield(), 0;
    unsigned done = progress(worker);
    if (!done)
        sched_yield();
    return done;
}
