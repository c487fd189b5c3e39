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
	Program        Says = "program"        // a fault of the program itself
)

// Strength grades how much a claim counts.
type Strength uint8

const (
	// Weak means that the words are in a quotation, in a warning, or in an error that the
	// program handled. It decides nothing.
	Weak Strength = iota + 1
	// Hint is an error that exhausted memory, but also other faults, can cause. It counts
	// only together with a measurement.
	Hint
	// Words is an error that reports that memory is exhausted, but not which memory.
	Words
	// Strong is an error that names the failure.
	Strong
)

// String returns the strength's name.
func (s Strength) String() string {
	return [...]string{"none", "weak", "hint", "words", "strong"}[s]
}

// Claim is one statement of a program's output about why the program ended.
type Claim struct {
	Says     Says
	Strength Strength
	Rule     string // the name of the matching rule
	Message  string // one line for people
	Line     string // the line, shortened as in messages
	// Demand is the GPU memory in bytes that the process would have needed, its use plus the
	// refused request; Refused is the request alone. Both are 0 if the output does not
	// mention them.
	Demand, Refused int64
}

// Reading contains the claims at the end of an output.
type Reading struct {
	// Cause is the claim that counts, or nil if there is none above [Weak].
	Cause *Claim
	// Weak is the first claim that does not count, or nil.
	Weak *Claim
	// Own is the program's last error if nothing is claimed, or empty.
	Own string
	// CUDA is set if the output has a CUDA error. A program prints one for its own fault
	// and, under MPS, for a neighbour's fault.
	CUDA bool
	// Killed is set if a launcher reports that one of its processes was killed by signal 9.
	Killed bool
}
