// A library with the functions of libnvidia-ml.so.1 that carma calls, for one
// card. Without -DNEW it is as a driver of 2021 has it: the functions that came
// later are not there, and calling one ends the program.
#ifndef VERSION
#define VERSION "1.2.3" // of the driver
#endif
#ifndef UUID
#define UUID "GPU-thin" // of the card
#define NAME "NVIDIA Thin"
#define TOTAL (16 * GIB)
#endif
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#define NVML_NO_UNVERSIONED_FUNC_DEFS 1
#include "nvml.h"

//
// With -DNEW, a file that THIN_GPU names says what the card shows: lines of
// "process PID MIB", "xid NUMBER" and "lost". While it says "hang", calls that
// look at it do not return.

#define GIB (1ull << 30)

static int calls; // of GPM

// hangs looks whether the card does not answer.
static int hangs(const char *path) {
    char line[256];
    int yes = 0;
    FILE *f = fopen(path, "r");
    while (f && fgets(line, sizeof line, f))
        yes |= strncmp(line, "hang", 4) == 0;
    if (f)
        fclose(f);
    return yes;
}

// shown reads the file, at most n processes of it. It returns -1 without one.
static int shown(nvmlProcessInfo_t *p, int n, unsigned long long *xid, int *lost) {
    char line[256];
    int found = 0;
    const char *path = getenv("THIN_GPU");
    while (path && hangs(path))
        usleep(50000);
    FILE *f = path ? fopen(path, "r") : NULL;
    if (xid)
        *xid = 0;
    if (lost)
        *lost = 0;
    if (!f)
        return -1;
    while (fgets(line, sizeof line, f)) {
        unsigned int pid;
        unsigned long long number;
        if (sscanf(line, "process %u %llu", &pid, &number) == 2) {
            if (found < n)
                p[found].pid = pid, p[found].usedGpuMemory = number << 20, p[found].gpuInstanceId = p[found].computeInstanceId = ~0u;
            found++;
        } else if (xid && sscanf(line, "xid %llu", &number) == 1) {
            *xid = number;
        } else if (lost && strncmp(line, "lost", 4) == 0) {
            *lost = 1;
        }
    }
    fclose(f);
    return found;
}

nvmlReturn_t nvmlInit_v2(void) { return NVML_SUCCESS; }
nvmlReturn_t nvmlShutdown(void) { return NVML_SUCCESS; }
const char *nvmlErrorString(nvmlReturn_t r) { return r == NVML_ERROR_NOT_SUPPORTED ? "Not Supported" : "Unknown Error"; }

