package suspend

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/rs/zerolog"

	"carma/internal/failpoint"
)

// Caller makes calls of the driver. [Helper] implements it, and simulated servers have
// their own implementation.
type Caller interface {
	Call(ctx context.Context, r Request) (State, error)
}

// Freezer stops all threads of a container and lets them run again. Both may be repeated,
// and succeed for a container that is already in that state or has ended.
type Freezer interface {
	Freeze(ctx context.Context, c Container) error
	Thaw(ctx context.Context, c Container) error
	// Frozen also reports a container that somebody else has frozen.
	Frozen(ctx context.Context, c Container) (bool, error)
}

// Limits are the longest times of steps. 0 means the default, given at each field.
type Limits struct {
	State  time.Duration // query of a state; 10 s
	Lock   time.Duration // waiting for the process to come to rest; 10 s
	Copy   time.Duration // checkpoint or restore if the memory is not known; 5 min
	Unlock time.Duration // 10 s
	Freeze time.Duration // freezing or thawing; 10 s
}

// lockMargin is the default of Suspender.margin.
const lockMargin = 5 * time.Second

// CopyLimit returns the time limit for copying this many bytes. 80 GB took 15 s on an
// H100 in one direction (cuda-checkpoint#29). The limit is ten times as long, plus half a
// minute, to allow for slower machines, several tasks at once, and a driver that
// initializes a GPU.
func CopyLimit(bytes int64) time.Duration {
	const slowest = 500_000_000 // bytes per second
	return 30*time.Second + time.Duration(float64(max(bytes, 0))/slowest*float64(time.Second))
}

// Options are the settings of a [Suspender].
type Options struct {
	Driver  Caller
	Freezer Freezer
	Limits  Limits
	// Root is the folder with /proc and /sys. Empty means "/".
	Root string
	Log  zerolog.Logger
	// Now is the clock for reported times. Nil means time.Now.
	Now func() time.Time
}

// Suspender suspends and resumes tasks. Its methods may be called from several
// goroutines. Operations on one container run one after the other.
type Suspender struct {
	opt    Options
	margin time.Duration // time that the driver may exceed its own limit of a lock

	mu   sync.Mutex
	busy map[string]chan struct{} // by container, during an operation
}

// New returns a suspender.
func New(opt Options) *Suspender {
	opt.Root = cmp.Or(opt.Root, "/")
	l := &opt.Limits
	l.State = cmp.Or(l.State, 10*time.Second)
	l.Lock = cmp.Or(l.Lock, 10*time.Second)
	l.Copy = cmp.Or(l.Copy, 5*time.Minute)
	l.Unlock = cmp.Or(l.Unlock, 10*time.Second)
	l.Freeze = cmp.Or(l.Freeze, 10*time.Second)
	if opt.Now == nil {
		opt.Now = time.Now
	}
	return &Suspender{opt: opt, margin: lockMargin, busy: map[string]chan struct{}{}}
}

// Outcome is the state of the task after an operation.
type Outcome int

// Outcomes.
const (
	// Unchanged means that nothing was done.
	Unchanged Outcome = iota
	// Runs means that the task runs on its GPU.
	Runs
	// Suspended means that the task is off its GPU and can be resumed.
	Suspended
	// Ended means that the process has exited, or somebody else has ended it.
	Ended
	// Lost means that the task can neither run on nor be resumed, or that its state is
	// unknown. End the attempt as a fault of the infrastructure. The container is not
	// frozen, so that it can be stopped.
	Lost
)

func (o Outcome) String() string {
	return [...]string{"unchanged", "runs", "suspended", "ended", "lost"}[o]
}

// what describes an outcome for people.
var what = map[Outcome]string{
	Unchanged: "nothing was done to the task",
	Runs:      "the task runs on",
	Suspended: "the task stays suspended",
	Ended:     "the task has ended",
	Lost:      "the task is lost",
}

