package suspend

import (
	"context"
	"errors"
	"fmt"
	"time"

	"carma/internal/failpoint"
)

var (
	errNoCUDA = errors.New("the NVIDIA driver knows no CUDA process of this number")
	errFailed = errors.New("the NVIDIA driver says that a checkpoint or restore of the process went wrong")
)

// repeats is the largest number of repetitions of a call that another call has disturbed.
const repeats = 4

// midway is the time between two checks of a process that copies its memory.
const midway = 50 * time.Millisecond

// op is one operation on one container.
type op struct {
	s       *Suspender
	c       Container
	p       Process
	pairs   []Pair
	copying time.Duration // limit of checkpoint and restore
	undoing bool          // the task is lost if the next calls fail
	result  Result
}

// state asks for the state of a process. The call changes nothing, so it is repeated when
// it hangs (once) or the helper crashes. Repetitions run alone.
func (s *Suspender) state(ctx context.Context, c Container, p Process) (State, error) {
	for try := 1; ; try++ {
		state, err := s.opt.Driver.Call(ctx, Request{Call: CallState, PID: p.PID, Limit: s.opt.Limits.State, Alone: try > 1})
		code := codeOf(err)
		switch {
		case err == nil && state >= Running && state <= Restoring:
			return state, nil
		case err == nil:
			return state, fmt.Errorf("process %d is in %v, which this version of carma does not know", p.PID, state)
		case s.same(c, p) != nil:
			return 0, errEnded
		case code == CodeInvalidValue, code == CodeNotInitialized:
			// The page does not list the results for other processes; cuda-python#561 and
			// ai-dynamo/snapshot#109 saw these.
			return 0, errNoCUDA
		case ctx.Err() != nil, errors.As(err, new(*Unavailable)), errors.Is(err, ErrClosed), code != 0, try == repeats, try > 1 && hung(err):
			return 0, err
		}
	}
}

// ask asks for the state of the operation's process and stores it.
func (o *op) ask(ctx context.Context) (State, error) {
	state, err := o.s.state(ctx, o.c, o.p)
	if o.result.Sure = err == nil; o.result.Sure {
		o.result.State = state
	}
	return state, err
}

// drive brings the process to a goal, Running or Checkpointed, from any state. Before
// each step and at the end it asks the driver for the state, because a successful call
// does not prove that the goal is reached. faults is the number of hangs and crashes per
// step that are tolerated. An error code of the driver is tolerated only on the way back
// to Running.
func (o *op) drive(ctx context.Context, goal State, faults int) error {
	waited, disturbed, alone := time.Duration(0), 0, false
	for {
		state, err := o.ask(ctx)
		switch {
		case err != nil:
			return err
		case state == goal:
			return nil
		case state == Failed:
			return errFailed
		case state == Checkpointing || state == Restoring:
			if waited += midway; waited > o.copying {
				return fmt.Errorf("process %d is still %v after %s", o.p.PID, state, o.copying)
			}
			time.Sleep(midway)
			continue
		case ctx.Err() != nil:
			return ctx.Err()
		}
		err = o.step(ctx, next(state, goal), alone)
		again, suspect := innocent(err)
		switch {
		case err == nil:
			disturbed, alone = 0, false
		case again && disturbed < repeats:
			disturbed, alone = disturbed+1, alone || suspect
		case faults > 0 && (codeOf(err) == 0 || o.undoing) && ctx.Err() == nil:
			faults, alone = faults-1, true
		default:
			return err
		}
	}
}

// next returns the call that leads from a state towards a goal.
func next(state, goal State) Call {
	switch {
	case state == Running:
		return CallLock
	case state == Checkpointed:
		return CallRestore
	case goal == Checkpointed:
		return CallCheckpoint
	}
	return CallUnlock
}

// passed is a point at which a test may end the daemon, after each call.
func passed(call Call) {
	switch call {
	case CallLock:
		failpoint.Hit("suspend-locked")
	case CallCheckpoint:
		failpoint.Hit("suspend-checkpointed")
	case CallRestore:
		failpoint.Hit("resume-restored")
	case CallUnlock:
		failpoint.Hit("resume-unlocked")
	}
}

// step makes one call that changes the process.
func (o *op) step(ctx context.Context, call Call, alone bool) error {
	if err := o.s.same(o.c, o.p); err != nil {
		return err
	}
	l := o.s.opt.Limits
	r := Request{Call: call, PID: o.p.PID, Alone: alone}
	switch call {
	case CallLock:
		r.Wait, r.Limit = l.Lock, l.Lock+o.s.margin
	case CallCheckpoint:
		r.Limit = o.copying
	case CallRestore:
		r.Limit, r.Pairs = o.copying, o.pairs
	case CallUnlock:
		r.Limit = l.Unlock
	}
	begin := o.s.opt.Now()
	_, err := o.s.opt.Driver.Call(ctx, r)
	passed(call)
	if err == nil {
		o.result.Took[call] += o.s.opt.Now().Sub(begin)
		return nil
	}
	if gone := o.s.same(o.c, o.p); gone != nil {
		return gone
	}
	return err
}
