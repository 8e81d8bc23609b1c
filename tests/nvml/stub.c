/* A stand-in for libnvidia-ml.so.1 that says what a fixture file says, so that the real bindings can be tested
 * without a GPU. See README.md beside it for the keys. The file named by NVML_STUB is read anew at each call:
 * a test changes the host by replacing it. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define LINE 4096
#define SUCCESS 0
#define INVALID_ARGUMENT 2
#define NOT_SUPPORTED 3
#define NOT_FOUND 6
#define INSUFFICIENT_SIZE 7
#define UNKNOWN_ERROR 999
#define NOT_AVAILABLE (~0ULL)

typedef void *Device; /* (gpu + 1), and (slice + 1) << 8 where it is a MIG slice */
typedef struct {
    unsigned pid;
    unsigned long long used;
    unsigned gpu_instance, compute_instance;
} Process;
typedef struct {
    unsigned long long total, free, used;
} Memory;
typedef struct {
    unsigned version;
    unsigned long long total, reserved, free, used;
} Memory2;
typedef struct {
    char legacy[16];
    unsigned domain, bus, device, id, subsystem;
    char bus_id[32];
} Pci;

static int value_of(const char *key, char *value) {
    const char *path = getenv("NVML_STUB");
    FILE *file = path ? fopen(path, "r") : NULL;
    char line[LINE];
    int found = 0;
    size_t length = strlen(key);
    while (file && !found && fgets(line, sizeof line, file))
        if (!strncmp(line, key, length) && line[length] == ' ') {
            line[strcspn(line, "\n")] = 0;
            strcpy(value, line + length + 1);
            found = 1;
        }
    if (file) fclose(file);
    return found;
}

static unsigned long long number(const char *key, unsigned long long absent) {
    char value[LINE];
    return value_of(key, value) ? strtoull(value, NULL, 0) : absent;
}

static void name_of(Device device, char *name) {
    size_t handle = (size_t)device;
    if (handle >> 8)
        sprintf(name, "gpu%zu.mig%zu", (handle & 255) - 1, (handle >> 8) - 1);
    else
        sprintf(name, "gpu%zu", handle - 1);
}

/* What a call is told to fail with, for this device or for all, after it has taken as long as it is told. */
static int fault(const char *function, Device device) {
    char key[256], name[64];
    sprintf(key, "delay.%s", function);
    unsigned long long wait = number(key, number("delay", 0));
    struct timespec pause = {wait / 1000, (wait % 1000) * 1000000};
    if (wait) nanosleep(&pause, NULL);
    sprintf(key, "error.%s", function);
    int failed = number(key, 0);
    if (!failed && device) {
        name_of(device, name);
        sprintf(key, "error.%s.%s", name, function);
        failed = number(key, 0);
    }
    return failed;
}

static int field(Device device, const char *what, char *value) {
    char key[256];
    name_of(device, key);
    strcat(strcat(key, "."), what);
    return value_of(key, value);
}

static unsigned long long figure(Device device, const char *what, unsigned long long absent) {
    char value[LINE];
    return field(device, what, value) ? strtoull(value, NULL, 0) : absent;
}

#define BEGIN(name, device)          \
    do {                             \
        int failed = fault(name, device); \
        if (failed) return failed;   \
    } while (0)

static int text(const char *function, Device device, const char *what, char *out, unsigned size) {
    char value[LINE];
    BEGIN(function, device);
    if (!field(device, what, value)) return NOT_SUPPORTED;
    snprintf(out, size, "%s", value);
    return SUCCESS;
}

int nvmlInitWithFlags(unsigned flags) {
    (void)flags;
    return fault("nvmlInitWithFlags", NULL);
}

int nvmlShutdown(void) { return SUCCESS; }

const char *nvmlErrorString(int error) {
    static char said[32];
    sprintf(said, "stub error %d", error);
    return error == 9 ? "Driver Not Loaded" : error == 15 ? "GPU is lost" : said;
}

int nvmlDeviceGetCount_v2(unsigned *count) {
    BEGIN("nvmlDeviceGetCount_v2", NULL);
    *count = number("count", 0);
    return SUCCESS;
}

int nvmlDeviceGetHandleByIndex_v2(unsigned index, Device *device) {
    *device = (Device)(size_t)(index + 1);
    BEGIN("nvmlDeviceGetHandleByIndex_v2", *device);
    return index < number("count", 0) ? SUCCESS : INVALID_ARGUMENT;
}

#ifndef MISSING_SYMBOLS
int nvmlSystemGetDriverVersion(char *version, unsigned size) {
    char value[LINE];
    BEGIN("nvmlSystemGetDriverVersion", NULL);
    if (!value_of("driver", value)) return NOT_SUPPORTED;
    snprintf(version, size, "%s", value);
    return SUCCESS;
}

int nvmlDeviceGetUUID(Device device, char *uuid, unsigned size) {
    return text("nvmlDeviceGetUUID", device, "uuid", uuid, size);
}

int nvmlDeviceGetName(Device device, char *name, unsigned size) {
    return text("nvmlDeviceGetName", device, "name", name, size);
}

int nvmlDeviceGetMemoryInfo(Device device, Memory *memory) {
    BEGIN("nvmlDeviceGetMemoryInfo", device);
    memory->total = figure(device, "total", 0);
    memory->used = figure(device, "used", 0) + figure(device, "reserved", 0);
    memory->free = memory->total - memory->used;
    return SUCCESS;
}

int nvmlDeviceGetMemoryInfo_v2(Device device, Memory2 *memory) {
    BEGIN("nvmlDeviceGetMemoryInfo_v2", device);
    memory->total = figure(device, "total", 0);
    memory->used = figure(device, "used", 0);
    memory->reserved = figure(device, "reserved", 0);
    memory->free = memory->total - memory->used - memory->reserved;
    return SUCCESS;
}

