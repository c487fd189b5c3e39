package main

import (
	"errors"
	"fmt"
	"strconv"
	"time"

	"carma/mapper/units"

	"github.com/spf13/pflag"
)

// parsed is a flag whose text is turned into a T when it is set.
type parsed[T any] struct {
	to    *T
	parse func(string) (T, error)
	kind  string
	text  string
}

func (p *parsed[T]) String() string { return p.text }
func (p *parsed[T]) Type() string   { return p.kind }

func (p *parsed[T]) Set(s string) error {
	v, err := p.parse(s)
	if err == nil {
		*p.to, p.text = v, s
	}
	return err
}

// memoryFlag takes an amount of memory, in bytes.
func memoryFlag(flags *pflag.FlagSet, to *int64, name, usage string) {
	flags.Var(&parsed[int64]{to: to, kind: "memory", parse: func(s string) (int64, error) {
		b, err := units.ParseBytes(s)
		if err == nil && b == 0 {
			err = errors.New("nothing is not an amount of memory; write for example 512M or 12G")
		}
		return int64(b), err
	}}, name, usage)
}

// durationFlag takes a time above zero.
func durationFlag(flags *pflag.FlagSet, to *time.Duration, name, usage string) {
	flags.Var(&parsed[time.Duration]{to: to, kind: "time", parse: func(s string) (time.Duration, error) {
		d, err := time.ParseDuration(s)
		if err != nil || d <= 0 {
			return 0, fmt.Errorf("%q is not a time; write for example 30s, 90m or 2h", s)
		}
		return d, nil
	}}, name, usage)
}

// countFlag takes a whole number from least on.
func countFlag(flags *pflag.FlagSet, to *int, least int, name, usage string) {
	countFlagP(flags, to, least, name, "", usage)
}

func countFlagP(flags *pflag.FlagSet, to *int, least int, name, letter, usage string) {
	flags.VarP(&parsed[int]{to: to, kind: "N", parse: func(s string) (int, error) {
		n, err := strconv.Atoi(s)
		if err != nil || n < least {
			return 0, fmt.Errorf("%q is not a whole number from %d on", s, least)
		}
		return n, nil
	}}, name, letter, usage)
}

// processorsFlag takes processors, in whole and parts; less than a hundredth is
// nothing to an engine.
func processorsFlag(flags *pflag.FlagSet, to *float64, name, usage string) {
	flags.Var(&parsed[float64]{to: to, kind: "processors", parse: func(s string) (float64, error) {
		n, err := strconv.ParseFloat(s, 64)
		if err != nil || !(n >= 0.01) || n > 1e6 {
			return 0, fmt.Errorf("%q is not a number of processors from 0.01 on; write for example 4 or 1.5", s)
		}
		return n, nil
	}}, name, usage)
}

// processesFlag takes a number of processes.
func processesFlag(flags *pflag.FlagSet, to *int64, name, usage string) {
	flags.Var(&parsed[int64]{to: to, kind: "processes", parse: func(s string) (int64, error) {
		n, err := strconv.ParseInt(s, 10, 64)
		if err != nil || n < 1 {
			return 0, fmt.Errorf("%q is not a whole number from 1 on; write for example 4096", s)
		}
		return n, nil
	}}, name, usage)
}

// choiceFlag takes one of some words.
func choiceFlag(flags *pflag.FlagSet, to *string, words []string, name, usage string) {
	flags.Var(&parsed[string]{to: to, kind: "word", parse: func(s string) (string, error) {
		return s, oneOf(s, words)
	}}, name, usage)
}
