package containers

import (
	"fmt"
	"strings"

	"carma/internal/lazyregexp"
)

// re is a short name for the tables.
var re = lazyregexp.New

// Class is the kind of a container's end, on which the next scheduling decision depends.
// model.Class has the same values.
type Class string

// The classes.
const (
	ClassOK             Class = "ok"
	ClassProgram        Class = "program"           // the program's own failure
	ClassGPUOOM         Class = "gpu-oom"           // a GPU memory allocation failed
	ClassSuspectedOOM   Class = "suspected-gpu-oom" // an allocation failed, perhaps of GPU memory
	ClassHostOOM        Class = "host-oom"          // host or shared memory ran out
	ClassInfrastructure Class = "infrastructure"    // the engine, driver or MPS failed
	ClassEvicted        Class = "evicted"           // MPS took its memory back
	ClassMPSFault       Class = "mps-fault"         // the MPS server failed, perhaps because of another client
	ClassCannotStart    Class = "cannot-start"      // the container can never run with this request
	ClassStopped        Class = "stopped"           // carma stopped the container
)

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

func gib(bytes int64) string { return fmt.Sprintf("%.2f GiB", float64(bytes)/(1<<30)) }

func needed(bytes int64) string {
	if bytes == 0 {
		return ""
	}
	return ", needed " + gib(bytes)
}