// Result is the result of an operation. It is valid also with an error.
type Result struct {
	Outcome Outcome
	Process Process
	// State is the last known state of the process. Sure is set if this is its current
	// state.
	State State
	Sure  bool
	// Took are the times of the driver's calls that succeeded.
	Took map[Call]time.Duration
}

// Error is an operation that did not reach its goal.
type Error struct {
	Op      string // suspend, resume, recover
	Outcome Outcome
	State   string // last known state of the process, or "" if unknown
	Err     error
}

func (e *Error) Error() string {
	state := "its state is not known"
	if e.State != "" {
		state = "its process is " + e.State
	}
	text := fmt.Sprintf("%s: %v: %s", e.Op, e.Err, what[e.Outcome])
	if e.Outcome == Lost {
		text += ", " + state
	}
	return text
}

func (e *Error) Unwrap() error { return e.Err }

// turn waits until no other operation uses the container. Call done after the operation.
func (s *Suspender) turn(ctx context.Context, id string) (done func(), err error) {
	for {
		s.mu.Lock()
		other, taken := s.busy[id]
		if !taken {
			mine := make(chan struct{})
			s.busy[id] = mine
			s.mu.Unlock()
			return func() {
				s.mu.Lock()
				delete(s.busy, id)
				s.mu.Unlock()
				close(mine)
			}, nil
		}
		s.mu.Unlock()
		select {
		case <-other:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// run carries out one operation on one container.
func (s *Suspender) run(ctx context.Context, name string, c Container, f func(*op) error) (Result, error) {
	done, err := s.turn(ctx, c.ID)
	if err != nil {
		return Result{}, &Error{Op: name, Err: err}
	}
	defer done()
	o := &op{s: s, c: c, copying: s.opt.Limits.Copy, result: Result{Took: map[Call]time.Duration{}}}
	if err = f(o); err == nil {
		return o.result, nil
	}
	if errors.Is(err, errEnded) {
		o.result.Outcome = Ended
	}
	if o.result.Outcome == Lost {
		// A frozen process of an older control group cannot be killed.
		if thawed := s.thaw(context.WithoutCancel(ctx), c); thawed != nil {
			err = and(err, thawed)
		}
		s.opt.Log.Error().Err(err).Str("container", c.ID).Str("operation", name).Msg("a task was lost")
	}
	failed := &Error{Op: name, Outcome: o.result.Outcome, Err: err}
	if o.result.Sure {
		failed.State = o.result.State.String()
	}
	return o.result, failed
}

// Thaw lets the threads of a suspended container run, so that it can be stopped. It waits
// for a running operation.
func (s *Suspender) Thaw(ctx context.Context, c Container) error {
	done, err := s.turn(ctx, c.ID)
	if err != nil {
		return err
	}
	defer done()
	return s.thaw(ctx, c)
}

// Frozen reports whether the threads of a container are stopped, by carma or others. It
// waits for a running operation.
func (s *Suspender) Frozen(ctx context.Context, c Container) (bool, error) {
	done, err := s.turn(ctx, c.ID)
	if err != nil {
		return false, err
	}
	defer done()
	return s.opt.Freezer.Frozen(ctx, c)
}

func (s *Suspender) freeze(ctx context.Context, c Container) error {
	ctx, cancel := context.WithTimeout(ctx, s.opt.Limits.Freeze)
	defer cancel()
	if err := s.opt.Freezer.Freeze(ctx, c); err != nil {
		return fmt.Errorf("freeze the container: %w", err)
	}
	failpoint.Hit("suspend-frozen")
	return nil
}

func (s *Suspender) thaw(ctx context.Context, c Container) error {
	ctx, cancel := context.WithTimeout(ctx, s.opt.Limits.Freeze)
	defer cancel()
	if err := s.opt.Freezer.Thaw(ctx, c); err != nil {
		return fmt.Errorf("thaw the container: %w", err)
	}
	failpoint.Hit("resume-thawed")
	return nil
}
