package containers

import (
	"fmt"
	"slices"
	"strings"
)

// Class says how a container's run ended, as far as the next decision depends on
// it. The values are those of mapper.Class.
type Class string

// The classes.
const (
	ClassOK             Class = "ok"
	ClassProgram        Class = "program"        // the program's own failure
	ClassGPUOOM         Class = "gpu-oom"        // a GPU memory allocation failed
	ClassHostOOM        Class = "host-oom"       // host or shared memory ran out
	ClassInfrastructure Class = "infrastructure" // the engine, driver or MPS failed
	ClassEvicted        Class = "evicted"        // MPS took its memory back
	ClassMPSFault       Class = "mps-fault"      // the MPS server failed, perhaps because of another client
	ClassCannotStart    Class = "cannot-start"   // the container can never run with this request
	ClassStopped        Class = "stopped"        // carma stopped it
)

// Facts are facts about a run that its log does not tell.
type Facts struct {
	// Stopped: carma stopped it.
	Stopped bool
	// CardFull: at the end more than 95 % of the memory of one of its GPUs was in
	// use.
	CardFull bool
	// EngineLost: the engine stopped during the run. It may have ended the
	// container too.
	EngineLost bool
}

// Verdict is the result of [Classify].
type Verdict struct {
	Class Class
	// Code is the exit code.
	Code int
	// Rule is the name of the matching row of the table in rules.go; empty: none
	// matched.
	Rule string
	// Message is one line for people.
	Message string
	// Evidence is the log line that decided; empty: no line did.
	Evidence string
	// CUDA: the output has a CUDA error. A program prints one for its own fault
	// and, under MPS, for a neighbour's.
	CUDA bool
	// Demand is the GPU memory in bytes that the process would have needed: its
	// use plus the refused request. 0: the log does not tell.
	Demand int64
	// Start is why the container did not start, if the request is not to blame.
	Start *StartFault
}

// Classify says why a container ended. Its inputs are how it ended, the last
// lines of its output (see [Tail]) and other facts.
//
// Exit code 0 is ok, whatever the log says: a program may survive an
// out-of-memory error. A run that carma stopped is stopped. Otherwise the log
// decides, by the table in rules.go. The first matching line counts, because
// later ones are often consequences. Only lines that belong to the end are
// searched (see [tailReader.cause]). A failure without a match is the program's
// own, never an out-of-memory error.
func Classify(exit Exit, tail []string, facts Facts) Verdict {
	v := Verdict{Code: exit.Code, CUDA: slices.ContainsFunc(tail, cudaError().MatchString)}
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
	own := complained(tail)
	if own != "" {
		v.Evidence, own = own, ": "+own
	}
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

// line makes one line of s, of at most about 300 bytes.
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
