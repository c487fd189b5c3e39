package endtext

// Says names the failure that a line claims.
type Says string

// The failures that a line can name.
const (
	GPUOOM         Says = "gpu-oom"        // a GPU memory allocation failed
	HostOOM        Says = "host-oom"       // host or shared memory ran out
	DeviceMissing  Says = "device-missing" // the program sees no GPU
	Infrastructure Says = "infrastructure" // a GPU, its driver or MPS failed
	MPSFault       Says = "mps-fault"      // the MPS server failed
	Evicted        Says = "evicted"        // MPS took the client's memory back
	Program        Says = "program"        // the program itself
)

// Strength grades how much a claim counts.
type Strength uint8

const (
	// Weak: the words are in a quotation, in a warning, or in an error that the
	// program handled. They decide nothing.
	Weak Strength = iota + 1
	// Hint: an error that exhausted memory can cause, and other faults too. It counts
	// only beside a measurement.
	Hint
	// Words: exhausted memory is named as the error, and not which memory.
	Words
	// Strong: the line is an error that names the failure.
	Strong
)

// String returns the strength's name.
func (s Strength) String() string {
	return [...]string{"none", "weak", "hint", "words", "strong"}[s]
}

// Claim holds one statement of the output about the end.
type Claim struct {
	Says     Says
	Strength Strength
	Rule     string // the name of the matching rule
	Message  string // one line for people
	Line     string // the line, cut to its size in messages
	// Demand is the GPU memory in bytes that the process would have needed, its use plus
	// the refused request; Refused is the request alone. Both are 0 if the output does
	// not say.
	Demand, Refused int64
}

// Reading holds the claims of the end of an output.
type Reading struct {
	// Cause is the claim that counts, nil if there is none above [Weak].
	Cause *Claim
	// Weak is the first claim that does not count, or nil.
	Weak *Claim
	// Own is the program's own last error where nothing is claimed, or empty.
	Own string
	// CUDA: the output has a CUDA error. A program prints one for its own fault and,
	// under MPS, for a neighbour's.
	CUDA bool
	// Killed: a launcher says that one of its processes was killed by signal 9.
	Killed bool
}
