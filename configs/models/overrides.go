package models

// Overrides contains changes of a configuration from the command line. Zero values change
// nothing.
type Overrides struct {
	Batch      int
	Accumulate int // backward passes before a step of the optimizer
	// GPUs over which the tokens of each sample are spread
	SequenceParallel int
	Image            int // side of a square image in pixels
	Sequence         int // tokens of one sample
	Classes          int
	Vocabulary       int
	Target           int    // number of tokens per sample that an encoder-decoder's decoder writes
	Head             string // the last layers and the loss, like masked-lm; empty for the configuration's
	LoRA             int    // rank of the adapters
	// Targets lists the names of the layers that get adapters, or all-linear. The default is
	// the query and value projections.
	Targets []string
	// bits of each number of the frozen matrices: 4 or 8, or 0 for the precision's
	Bits           int
	GPUs           int
	Precision      Precision
	Optimizer      Optimizer
	Implementation string
	Parallel       Parallel
	Checkpointing  *bool
	Masters        bool
	Attention      string
	Compile        bool // torch.compile
	Padded         bool // batches of text are padded, so attention gets a mask
	Loss           string
	Offload        string
	DoRA           bool // the adapters' weights are decomposed
}
