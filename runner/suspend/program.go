package suspend

import (
	"bufio"
	"fmt"
	"os"
	"time"
)

// ProgramCommand is the first argument of the program of a proof, which runs in a
// container and is suspended there. It has memory on a GPU and checks repeatedly whether
// the memory is unchanged. The program that uses it must call [RunProgram] for it.
const ProgramCommand = "suspend-program"

// ProgramBytes is the GPU memory that the program fills, beside its CUDA context.
const ProgramBytes = 64 << 20

// Words that the program prints once when its memory is filled, after each check, and
// before it ends with an error.
const (
	ProgramReady = "ready"
	ProgramGood  = "good" // followed by the number of checks
	ProgramBad   = "bad"  // followed by the reason
)

// programLook is the time between two checks.
const programLook = 50 * time.Millisecond

// RunProgram runs [ProgramCommand] until something is wrong or it is killed, and
// returns the exit code. args may name the driver's library.
func RunProgram(args []string) int {
	library := "libcuda.so.1"
	if len(args) > 0 {
		library = args[0]
	}
	out := bufio.NewWriter(os.Stdout)
	say := func(word string, more any) {
		fmt.Fprintln(out, word, more)
		_ = out.Flush() // the reader may have disconnected, and then ends the program
	}
	m, err := fillGPU(library, ProgramBytes)
	if err != nil {
		say(ProgramBad, err)
		return 1
	}
	say(ProgramReady, ProgramBytes)
	for looks := 1; ; looks++ {
		if err := m.check(); err != nil {
			say(ProgramBad, err)
			return 1
		}
		say(ProgramGood, looks)
		time.Sleep(programLook)
	}
}

// pattern returns the n-th word of the memory. Neighbouring words differ.
func pattern(n int) uint32 { return uint32(n) * 2654435761 }
