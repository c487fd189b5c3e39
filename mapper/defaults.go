package mapper

import (
	"time"

	"carma/internal/units"
	"carma/mapper/model"
	"carma/mapper/policy"
	"carma/mapper/preempt"
)

// DefaultOptions returns the default options of policy carma, for a shared server with
// estimates.
func DefaultOptions() model.Options { return DefaultsOf("carma") }

// DefaultsOf returns the default options with the changes that a policy makes to them.
// The policy must be one of [policy.Names].
func DefaultsOf(name string) model.Options {
	o := defaults
	o.Policy = name
	p, err := policy.Named(name)
	if err != nil {
		panic("mapper.DefaultsOf: " + err.Error())
	}
	if p.Defaults != nil {
		p.Defaults(&o)
	}
	return o
}

var defaults = model.Options{
	Headroom:         512 * units.MiB,
	SMACTCap:         0.80,
	WarmUp:           30 * time.Second,
	IdleFirst:        true,
	LookAhead:        64,
	Ageing:           10 * time.Minute,
	Attempts:         4,
	BlamelessRetries: 8,
	Backoff:          10 * time.Second,
	Watchdog:         model.WatchdogRelaunch,
	IdleReport:       30 * time.Minute,
	IdleStop:         4 * time.Hour,
	SuspendLeast:     preempt.DefaultSuspendLeast,
}

// Validate returns an error for the first invalid option, with what to write instead.
func Validate(o model.Options) error {
	if _, err := policy.Named(o.Policy); err != nil {
		return err
	}
	return o.Validate()
}
