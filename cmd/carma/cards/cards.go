// Package cards opens the real GPUs of this machine, for carma daemon and carma agent.
package cards

import (
	"time"

	"github.com/rs/zerolog"

	"carma/cmd/carma/cli"
)

// Options say how the GPUs are read.
type Options struct {
	// Only are the cards to use, all if empty. See nvml.Options.
	Only []string
	// DCGMExporter is the address of a page with the cards' activity, or empty. Every is
	// the time between two readings of it.
	DCGMExporter string
	Every        time.Duration
	Log          zerolog.Logger
}

// NoDriver says that there is no NVIDIA driver here. As an error of a command it is one
// of usage.
type NoDriver struct{ cli.UsageError }

// Unwrap returns the error of usage.
func (e *NoDriver) Unwrap() error { return &e.UsageError }
