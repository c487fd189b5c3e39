//go:build cgo

package nvml

import "fmt"

// severity is the consequence of an Xid, an error number of the driver, for a GPU.
type severity int

const (
	// harmless means a fault of a program, or information.
	harmless severity = iota
	// suspicious means that the GPU still works, but an administrator should know.
	suspicious
	// fatal means that nothing can run on the GPU before a reset.
	fatal
)

// resets lists the Xids after which NVIDIA's catalog requires a reset of the GPU or a
// restart of the machine before anything runs there again ("Analyzing Xid Errors with the
// Xid Catalog", immediate action RESET_GPU, RESTART_BM, or a workflow that ends in a
// reset). Left out are 109 (context switch timeout), which NVIDIA's own device plugin
// treats as a program's fault, and 155 (a link that may be down on purpose).
var resets = map[uint64]string{
	46:  "the GPU stopped processing",
	48:  "an uncorrectable memory error",
	62:  "its micro-controller halted",
	64:  "failing memory could not be replaced by spare rows",
	74:  "an NVLink error",
	79:  "it has fallen off the bus",
	95:  "an uncontained memory error",
	110: "a security fault",
	119: "its system processor (GSP) does not answer",
	120: "its system processor (GSP) has failed",
	136: "an NVLink could not be trained",
	140: "an unrecovered memory error",
	143: "it could not be initialized",
	144: "an NVLink error", 145: "an NVLink error", 146: "an NVLink error", 147: "an NVLink error",
	148: "an NVLink error", 149: "an NVLink error", 150: "an NVLink error",
	156: "a part of it was retired",
	158: "a fatal timeout",
	167: "a fatal timeout of its PCIe link",
	169: "its security processor halted",
}

// restarts lists Xids that require at most a restart of the program, by the same catalog;
// the GPU is healthy.
var restarts = []uint64{
	8, 11, 13, 25, 31, 32, 37, 38, 39, 40, 41, 43, 44, 45, 60, 66, 67, 68, 69, 70, 71, 72, 75, 76, 77, 80, 82, 83, 84, 85, 86, 88, 89,
	96, 97, 98, 99, 100, 101, 102, 103, 104, 105, 106, 107, 108, 121, 126, 127, 128, 129, 130, 131, 132, 133, 134, 135, 137, 139, 141,
	152, 153, 160, 161,
}

// noted lists the Xids after which work may continue until the GPU can be reset, and
// others that an administrator should see.
var noted = map[uint64]string{
	63:  "failing memory was marked for replacement; reset the GPU when convenient",
	92:  "many corrected memory errors",
	94:  "a memory error that ended one program; reset the GPU when convenient",
	109: "a context switch timed out; if it happens again, reset the GPU",
	154: "the driver wants something done: see nvidia-smi -q",
}

var programs = func() map[uint64]bool {
	m := map[uint64]bool{}
	for _, n := range restarts {
		m[n] = true
	}
	return m
}()

// classify returns the severity of an Xid, with a sentence if somebody should act. index
// is the card's index in nvidia-smi.
func classify(xid uint64, index int) (severity, string) {
	if what, ok := resets[xid]; ok {
		mend := fmt.Sprintf("stop the daemon, nvidia-smi --gpu-reset -i %d, start it again", index)
		if xid == 79 || xid == 143 || xid == 167 {
			mend = "restart the machine; if it happens again, the card or its slot is broken"
		}
		return fatal, fmt.Sprintf("%s (Xid %d); to mend it: %s", what, xid, mend)
	}
	if what, ok := noted[xid]; ok {
		return suspicious, fmt.Sprintf("%s (Xid %d)", what, xid)
	}
	if programs[xid] {
		return harmless, ""
	}
	return suspicious, fmt.Sprintf("the driver has reported Xid %d, which carma does not know; NVIDIA's Xid catalog tells", xid)
}
