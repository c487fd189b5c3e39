package models

// Overrides change a configuration from the command line; zero values leave it as it is.
type Overrides struct {
	Batch          int
	Image          int // side of a square image in pixels
	Sequence       int // tokens of one sample
	Classes        int
	Vocabulary     int
	LoRA           int // rank of the adapters
	GPUs           int
	Precision      Precision
	Optimizer      Optimizer
	Implementation string
	Parallel       Parallel
	Checkpointing  *bool
}