nvmlReturn_t nvmlSystemGetDriverVersion(char *version, unsigned int length) {
    strncpy(version, VERSION, length);
    return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetCount_v2(unsigned int *n) { *n = 1; return NVML_SUCCESS; }
nvmlReturn_t nvmlDeviceGetHandleByIndex_v2(unsigned int i, nvmlDevice_t *d) { d->handle = (void *)&calls; return NVML_SUCCESS; }
nvmlReturn_t nvmlDeviceGetHandleByUUID(const char *u, nvmlDevice_t *d) { d->handle = (void *)&calls; return NVML_SUCCESS; }
nvmlReturn_t nvmlDeviceGetUUID(nvmlDevice_t d, char *uuid, unsigned int n) { strncpy(uuid, UUID, n); return NVML_SUCCESS; }
nvmlReturn_t nvmlDeviceGetName(nvmlDevice_t d, char *name, unsigned int n) { strncpy(name, NAME, n); return NVML_SUCCESS; }
nvmlReturn_t nvmlDeviceGetPowerUsage(nvmlDevice_t d, unsigned int *mw) { *mw = 123000; return NVML_SUCCESS; }
nvmlReturn_t nvmlDeviceGetTemperature(nvmlDevice_t d, nvmlTemperatureSensors_t s, unsigned int *t) { *t = 55; return NVML_SUCCESS; }
nvmlReturn_t nvmlDeviceGetTotalEnergyConsumption(nvmlDevice_t d, unsigned long long *mj) { *mj = 1000; return NVML_SUCCESS; }
nvmlReturn_t nvmlDeviceGetRetiredPagesPendingStatus(nvmlDevice_t d, nvmlEnableState_t *s) { return NVML_ERROR_NOT_SUPPORTED; }

nvmlReturn_t nvmlDeviceGetTotalEccErrors(nvmlDevice_t d, nvmlMemoryErrorType_t e, nvmlEccCounterType_t c, unsigned long long *n) {
    *n = 4;
    return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetUtilizationRates(nvmlDevice_t d, nvmlUtilization_t *u) {
    u->gpu = 80, u->memory = 20;
    return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetMemoryInfo(nvmlDevice_t d, nvmlMemory_t *m) {
    m->total = TOTAL, m->used = 3 * GIB, m->free = TOTAL - 3 * GIB;
    return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetComputeRunningProcesses(nvmlDevice_t d, unsigned int *n, nvmlProcessInfo_v1_t *p) {
    if (*n < 2) {
        *n = 2;
        return NVML_ERROR_INSUFFICIENT_SIZE;
    }
    *n = 2;
    p[0].pid = 11, p[0].usedGpuMemory = GIB;
    p[1].pid = 12, p[1].usedGpuMemory = (unsigned long long)NVML_VALUE_NOT_AVAILABLE;
    return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetGraphicsRunningProcesses(nvmlDevice_t d, unsigned int *n, nvmlProcessInfo_v1_t *p) {
    *n = 0;
    return NVML_SUCCESS;
}

static int told; // the last Xid
nvmlReturn_t nvmlEventSetCreate(nvmlEventSet_t *s) { s->handle = (void *)&told; return NVML_SUCCESS; }
nvmlReturn_t nvmlEventSetFree(nvmlEventSet_t s) { return NVML_SUCCESS; }
nvmlReturn_t nvmlDeviceRegisterEvents(nvmlDevice_t d, unsigned long long types, nvmlEventSet_t s) { return NVML_SUCCESS; }
nvmlReturn_t nvmlDeviceGetSupportedEventTypes(nvmlDevice_t d, unsigned long long *types) {
    *types = nvmlEventTypeXidCriticalError;
    return NVML_SUCCESS;
}

nvmlReturn_t nvmlEventSetWait(nvmlEventSet_t s, nvmlEventData_t *e, unsigned int ms) {
    unsigned long long xid;
    if (shown(NULL, 0, &xid, NULL) < 0)
        xid = 94;
    if (told == (int)xid)
        return NVML_ERROR_TIMEOUT;
    told = (int)xid;
    if (!xid)
        return NVML_ERROR_TIMEOUT;
    memset(e, 0, sizeof *e);
    e->device.handle = (void *)&calls, e->eventType = nvmlEventTypeXidCriticalError, e->eventData = xid;
    return NVML_SUCCESS;
}

#ifdef NEW

nvmlReturn_t nvmlEventSetWait_v2(nvmlEventSet_t s, nvmlEventData_t *e, unsigned int ms) { return nvmlEventSetWait(s, e, ms); }
nvmlReturn_t nvmlDeviceGetMigMode(nvmlDevice_t d, unsigned int *now, unsigned int *then) { return NVML_ERROR_NOT_SUPPORTED; }
nvmlReturn_t nvmlDeviceGetRemappedRows(nvmlDevice_t d, unsigned int *c, unsigned int *u, unsigned int *pending, unsigned int *failed) {
    *c = *u = *failed = 0, *pending = 1;
    return NVML_SUCCESS;
}
nvmlReturn_t nvmlDeviceGetCurrentClocksEventReasons(nvmlDevice_t d, unsigned long long *r) { *r = 0; return NVML_SUCCESS; }

nvmlReturn_t nvmlDeviceGetMemoryInfo_v2(nvmlDevice_t d, nvmlMemory_v2_t *m) {
    if (m->version != nvmlMemory_v2)
        return NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
    nvmlProcessInfo_t p[16];
    int lost, n = shown(p, 16, NULL, &lost);
    if (lost)
        return NVML_ERROR_GPU_IS_LOST;
    m->total = TOTAL, m->reserved = GIB, m->used = n < 0 ? 2 * GIB : 0;
    for (int i = 0; i < n; i++)
        m->used += p[i].usedGpuMemory;
    m->free = m->total - m->reserved - m->used;
    return NVML_SUCCESS;
}

static nvmlReturn_t one(unsigned int *n, nvmlProcessInfo_t *p, unsigned int pid) {
    if (*n < 1)
        return NVML_ERROR_INSUFFICIENT_SIZE;
    *n = 1;
    p[0].pid = pid, p[0].usedGpuMemory = GIB, p[0].gpuInstanceId = p[0].computeInstanceId = ~0u;
    return NVML_SUCCESS;
}
nvmlReturn_t nvmlDeviceGetComputeRunningProcesses_v3(nvmlDevice_t d, unsigned int *n, nvmlProcessInfo_t *p) {
    int most = (int)*n, found = shown(p, most, NULL, NULL);
    if (found < 0)
        return one(n, p, 11);
    *n = (unsigned int)found;
    return found > most ? NVML_ERROR_INSUFFICIENT_SIZE : NVML_SUCCESS;
}
nvmlReturn_t nvmlDeviceGetGraphicsRunningProcesses_v3(nvmlDevice_t d, unsigned int *n, nvmlProcessInfo_t *p) { *n = 0; return NVML_SUCCESS; }
nvmlReturn_t nvmlDeviceGetMPSComputeRunningProcesses_v3(nvmlDevice_t d, unsigned int *n, nvmlProcessInfo_t *p) {
    if (shown(NULL, 0, NULL, NULL) < 0)
        return one(n, p, 13);
    *n = 0;
    return NVML_SUCCESS;
}

// Process 11 has run for 40 % of the time, as of one second.
nvmlReturn_t nvmlDeviceGetProcessUtilization(nvmlDevice_t d, nvmlProcessUtilizationSample_t *p, unsigned int *n, unsigned long long after) {
    if (after >= 1000000)
        return NVML_ERROR_NOT_FOUND;
    if (*n < 1 || !p) {
        *n = 1;
        return NVML_ERROR_INSUFFICIENT_SIZE;
    }
    *n = 1;
    memset(p, 0, sizeof *p);
    p[0].pid = 11, p[0].timeStamp = 1000000, p[0].smUtil = 40;
    return NVML_SUCCESS;
}

nvmlReturn_t nvmlGpmQueryDeviceSupport(nvmlDevice_t d, nvmlGpmSupport_t *s) {
    if (s->version != NVML_GPM_SUPPORT_VERSION)
        return NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
    s->isSupportedDevice = 1;
    return NVML_SUCCESS;
}
nvmlReturn_t nvmlGpmSampleAlloc(nvmlGpmSample_t *s) { s->handle = calloc(1, sizeof(int)); return NVML_SUCCESS; }
nvmlReturn_t nvmlGpmSampleFree(nvmlGpmSample_t s) { free(s.handle); return NVML_SUCCESS; }
nvmlReturn_t nvmlGpmSampleGet(nvmlDevice_t d, nvmlGpmSample_t s) { *(int *)s.handle = ++calls; return NVML_SUCCESS; }
nvmlReturn_t nvmlGpmMetricsGet(nvmlGpmMetricsGet_t *m) {
    if (m->version != NVML_GPM_METRICS_GET_VERSION || *(int *)m->sample1.handle >= *(int *)m->sample2.handle)
        return NVML_ERROR_INVALID_ARGUMENT;
    for (unsigned int i = 0; i < m->numMetrics; i++) {
        m->metrics[i].nvmlReturn = NVML_SUCCESS;
        m->metrics[i].value = m->metrics[i].metricId == NVML_GPM_METRIC_SM_UTIL ? 50 : 25;
    }
    return NVML_SUCCESS;
}

#endif
