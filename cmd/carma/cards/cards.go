// Package cards opens the real GPUs of this machine, for carma daemon and carma agent.
package cards

import (
	"time"

	"github.com/rs/zerolog"

	"carma/cmd/carma/cli"
)

// Options configure how the GPUs are read.
type Options struct {
	// Only lists the GPUs to use; empty means all. See nvml.Options.
	Only []string
	// DCGMExporter is the URL of metrics with the GPUs' activity, or empty. Every is the
	// time between two readings of them.
	DCGMExporter string
	Every        time.Duration
	Log          zerolog.Logger
}

// NoDriver means that this machine has no NVIDIA driver. As an error of a command it is a
// usage error.
type NoDriver struct{ cli.UsageError }

// Unwrap returns the usage error.
func (e *NoDriver) Unwrap() error { return &e.UsageError }
