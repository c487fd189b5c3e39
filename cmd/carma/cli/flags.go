package cli

import (
	"cmp"
	"fmt"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"carma/cmd/carma/settings"
	"carma/internal/suggest"
	"carma/internal/units"
	"carma/runner/api"
)

// Parsed is a flag whose text is parsed into a T when it is set.
type Parsed[T any] struct {
	To    *T
	Parse func(string) (T, error)
	Kind  string
	Text  string
}

func (p *Parsed[T]) String() string { return p.Text }
func (p *Parsed[T]) Type() string   { return p.Kind }

func (p *Parsed[T]) Set(s string) error {
	v, err := p.Parse(s)
	if err == nil {
		*p.To, p.Text = v, s
	}
	return err
}

// MemoryFlag adds a flag for an amount of memory, in bytes.
func MemoryFlag(flags *pflag.FlagSet, to *int64, name, usage string) {
	flags.Var(&Parsed[int64]{To: to, Kind: "memory", Parse: func(s string) (int64, error) {
		b, err := units.ParseMemory(s)
		return int64(b), err
	}}, name, usage)
}

// DurationFlag adds a flag for a time above zero.
func DurationFlag(flags *pflag.FlagSet, to *time.Duration, name, usage string) {
	flags.Var(&Parsed[time.Duration]{To: to, Kind: "time", Parse: units.ParseSpan}, name, usage)
}

// TimeFlag adds a flag for a time of at least zero. The value in to is its default.
func TimeFlag(flags *pflag.FlagSet, to *time.Duration, name, letter, usage string) {
	text := ""
	if *to > 0 {
		text = to.String()
	}
	flags.VarP(&Parsed[time.Duration]{To: to, Kind: "time", Parse: units.ParseTime, Text: text}, name, letter, usage)
}

// CountFlag adds a flag for an integer of at least least.
func CountFlag(flags *pflag.FlagSet, to *int, least int, name, usage string) {
	CountFlagP(flags, to, least, name, "", usage)
}

// CountFlagP is CountFlag with a one-letter flag.
func CountFlagP(flags *pflag.FlagSet, to *int, least int, name, letter, usage string) {
	flags.VarP(&Parsed[int]{To: to, Kind: "N", Parse: func(s string) (int, error) {
		n, err := units.ParseCount(s, int64(least))
		return int(n), err
	}}, name, letter, usage)
}

// ChoiceFlag adds a flag for one of some words.
func ChoiceFlag(flags *pflag.FlagSet, to *string, words []string, name, usage string) {
	flags.Var(&Parsed[string]{To: to, Kind: "word", Parse: func(s string) (string, error) {
		return s, suggest.OneOf(s, words)
	}}, name, usage)
}

// fieldValue is a flag for a field of a submission.
type fieldValue struct {
	field api.Field
	to    *api.Submit
	text  string
	set   bool
	first string // the last value that another replaced, or empty
}

// Repeated returns a line for each flag of a field that was set to different values: the
// last value counts.
func Repeated(flags *pflag.FlagSet) (lines []string) {
	flags.Visit(func(f *pflag.Flag) {
		if v, is := f.Value.(*fieldValue); is && v.first != "" {
			lines = append(lines, fmt.Sprintf("--%s comes twice: %s counts, %s does not", f.Name, v.text, v.first))
		}
	})
	return lines
}

func (v *fieldValue) String() string { return v.text }
func (v *fieldValue) Type() string   { return cmp.Or(v.field.Unit, "bool") }

func (v *fieldValue) Set(s string) error {
	if v.field.List && !v.set { // the first value replaces the default
		v.field.Clear(v.to)
	}
	err := v.field.Set(v.to, s)
	if err == nil {
		if v.set && !v.field.List && v.text != s {
			v.first = v.text
		}
		v.text, v.set = s, true
	}
	return err
}

// FieldFlag adds the flag of a field of a submission.
func FieldFlag(cmd *cobra.Command, f api.Field, to *api.Submit) {
	flag := cmd.Flags().VarPF(&fieldValue{field: f, to: to}, f.Name, f.Letter, f.Help)
	if f.Yes() {
		flag.NoOptDefVal = "true"
	}
	flag.Hidden = f.Old()
	if f.Words != nil {
		Complete(cmd, f.Name, Words(f.Words))
	}
}

// DaemonFlags adds a flag for every key that is not a flag of all commands.
func DaemonFlags(flags *pflag.FlagSet) {
	for _, name := range settings.Keys() {
		if name != "socket" {
			settings.AddFlags(flags, name)
		}
	}
	flags.SetNormalizeFunc(func(_ *pflag.FlagSet, name string) pflag.NormalizedName {
		if name == "engine" { // elsewhere, the engine has this name
			name = "driver"
		}
		return pflag.NormalizedName(name)
	})
}

// JSONFlag adds --json to a listing command.
func JSONFlag(cmd *cobra.Command) *bool {
	return cmd.Flags().Bool("json", false, "print JSON")
}
