package suspend

import (
	"bufio"
	"fmt"
	"os"
	"time"
)

// ProgramCommand is the first argument of the program of a proof, which runs in a
// container and is suspended there: it has memory on a GPU and looks again and again
// whether that is unchanged. The program that uses it must call [RunProgram] for it.
const ProgramCommand = "suspend-program"

// ProgramBytes is the GPU memory that the program fills, beside its CUDA context.
const ProgramBytes = 64 << 20

// What the program prints: once when its memory is filled, after each look, and before
// it ends with an error.
const (
	ProgramReady = "ready"
	ProgramGood  = "good" // and how many looks there have been
	ProgramBad   = "bad"  // and why
)

// programLook is the time between two looks.
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
		_ = out.Flush() // who reads may have left; then the program is ended
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

// pattern returns the n-th word of the memory: no two neighbours are alike.
func pattern(n int) uint32 { return uint32(n) * 2654435761 }
