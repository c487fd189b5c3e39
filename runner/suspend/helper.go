package suspend

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"time"

	"github.com/rs/zerolog"
	"golang.org/x/sync/semaphore"
)

// maxCalls is the largest number of simultaneous calls. Each call has a thread of the
// helper. maxCalls*maxLine fits into a pipe.
const maxCalls = 16

// endLimit is the time that a helper has to end after it was asked to or killed. A
// process that is blocked in a kernel call of the driver takes longer.
const endLimit = 10 * time.Second

// HelperOptions are the settings of a [Helper]; the zero value is usable.
type HelperOptions struct {
	// Program is called with HelperCommand. Empty means this program.
	Program string
	// Library is the path of the driver's library. Empty means libcuda.so.1.
	Library string
	// LockFile keeps helpers of two daemons, an old one and its successor, from making
	// calls at the same time. If empty, there is no lock.
	LockFile string
	// Env is added to the helper's environment.
	Env []string
	// Start limits the loading of the library. 0 means a minute. Some seconds are usual
	// (NVIDIA/nvcf#263).
	Start time.Duration
	Log   zerolog.Logger
}

// Helper makes calls of the driver in a process of its own. The process is started by
// the first call, and again after it has hung or crashed. Its methods may be called
// from several goroutines: their calls run at the same time.
type Helper struct {
	opt   HelperOptions
	turns *semaphore.Weighted
	// door is held by the goroutine that checks or starts the child.
	door   chan struct{}
	child  *child
	closed bool
	starts int
}

// NewHelper returns a helper. Nothing is started before its first call.
func NewHelper(opt HelperOptions) *Helper {
	opt.Library = cmp.Or(opt.Library, "libcuda.so.1")
	opt.Start = cmp.Or(opt.Start, time.Minute)
	return &Helper{opt: opt, turns: semaphore.NewWeighted(maxCalls), door: make(chan struct{}, 1)}
}

// Request is one call of the driver.
type Request struct {
	Call Call
	PID  int
	// Wait is the time that a lock waits for the process to come to rest. It must not be
	// 0, because the driver would then wait without end.
	Wait time.Duration
	// Pairs are the moves of a restore. If empty, the process is restored to the same
	// GPUs.
	Pairs []Pair
	// Limit is the longest time of the call, after which the helper is ended.
	Limit time.Duration
	// Alone keeps other calls from running at the same time.
	Alone bool
}

// Call makes one call, and returns the state if r is a CallState. ctx ends the wait for a
// turn. A call that has begun is not interrupted before its limit, because its effect
// would be unknown. Errors are *CallError, *Unavailable, ErrClosed or ctx's.
func (h *Helper) Call(ctx context.Context, r Request) (State, error) {
	if r.Call == CallLock && r.Wait < time.Millisecond {
		return 0, errors.New("a lock without a time limit")
	}
	weight := int64(1)
	if r.Alone {
		weight = maxCalls
	}
	if err := h.turns.Acquire(ctx, weight); err != nil {
		return 0, err
	}
	defer h.turns.Release(weight)
	c, err := h.get(ctx)
	if err != nil {
		return 0, err
	}
	got := c.do(request{Call: r.Call, PID: r.PID, TimeoutMS: uint32(r.Wait.Milliseconds()), Pairs: r.Pairs}, r.Limit)
	if got.fault == Answered && got.reply.Error == "" && got.reply.Code == 0 {
		return got.reply.State, nil
	}
	failed := &CallError{Call: r.Call, PID: r.PID, Fault: got.fault, Code: got.reply.Code, Limit: r.Limit, Text: cmp.Or(got.text, got.reply.Error)}
	if got.fault == Hung || got.fault == Crashed {
		h.opt.Log.Error().Err(failed).Msg("a call of the NVIDIA driver did not return")
	}
	return 0, failed
}

// CUDA returns the driver's version of CUDA, such as 12080 for 12.8, or 0 if it does not
// report one.
func (h *Helper) CUDA(ctx context.Context) (int, error) {
	c, err := h.get(ctx)
	if err != nil {
		return 0, err
	}
	return c.cuda, nil
}

// get returns the helper process, and starts one if there is none.
func (h *Helper) get(ctx context.Context) (*child, error) {
	select {
	case h.door <- struct{}{}:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	defer func() { <-h.door }()
	if h.closed {
		return nil, ErrClosed
	}
	if h.child != nil && h.child.alive() {
		return h.child, nil
	}
	if err := h.gone(ctx); err != nil {
		return nil, err
	}
	c, err := start(h.command(), h.opt.Start)
	h.child = c // also after a failed start, because the process must end before the next one starts
	if err != nil {
		return nil, err
	}
	h.starts++
	h.opt.Log.Debug().Int("pid", c.cmd.Process.Pid).Int("cuda", c.cuda).Msg("the suspend helper was started")
	return c, nil
}

// gone waits until the last helper has ended, because two helpers would disturb each
// other, and a driver that blocks one would block each further one. If one call hangs,
// gone waits for the other calls of that helper.
func (h *Helper) gone(ctx context.Context) error {
	if h.child == nil {
		return nil
	}
	select {
	case <-h.child.over:
	case <-ctx.Done():
		return ctx.Err()
	}
	select {
	case <-h.child.ended:
		h.child = nil
		return nil
	case <-time.After(endLimit):
		return &Unavailable{fmt.Sprintf("the suspend helper was killed and is still there (process %d): the NVIDIA driver holds it; look at dmesg", h.child.cmd.Process.Pid)}
	}
}

// command returns the helper's command. It does not pass on the daemon's environment.
// With CUDA_VISIBLE_DEVICES the driver would not know all GPUs, which moving needs
// (NVIDIA/cuda-python#1983), and the helper must not become a client of MPS.
func (h *Helper) command() *exec.Cmd {
	program := cmp.Or(h.opt.Program, "/proc/self/exe") // also if a newer version has replaced the file
	args := []string{HelperCommand, h.opt.Library}
	if h.opt.LockFile != "" {
		args = append(args, h.opt.LockFile)
	}
	cmd := exec.Command(program, args...)
	cmd.Dir = "/"
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "LC_ALL=C", "CUDA_MPS_PIPE_DIRECTORY=/nonexistent"}
	if libraries := os.Getenv("LD_LIBRARY_PATH"); libraries != "" {
		cmd.Env = append(cmd.Env, "LD_LIBRARY_PATH="+libraries)
	}
	cmd.Env = append(cmd.Env, h.opt.Env...)
	return cmd
}

// Close ends the helper. It waits briefly for a running call, and does not interrupt it.
// The helper ends when the call returns, or at the call's limit. Further calls return
// ErrClosed.
func (h *Helper) Close() error {
	h.door <- struct{}{}
	defer func() { <-h.door }()
	h.closed = true
	if h.child == nil {
		return nil
	}
	h.child.stop()
	_ = h.child.in.Close()
	select {
	case <-h.child.ended:
		h.child = nil
		return nil
	case <-time.After(endLimit):
		return fmt.Errorf("the suspend helper (process %d) is still in a call of the NVIDIA driver; it ends with it", h.child.cmd.Process.Pid)
	}
}
