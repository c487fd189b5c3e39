package suspend

import (
	"errors"
	"fmt"
	"time"
)

// ErrClosed means that the helper was closed.
var ErrClosed = errors.New("the suspend helper is closed")

// Unavailable is the reason why there is no helper to make calls. The driver was not
// called.
type Unavailable struct{ Why string }

func (e *Unavailable) Error() string { return "suspending is not possible here: " + e.Why }

// Fault is the kind of a failed call.
type Fault int

// Faults. After all but Answered the state of the process must be asked for.
const (
	// Answered means that the driver returned an error code.
	Answered Fault = iota
	// Hung means that no answer came within the time limit. The helper was ended.
	Hung
	// Crashed means that the helper ended in this call, or sent an invalid answer.
	Crashed
	// Unsure means that the helper ended during several calls, one of which is at fault.
	// The call may be repeated alone.
	Unsure
	// Bystander means that the call was not made, because another call of the same helper
	// hangs or has crashed. The call may be repeated.
	Bystander
)

// CallError is a call of the driver that did not succeed.
type CallError struct {
	Call  Call
	PID   int
	Fault Fault
	Code  Code          // if the driver answered
	Limit time.Duration // if it hung
	Text  string        // error output of the helper
}

func (e *CallError) Error() string {
	what := fmt.Sprintf("%s process %d: ", e.Call, e.PID)
	switch e.Fault {
	case Answered:
		if e.Text != "" {
			return what + e.Text
		}
		return what + e.Code.String()
	case Hung:
		return what + fmt.Sprintf("the driver did not answer within %s; the suspend helper was ended", e.Limit)
	case Bystander:
		return what + "another call of the suspend helper hangs or has crashed"
	}
	return what + "the suspend helper ended: " + e.Text
}

// innocent reports whether another call caused err, and whether the call must be repeated
// alone to be sure.
func innocent(err error) (repeat, alone bool) {
	var e *CallError
	if !errors.As(err, &e) {
		return false, false
	}
	return e.Fault == Bystander || e.Fault == Unsure, e.Fault == Unsure
}

// and joins errors in one line; it returns first if there is no second.
func and(first, second error) error {
	if first == nil || second == nil {
		return errors.Join(first, second)
	}
	return fmt.Errorf("%w; %w", first, second)
}

// codeOf returns the driver's answer, or 0 if there is none.
func codeOf(err error) Code {
	var e *CallError
	if errors.As(err, &e) && e.Fault == Answered {
		return e.Code
	}
	return 0
}

// hung reports whether the driver did not answer.
func hung(err error) bool {
	var e *CallError
	return errors.As(err, &e) && e.Fault == Hung
}

// IsUnavailable reports whether an error means that the driver could not be asked. The
// state of the task is then unknown, and the task is not lost.
func IsUnavailable(err error) bool {
	return errors.As(err, new(*Unavailable)) || errors.Is(err, ErrClosed)
}
