// Plays the driver's checkpoint functions for suspend.py: they succeed in order and touch nobody.
static int state;

int cuInit(unsigned flags) { return 0; }
int cuGetErrorName(int result, const char **name) { *name = result ? "CUDA_ERROR_ILLEGAL_STATE" : "CUDA_SUCCESS"; return 0; }
int cuCheckpointProcessGetState(int pid, int *to) { *to = state; return 0; }

static int step(int from, int to) {
	if (state != from) return 401;
	state = to;
	return 0;
}

int cuCheckpointProcessLock(int pid, void *args) { return step(0, 1); }
int cuCheckpointProcessCheckpoint(int pid, void *args) { return step(1, 2); }
int cuCheckpointProcessRestore(int pid, void *args) { return step(2, 1); }
int cuCheckpointProcessUnlock(int pid, void *args) { return step(1, 0); }
