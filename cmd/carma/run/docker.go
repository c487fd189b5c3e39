package run

import (
	"cmp"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/pflag"

	"carma/configs/dockerflags"
)

// DockerHint says what to do instead of a flag of docker run that carma does not have, or
// is empty if docker run has no such flag either.
func DockerHint(name string) string {
	name = strings.TrimLeft(name, "-")
	switch name {
	case "gpu":
		return "write --gpus"
	case "net":
		name = "network"
	}
	f, is := dockerflags.Named(name)
	if !is || f.Verdict < dockerflags.Left || hasValues(f) {
		return ""
	}
	return f.ForFlags()
}

// byCaller are flags with values that ask for the default behaviour, depending on the
// caller.
var byCaller = map[string]func(value string) bool{
	"cap-drop": func(string) bool { return os.Getuid() != 0 },
}

// hasValues says whether some values of a flag are taken that carma has not.
func hasValues(f dockerflags.Flag) bool {
	return len(f.Same) > 0 || byCaller[f.Name] != nil
}

// sameValue is a flag of docker run of which only some values are taken.
type sameValue struct {
	dockerflags.Flag
	retries *int // what --restart=on-failure sets
	value   string
}

func (v *sameValue) String() string { return v.value }
func (v *sameValue) Type() string   { return "string" }

// Set takes a value that changes nothing, and docker's on-failure:N.
func (v *sameValue) Set(value string) error {
	v.value = value
	if slices.Contains(v.Same, value) {
		return nil
	}
	if may := byCaller[v.Name]; may != nil && may(value) {
		return nil
	}
	if times, is := strings.CutPrefix(value, "on-failure:"); is && v.Name == "restart" {
		n, err := strconv.Atoi(times)
		if err != nil || n < 0 || n > 1e9 {
			return fmt.Errorf("%q is not a number of times", times)
		}
		*v.retries = n
		return nil
	}
	return fmt.Errorf("%q: %s", value, v.ForFlags())
}

// idleFlags adds the flags of docker run that ask for the default behaviour, also flags
// for which only some values do. retries is set by --restart=on-failure:N.
func idleFlags(flags *pflag.FlagSet, retries *int) {
	for _, f := range dockerflags.All() {
		switch {
		case f.Verdict == dockerflags.Idle:
			flags.BoolP(f.Name, f.Letter, false, f.ForFlags())
		case hasValues(f):
			flags.VarP(&sameValue{Flag: f, retries: retries}, f.Name, f.Letter, f.ForFlags())
		default:
			continue
		}
		flags.Lookup(f.Name).Hidden = true
	}
}

// carmas is carma's name for a flag of docker run: with docker's meaning, under
// another name.
func carmas(_ *pflag.FlagSet, name string) pflag.NormalizedName {
	f, _ := dockerflags.Named(name)
	if len(name) == 1 {
		f.As = ""
	}
	return pflag.NormalizedName(cmp.Or(f.As, name))
}
