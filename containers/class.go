package containers

import (
	"fmt"
	"slices"
	"strings"
)

// Class says how a container's run ended, as far as it matters for what is
// done next. The values are those of mapper.Class.
type Class string

// The classes.
const (
	ClassOK             Class = "ok"
	ClassProgram        Class = "program"        // the program's own fault
	ClassGPUOOM         Class = "gpu-oom"        // a GPU memory allocation failed
	ClassHostOOM        Class = "host-oom"       // host or shared memory ran out
	ClassInfrastructure Class = "infrastructure" // the engine, driver or MPS failed under it
	ClassEvicted        Class = "evicted"        // MPS took its memory back
	ClassMPSFault       Class = "mps-fault"      // the MPS server failed, perhaps by another client's doing
	ClassCannotStart    Class = "cannot-start"   // the container can never run as asked
	ClassStopped        Class = "stopped"        // carma stopped it
)

// Facts are what the log does not tell about a run.
type Facts struct {
	// Stopped: carma stopped it.
	Stopped bool
	// CardFull: the memory of one of its GPUs was over 95 % in use at the end.
	CardFull bool
	// EngineLost: the engine went away during the run, and may have taken the
	// container with it.
	EngineLost bool
}

// Verdict is what [Classify] found.
type Verdict struct {
	Class Class
	// Code is the exit code.
	Code int
	// Rule names the row of the table that matched; empty if none did.
	Rule string
	// Message is one line for people.
	Message string
	// Evidence is the line of the log that decided; empty if none did.
	Evidence string
	// CUDA: the output speaks of a CUDA error, as a program prints it for its
	// own fault and, under MPS, for that of a neighbour.
	CUDA bool
	// Demand is how much memory, in bytes, the process would have needed on
	// the GPU that ran out: what it used and what it asked for. 0: not told.
	Demand int64
	// Start is what kept it from starting, where the request is not to blame.
	Start *StartFault
}

// Classify says why a container ended, from how it ended, the last lines of
// its output (see [Tail]) and what else is known.
//
// The rules: an exit code of 0 is ok whatever the log says, since a program
// may get over an out-of-memory error itself. What carma stopped is stopped.
// Otherwise the log decides by the table in rules.go: the first line that
// matches, as what follows is often its consequence, but only among the lines
// that belong to the end (see [tailReader.cause]). A failure without a match
// is the program's own and never an out-of-memory error.
func Classify(exit Exit, tail []string, facts Facts) Verdict {
	v := Verdict{Code: exit.Code, CUDA: slices.ContainsFunc(tail, cudaError.MatchString)}
	set := func(c Class, msg string) Verdict {
		v.Class, v.Message = c, msg
		return v
	}
	switch {
	case exit.Error != "" && MachineFault(exit.Error):
		v.Start = ReadStartFault(exit.Error)
		return set(ClassInfrastructure, "could not start: "+line(exit.Error))
	case exit.Error != "":
		return set(ClassCannotStart, "cannot start: "+line(exit.Error))
	case exit.Lost && !facts.Stopped:
		return set(ClassInfrastructure, "the container engine lost it: how it ended is not known")
	case exit.Code == 0:
		return set(ClassOK, "exit code 0")
	case facts.Stopped:
		return set(ClassStopped, "stopped by carma")
	case exit.OOMKilled && exit.Code == 137:
		return set(ClassHostOOM, "killed by the kernel: out of host memory")
	}
	own := ""
	if cause, ok := newTailReader(tail, facts).cause(); ok {
		v.Evidence = line(cause.text)
		if cause.rule == nil {
			own = ": " + v.Evidence
		} else {
			v.Rule = cause.rule.name
			if cause.rule.class == ClassGPUOOM {
				v.Demand = demand(cause.context)
			}
			return set(cause.rule.class, cause.rule.message+needed(v.Demand))
		}
	}
	switch {
	case exit.OOMKilled:
		return set(ClassHostOOM, "the kernel killed one of its processes: out of host memory")
	case facts.EngineLost && (exit.Code == 137 || exit.Code == 143 || exit.Code == 255):
		return set(ClassInfrastructure, "ended with the container engine")
	case exit.Started.IsZero() && !exit.Finished.IsZero() && exit.Code >= 125 && exit.Code <= 127:
		return set(ClassCannotStart, "cannot start: "+codeText(exit.Code))
	}
	return set(ClassProgram, codeText(exit.Code)+own)
}

// codeText explains an exit code.
func codeText(code int) string {
	switch code {
	case 126:
		return "exit code 126 (not executable)"
	case 127:
		return "exit code 127 (command not found)"
	case 132:
		return "crashed (illegal instruction, signal 4)"
	case 134:
		return "aborted (signal 6)"
	case 135:
		return "crashed (bus error, signal 7; often too little shared memory)"
	case 136:
		return "crashed (arithmetic error, signal 8)"
	case 137:
		return "killed (signal 9)"
	case 139:
		return "crashed (segmentation fault, signal 11)"
	case 143:
		return "terminated (signal 15)"
	}
	if code > 128 && code < 128+65 {
		return fmt.Sprintf("ended by signal %d", code-128)
	}
	return fmt.Sprintf("exit code %d", code)
}

// line makes one line of bounded length out of s.
func line(s string) string {
	s = strings.Join(strings.Fields(s), " ")
	const limit = 300
	if len(s) > limit {
		s = strings.ToValidUTF8(s[:limit], "") + "..."
	}
	return s
}

func needed(bytes int64) string {
	if bytes == 0 {
		return ""
	}
	return fmt.Sprintf(", needed %.2f GiB", float64(bytes)/(1<<30))
}