static int processes(const char *function, Device device, const char *what, unsigned *room, Process *out) {
    char value[LINE], *at = value, *end;
    unsigned count = 0;
    BEGIN(function, device);
    if (!field(device, what, value)) value[0] = 0;
    for (unsigned long pid; (pid = strtoul(at, &end, 10)), end != at; count++) {
        at = end;
        unsigned long long used = NOT_AVAILABLE;
        if (*at == ':') used = strtoull(at + 1, &at, 10);
        if (out && count < *room) {
            Process process = {pid, used, ~0U, ~0U};
            out[count] = process;
        }
    }
    int fits = count <= *room && (out || !count);
    *room = count;
    return fits ? SUCCESS : INSUFFICIENT_SIZE;
}

int nvmlDeviceGetComputeRunningProcesses_v3(Device device, unsigned *room, Process *out) {
    return processes("nvmlDeviceGetComputeRunningProcesses_v3", device, "processes", room, out);
}

int nvmlDeviceGetGraphicsRunningProcesses_v3(Device device, unsigned *room, Process *out) {
    return processes("nvmlDeviceGetGraphicsRunningProcesses_v3", device, "graphics", room, out);
}

int nvmlDeviceGetMPSComputeRunningProcesses_v3(Device device, unsigned *room, Process *out) {
    return processes("nvmlDeviceGetMPSComputeRunningProcesses_v3", device, "mps", room, out);
}

int nvmlDeviceGetMigMode(Device device, unsigned *now, unsigned *pending) {
    char value[LINE];
    BEGIN("nvmlDeviceGetMigMode", device);
    if (!field(device, "mig", value)) return NOT_SUPPORTED;
    *now = *pending = strtoul(value, NULL, 10);
    return SUCCESS;
}

int nvmlDeviceGetMaxMigDeviceCount(Device device, unsigned *count) {
    BEGIN("nvmlDeviceGetMaxMigDeviceCount", device);
    *count = 7;
    return SUCCESS;
}

int nvmlDeviceGetMigDeviceHandleByIndex(Device device, unsigned index, Device *slice) {
    char value[LINE];
    BEGIN("nvmlDeviceGetMigDeviceHandleByIndex", device);
    *slice = (Device)((size_t)device | (size_t)(index + 1) << 8);
    return field(*slice, "uuid", value) ? SUCCESS : NOT_FOUND;
}

int nvmlDeviceGetVirtualizationMode(Device device, unsigned *mode) {
    BEGIN("nvmlDeviceGetVirtualizationMode", device);
    *mode = figure(device, "virtualization", 0);
    return SUCCESS;
}

int nvmlDeviceGetComputeMode(Device device, unsigned *mode) {
    BEGIN("nvmlDeviceGetComputeMode", device);
    *mode = figure(device, "mode", 0);
    return SUCCESS;
}

int nvmlDeviceGetCudaComputeCapability(Device device, int *major, int *minor) {
    char value[LINE];
    BEGIN("nvmlDeviceGetCudaComputeCapability", device);
    if (!field(device, "capability", value)) return NOT_SUPPORTED;
    return sscanf(value, "%d.%d", major, minor) == 2 ? SUCCESS : UNKNOWN_ERROR;
}

int nvmlDeviceGetNumaNodeId(Device device, int *node) {
    char value[LINE];
    BEGIN("nvmlDeviceGetNumaNodeId", device);
    if (!field(device, "numa", value)) return NOT_SUPPORTED;
    *node = atoi(value);
    return SUCCESS;
}

int nvmlDeviceGetPciInfo_v3(Device device, Pci *pci) {
    memset(pci, 0, sizeof *pci);
    return text("nvmlDeviceGetPciInfo_v3", device, "pci", pci->bus_id, sizeof pci->bus_id);
}

static int pair(Device first, Device second, const char *what, unsigned *out) {
    char key[64], value[LINE];
    size_t one = (size_t)first - 1, other = (size_t)second - 1;
    sprintf(key, "link%zu-%zu.%s", one < other ? one : other, one < other ? other : one, what);
    if (!value_of(key, value)) return NOT_SUPPORTED;
    *out = strtoul(value, NULL, 10);
    return SUCCESS;
}

int nvmlDeviceGetTopologyCommonAncestor(Device first, Device second, unsigned *level) {
    BEGIN("nvmlDeviceGetTopologyCommonAncestor", first);
    return pair(first, second, "level", level);
}

int nvmlDeviceGetP2PStatus(Device first, Device second, unsigned what, unsigned *status) {
    (void)what;
    BEGIN("nvmlDeviceGetP2PStatus", first);
    return pair(first, second, "p2p", status);
}

static int nvlink(Device device, unsigned link, char *remote) {
    char what[32];
    sprintf(what, "nvlink%u", link);
    return field(device, what, remote);
}

int nvmlDeviceGetNvLinkState(Device device, unsigned link, unsigned *active) {
    char remote[LINE];
    BEGIN("nvmlDeviceGetNvLinkState", device);
    if (!nvlink(device, link, remote)) return NOT_SUPPORTED;
    *active = 1;
    return SUCCESS;
}

int nvmlDeviceGetNvLinkRemotePciInfo_v2(Device device, unsigned link, Pci *pci) {
    char remote[LINE];
    BEGIN("nvmlDeviceGetNvLinkRemotePciInfo_v2", device);
    if (!nvlink(device, link, remote)) return NOT_SUPPORTED;
    memset(pci, 0, sizeof *pci);
    snprintf(pci->bus_id, sizeof pci->bus_id, "%s", remote);
    return SUCCESS;
}
#endif
