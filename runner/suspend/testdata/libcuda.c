// A library with the functions of libcuda.so.1 that carma calls to suspend
// processes. A folder that STANDIN names has its state:
//
//	process.PID      "STATE UUID": a CUDA process and the GPU it is on
//	frozen.PID       the process is frozen: no call about it returns
//	fault.CALL.PID   what goes wrong in a call, of this process only, or
//	fault.CALL       of any: "KIND NUMBER [once]"
//	calls            a line "CALL PID" for each call that has begun
//
// Faults: "code N" fails with N; "late N" does it and fails with N; "half N" leaves
// the process failed; "hang", "crash", "latehang" and "latecrash" (after doing it);
// "delay MS" does it later; "busy": the process does not come to rest; "state N"
// answers with a state of that number; "meet N" waits until N calls are there.
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { RUNNING, LOCKED, CHECKPOINTED, FAILED, CHECKPOINTING, RESTORING };
enum { INVALID_VALUE = 1, NOT_INITIALIZED = 3, ILLEGAL_STATE = 401, NOT_READY = 600 };

struct lock_args { unsigned int timeout, reserved0; unsigned long long reserved1[7]; };
struct pair { unsigned char from[16], to[16]; };
struct restore_args { struct pair *pairs; unsigned int n; char reserved[52]; };
struct fault { char kind[16]; int number; };

static int initialized, met;

static const char *path(char *to, const char *kind, const char *call, int pid) {
    int n = snprintf(to, 512, "%s/%s", getenv("STANDIN"), kind);
    if (call)
        n += snprintf(to + n, 512 - n, ".%s", call);
    if (pid)
        snprintf(to + n, 512 - n, ".%d", pid);
    return to;
}

// planted reads a fault; one that is meant once goes to who removes its file.
static int planted(const char *call, int pid, struct fault *f) {
    char name[512], once[16] = "";
    FILE *file = fopen(path(name, "fault", call, pid), "r");
    if (!file)
        return pid ? planted(call, 0, f) : 0;
    int n = fscanf(file, "%15s %d %15s", f->kind, &f->number, once);
    fclose(file);
    return n >= 2 && (strcmp(once, "once") || unlink(name) == 0);
}

static void hang(void) {
    for (;;)
        pause();
}

// before plays what goes wrong before a call does anything. It returns an error
// code; *after is what is left to go wrong.
static int before(const char *call, int pid, struct fault *after) {
    char name[512], line[64];
    int log = open(path(name, "calls", NULL, 0), O_WRONLY | O_CREAT | O_APPEND, 0644);
    int n = snprintf(line, sizeof line, "%s %d\n", call, pid);
    if (log < 0 || write(log, line, n) != n)
        abort();
    close(log);
    memset(after, 0, sizeof *after);
    if (strcmp(call, "init") && !initialized)
        return NOT_INITIALIZED;
    if (pid && access(path(name, "frozen", NULL, pid), F_OK) == 0)
        hang();
    if (!planted(call, pid, after))
        return 0;
    if (!strcmp(after->kind, "code"))
        return after->number;
    if (!strcmp(after->kind, "hang"))
        hang();
    if (!strcmp(after->kind, "crash"))
        abort();
    if (!strcmp(after->kind, "delay"))
        usleep(after->number * 1000);
    if (!strcmp(after->kind, "meet"))
        for (__sync_add_and_fetch(&met, 1); __sync_add_and_fetch(&met, 0) < after->number;)
            usleep(1000);
    return 0;
}

static int later(const struct fault *f) {
    if (!strcmp(f->kind, "latehang"))
        hang();
    if (!strcmp(f->kind, "latecrash"))
        abort();
    return !strcmp(f->kind, "late") ? f->number : 0;
}

static int load(int pid, int *state, char *uuid) {
    char name[512];
    FILE *file = fopen(path(name, "process", NULL, pid), "r");
    if (!file)
        return INVALID_VALUE;
    int n = fscanf(file, "%d %63s", state, uuid);
    fclose(file);
    return n == 2 ? 0 : INVALID_VALUE;
}

static void store(int pid, int state, const char *uuid) {
    char name[512], new[512];
    FILE *file = fopen(path(new, "new", NULL, pid), "w");
    if (!file)
        abort();
    fprintf(file, "%d %s\n", state, uuid);
    fclose(file);
    if (rename(new, path(name, "process", NULL, pid)))
        abort();
}

