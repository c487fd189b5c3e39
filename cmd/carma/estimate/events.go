package estimate

import (
	"bufio"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"

	"carma/cmd/carma/cli"
	"carma/configs/models"
	"carma/estimator/allocator"
	environments "carma/estimator/environment"
	"carma/internal/units"
)

// eventsReport describes the memory of a recorded training.
type eventsReport struct {
	File        string `json:"file"`
	Environment string `json:"environment"`
	Events      int    `json:"events"`
	Context     int64  `json:"context_bytes"`
	Allocated   int64  `json:"allocated_bytes"`
	Reserved    int64  `json:"reserved_bytes"`
	Total       int64  `json:"total_bytes"`
	// Fits is set if the training does not run out of memory in the environment.
	Fits bool `json:"fits"`
}

// estimateEvents replays a recorded training on the simulated allocator.
func estimateEvents(a *cli.App, o options, env *environments.Environment) error {
	events, err := readEvents(o.events)
	if err != nil {
		return err
	}
	convolutions := false
	for _, e := range events {
		convolutions = convolutions || e.Op == allocator.Convolution
	}
	context := env.ContextFor(convolutions)
	options := env.Allocator
	if options.Limit == 0 && env.Capacity > 0 {
		options.Limit = env.Capacity - context
	}
	training := allocator.Training{CuBLAS: env.CuBLAS, Activations: (env.Forward + env.Data + env.Filter) / 3, Weights: env.Weight}
	training.States, training.Copies = optimizerTensors(o.overrides.Optimizer)
	stats, err := allocator.Replay(events, training, options)
	full := errors.Is(err, allocator.ErrOutOfMemory)
	if err != nil && !full {
		return cli.Usagef("", "%s: %v", o.events, err)
	}
	r := eventsReport{
		File: o.events, Environment: env.Name, Events: len(events), Context: context,
		Allocated: stats.PeakAllocated, Reserved: stats.PeakReserved, Total: context + stats.PeakReserved, Fits: !full,
	}
	if *o.json {
		return a.JSON(r)
	}
	if full {
		a.Println(fmt.Sprintf("%s: out of memory on the %s of %s", r.File, units.Bytes(env.Capacity), env.Name))
		return nil
	}
	a.Println(fmt.Sprintf("%s: %s in %s: context %s, reserved %s, of which %s allocated at the peak; %d events",
		r.File, units.Bytes(r.Total), env.Name, units.Bytes(context), units.Bytes(r.Reserved), units.Bytes(r.Allocated), r.Events))
	return nil
}

// optimizerTensors returns the number of tensors of a parameter's size that an optimizer
// keeps, and the number that it allocates for a step (foreach).
func optimizerTensors(o models.Optimizer) (states, copies int) {
	switch o {
	case models.SGD, models.NoOptimizer, models.Adafactor, models.PagedAdamW, models.PagedAdamW8:
		return 0, 0
	case models.SGDMomentum, models.Lion, models.Lion8bit:
		return 1, 0
	case models.RMSprop, models.Adagrad:
		return 1, 1
	}
	return 2, 1
}

// readEvents reads a trace, compressed or not.
func readEvents(path string) ([]allocator.Event, error) {
	f, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, cli.Usagef("", "%s: no such file", path)
	}
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }()
	in := bufio.NewReader(f)
	var text io.Reader = in
	if head, _ := in.Peek(2); len(head) == 2 && head[0] == 0x1f && head[1] == 0x8b {
		z, err := gzip.NewReader(in)
		if err != nil {
			return nil, cli.Usagef("", "%s: %v", path, err)
		}
		text = z
	}
	events, err := allocator.ReadTrace(text)
	if err != nil {
		return nil, cli.Usagef("", "%s: %v", path, err)
	}
	return events, nil
}
