// A task for a GPU without any framework: it takes memory by the driver's own functions,
// holds it, and prints lines as a training does. Out of memory, it says so in PyTorch's
// words and ends with 1.
//
//   hold --mib N [--step MIB] [--seconds S] [--grow MIB --after S] [--busy]
//
// N MiB are taken at once, or in steps; --grow takes more after a while. --busy keeps
// writing to it. The driver's library is loaded at run time, as CDI injects it.
#include <dlfcn.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

typedef unsigned long long address;
static int (*init)(unsigned), (*retain)(void **, int), (*current)(void *), (*memory)(size_t *, size_t *);
static int (*take)(address *, size_t), (*fill)(address, unsigned char, size_t), (*settle)(void);

static void *lib;
static void *find(const char *name) {
    void *f = dlsym(lib, name);
    if (!f) {
        fprintf(stderr, "RuntimeError: the driver's library has no %s\n", name);
        exit(3);
    }
    return f;
}

static void check(int code, const char *what) {
    if (code == 0)
        return;
    fprintf(stderr, "RuntimeError: %s: CUDA driver error %d\n", what, code);
    exit(3);
}

static const double mib = 1 << 20, gib = 1 << 30;
static double held; // bytes
static address blocks[4096];
static size_t sizes[4096], many;

static void allocate(size_t bytes) {
    if (many == sizeof blocks / sizeof *blocks)
        exit(4);
    int code = take(&blocks[many], bytes);
    if (code == 2) { // CUDA_ERROR_OUT_OF_MEMORY
        size_t left = 0, all = 0;
        memory(&left, &all);
        fprintf(stderr,
            "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate %.2f GiB. GPU 0 has a total capacity of %.2f GiB of which %.2f GiB is free. "
            "Of the allocated memory %.2f GiB is allocated by PyTorch, and 0 bytes is reserved by PyTorch but unallocated.\n",
            bytes / gib, all / gib, left / gib, held / gib);
        exit(1);
    }
    check(code, "cuMemAlloc");
    check(fill(blocks[many], 1, bytes), "cuMemsetD8");
    sizes[many++] = bytes;
    check(settle(), "cuCtxSynchronize");
    held += bytes;
}

// The first process of a container has no signal that ends it by itself.
static void stop(int signal) { _exit(128 + signal); }

int main(int argc, char **argv) {
    signal(SIGTERM, stop);
    size_t want = 0, step = 0, grow = 0;
    int seconds = 0, after = 0, busy = 0;
    for (int i = 1; i < argc; i++) {
        if (!strcmp(argv[i], "--busy")) {
            busy = 1;
            continue;
        }
        if (i + 1 == argc) {
            fprintf(stderr, "hold: %s needs a number\n", argv[i]);
            return 2;
        }
        long long n = atoll(argv[i + 1]);
        if (!strcmp(argv[i], "--mib")) want = (size_t)n << 20;
        else if (!strcmp(argv[i], "--step")) step = (size_t)n << 20;
        else if (!strcmp(argv[i], "--grow")) grow = (size_t)n << 20;
        else if (!strcmp(argv[i], "--seconds")) seconds = (int)n;
        else if (!strcmp(argv[i], "--after")) after = (int)n;
        else {
            fprintf(stderr, "hold: %s is not known\n", argv[i]);
            return 2;
        }
        i++;
    }
    setvbuf(stdout, NULL, _IOLBF, 0);
    if (!(lib = dlopen("libcuda.so.1", RTLD_NOW))) {
        fprintf(stderr, "RuntimeError: %s\n", dlerror());
        return 3;
    }
    init = find("cuInit"), retain = find("cuDevicePrimaryCtxRetain"), current = find("cuCtxSetCurrent"), memory = find("cuMemGetInfo_v2");
    take = find("cuMemAlloc_v2"), fill = find("cuMemsetD8_v2"), settle = find("cuCtxSynchronize");
    void *context;
    check(init(0), "cuInit");
    check(retain(&context, 0), "cuDevicePrimaryCtxRetain");
    check(current(context), "cuCtxSetCurrent");
    for (size_t had = 0; had < want;) {
        size_t part = step && step < want - had ? step : want - had;
        allocate(part);
        had += part;
    }
    for (int s = 0; s < seconds; s++) {
        if (grow && s == after)
            allocate(grow);
        size_t left = 0, all = 0;
        check(memory(&left, &all), "cuMemGetInfo");
        printf("step %d of %d: %.0f MiB held, %.0f of %.0f MiB free, process %d\n", s + 1, seconds, held / mib, left / mib, all / mib, (int)getpid());
        for (int n = 0; busy && many && n < 200; n++)
            check(fill(blocks[0], (unsigned char)n, sizes[0]), "cuMemsetD8");
        if (busy)
            check(settle(), "cuCtxSynchronize");
        sleep(1);
    }
    printf("done\n");
    return 0;
}