static void text(char *to, const unsigned char *id) {
    to += sprintf(to, "GPU-");
    for (int i = 0; i < 16; i++)
        to += sprintf(to, i == 4 || i == 6 || i == 8 || i == 10 ? "-%02x" : "%02x", id[i]);
}

// move finds where a process goes: the pairs must name its GPU.
static int move(const struct restore_args *a, char *uuid) {
    char from[64], to[64];
    struct restore_args zero = *a;
    zero.pairs = NULL, zero.n = 0;
    for (size_t i = 0; i < sizeof zero; i++)
        if (((char *)&zero)[i])
            return INVALID_VALUE;
    for (unsigned int i = 0; i < a->n; i++) {
        text(from, a->pairs[i].from);
        text(to, a->pairs[i].to);
        if (!strcmp(from, uuid))
            return strcpy(uuid, to), 0;
    }
    return INVALID_VALUE;
}

// change does a call that brings a process from one state to another.
static int change(const char *call, int pid, int from, int to, const struct lock_args *lock, const struct restore_args *args) {
    struct fault f;
    char uuid[64];
    int state, code = before(call, pid, &f);
    if (code == 0)
        code = load(pid, &state, uuid);
    if (code)
        return code;
    if (state != from)
        return ILLEGAL_STATE;
    if (!strcmp(f.kind, "half"))
        return store(pid, FAILED, uuid), f.number;
    if (!strcmp(f.kind, "busy")) {
        if (lock->timeout == 0)
            hang();
        return usleep(lock->timeout * 1000), NOT_READY;
    }
    if (args && args->n && (code = move(args, uuid)))
        return code;
    store(pid, to, uuid);
    return later(&f);
}

int cuInit(unsigned int flags) {
    struct fault f;
    int code = before("init", 0, &f);
    if (!strcmp(f.kind, "print")) // the library may print what it likes
        puts("hello from the library"), fflush(stdout);
    initialized = code == 0 && flags == 0;
    return initialized ? 0 : code ? code : INVALID_VALUE;
}

// A GPU whose memory is the process's own. The file "spoil" changes a word of it.
int cuDeviceGet(int *device, int ordinal) { return *device = ordinal, initialized ? 0 : NOT_INITIALIZED; }
int cuDevicePrimaryCtxRetain(void **context, int device) { return *context = &met, device ? INVALID_VALUE : 0; }
int cuCtxSetCurrent(void *context) { return context == &met ? 0 : INVALID_VALUE; }
int cuMemAlloc_v2(unsigned long long *at, size_t bytes) { return *at = (unsigned long long)calloc(1, bytes), *at ? 0 : 2; }
int cuMemcpyHtoD_v2(unsigned long long at, const void *from, size_t bytes) { return memcpy((void *)at, from, bytes), 0; }
int cuMemcpyDtoH_v2(void *to, unsigned long long at, size_t bytes) {
    char name[512];
    if (access(path(name, "spoil", NULL, 0), F_OK) == 0)
        ((int *)at)[1000] ^= 1;
    return memcpy(to, (void *)at, bytes), 0;
}

int cuDriverGetVersion(int *version) { return *version = 13000, 0; }

#ifndef OLD
int cuCheckpointProcessGetState(int pid, int *state) {
    struct fault f;
    char uuid[64];
    int code = before("state", pid, &f);
    if (code == 0)
        code = load(pid, state, uuid);
    if (code == 0 && !strcmp(f.kind, "state"))
        *state = f.number;
    return code ? code : later(&f);
}

int cuCheckpointProcessLock(int pid, struct lock_args *a) {
    unsigned int wrong = !a || a->timeout == 0 || a->reserved0;
    for (int i = 0; i < 7; i++)
        wrong |= a && a->reserved1[i] != 0;
    return wrong ? INVALID_VALUE : change("lock", pid, RUNNING, LOCKED, a, NULL);
}

int cuCheckpointProcessCheckpoint(int pid, void *a) { return a ? INVALID_VALUE : change("checkpoint", pid, LOCKED, CHECKPOINTED, NULL, NULL); }
int cuCheckpointProcessRestore(int pid, struct restore_args *a) { return change("restore", pid, CHECKPOINTED, LOCKED, NULL, a); }
int cuCheckpointProcessUnlock(int pid, void *a) { return a ? INVALID_VALUE : change("unlock", pid, LOCKED, RUNNING, NULL, NULL); }
#endif
