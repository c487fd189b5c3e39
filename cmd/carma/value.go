package main

import (
	"cmp"
	"time"

	"carma/configs/nearest"
	"carma/mapper/units"
	"carma/runner/api"

	"github.com/spf13/cobra"
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
		b, err := units.ParseMemory(s)
		return int64(b), err
	}}, name, usage)
}

// durationFlag takes a time above zero.
func durationFlag(flags *pflag.FlagSet, to *time.Duration, name, usage string) {
	flags.Var(&parsed[time.Duration]{to: to, kind: "time", parse: units.ParseSpan}, name, usage)
}

// countFlag takes a whole number from least on.
func countFlag(flags *pflag.FlagSet, to *int, least int, name, usage string) {
	countFlagP(flags, to, least, name, "", usage)
}

func countFlagP(flags *pflag.FlagSet, to *int, least int, name, letter, usage string) {
	flags.VarP(&parsed[int]{to: to, kind: "N", parse: func(s string) (int, error) {
		n, err := units.ParseCount(s, int64(least))
		return int(n), err
	}}, name, letter, usage)
}

// choiceFlag takes one of some words.
func choiceFlag(flags *pflag.FlagSet, to *string, words []string, name, usage string) {
	flags.Var(&parsed[string]{to: to, kind: "word", parse: func(s string) (string, error) {
		return s, nearest.OneOf(s, words)
	}}, name, usage)
}

// fieldValue is a flag for a field of a submission.
type fieldValue struct {
	field api.Field
	to    *api.Submit
	text  string
}

func (v *fieldValue) String() string { return v.text }
func (v *fieldValue) Type() string   { return cmp.Or(v.field.Unit, "bool") }

func (v *fieldValue) Set(s string) error {
	err := v.field.Set(v.to, s)
	if err == nil {
		v.text = s
	}
	return err
}

// submissionFlags adds a flag for each field that one text can say.
func submissionFlags(cmd *cobra.Command, to *api.Submit) {
	for _, f := range api.Fields() {
		fieldFlag(cmd, f, to)
	}
}

func fieldFlag(cmd *cobra.Command, f api.Field, to *api.Submit) {
	flag := cmd.Flags().VarPF(&fieldValue{field: f, to: to}, f.Name, f.Letter, f.Help)
	if f.Yes() {
		flag.NoOptDefVal = "true"
	}
	flag.Hidden = f.Old()
	if f.Words != nil {
		complete(cmd, f.Name, words(f.Words))
	}
}
