package root

import (
	"regexp"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// asTyped makes an error name flags as typed: --memory or -m if carma's own name is
// --host-mem.
func asTyped(cmd *cobra.Command, args []string, err error) error {
	if err == nil || cmd == nil {
		return err
	}
	text, done := err.Error(), map[string]bool{} // only for look-up
	typed := typedFlags(cmd, args)
	for _, t := range typed {
		if done[t.flag.Name] {
			continue
		}
		done[t.flag.Name] = true
		same := func(o typedFlag) bool { return o.flag == t.flag }
		if i := slices.IndexFunc(typed, func(o typedFlag) bool { return same(o) && o.value != "" && strings.Contains(text, o.value) }); i >= 0 {
			t = typed[i]
		} else if slices.ContainsFunc(typed, func(o typedFlag) bool { return same(o) && o.as == "--"+o.flag.Name }) {
			continue
		}
		own := regexp.MustCompile(`--` + regexp.QuoteMeta(t.flag.Name) + `([^a-z-]|$)`)
		text = own.ReplaceAllString(text, t.as+"${1}")
	}
	if text == err.Error() {
		return err
	}
	return &typedError{err, text}
}

// typedError is an error in other words.
type typedError struct {
	error
	text string
}

func (e *typedError) Error() string { return e.text }
func (e *typedError) Unwrap() error { return e.error }

// typedFlag is a flag on a command line; as is the typed form, -m or --memory.
type typedFlag struct {
	as, value string
	flag      *pflag.Flag
}

// typedFlags finds a command's flags on its command line, without the program's words.
func typedFlags(cmd *cobra.Command, args []string) (all []typedFlag) {
	words := strings.Count(cmd.CommandPath(), " ") // words of the command itself
	for i := 0; i < len(args) && args[i] != "--"; i++ {
		arg := args[i]
		if len(arg) < 2 || arg[0] != '-' {
			if words--; words < 0 && slices.Contains([]string{"run", "rerun", "exec"}, cmd.Name()) {
				break // the words after it belong to a program
			}
			continue
		}
		t, inside := typedAs(cmd.Flags(), arg)
		if t.flag == nil {
			continue
		}
		if !inside && t.flag.NoOptDefVal == "" && i+1 < len(args) {
			i++
			t.value = args[i]
		}
		all = append(all, t)
	}
	return all
}

// typedAs finds the flag in one word, the last of several letters. inside is set if its
// value is in the same word.
func typedAs(flags *pflag.FlagSet, arg string) (t typedFlag, inside bool) {
	if name, is := strings.CutPrefix(arg, "--"); is {
		name, value, inside := strings.Cut(name, "=")
		return typedFlag{"--" + name, value, flags.Lookup(name)}, inside
	}
	for i := 1; i < len(arg); i++ {
		f := flags.ShorthandLookup(arg[i : i+1])
		if t = (typedFlag{"-" + arg[i:i+1], "", f}); f == nil {
			return t, false
		}
		if f.NoOptDefVal == "" && i+1 < len(arg) {
			t.value = strings.TrimPrefix(arg[i+1:], "=")
			return t, true
		}
	}
	return t, false
}
