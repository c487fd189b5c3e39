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

// DockerHint returns the alternative for a flag of docker run that carma does not have,
// or "" if docker run has no such flag either.
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

// byCaller lists flags with values that request the default behaviour, depending on the
// caller.
var byCaller = map[string]func(value string) bool{
	"cap-drop": func(string) bool { return os.Getuid() != 0 },
}

// hasValues reports whether some values are accepted of a flag that carma lacks.
func hasValues(f dockerflags.Flag) bool {
	return len(f.Same) > 0 || byCaller[f.Name] != nil
}

// sameValue is a flag of docker run with which only some values are accepted.
type sameValue struct {
	dockerflags.Flag
	retries *int // set by --restart=on-failure
	value   string
}

func (v *sameValue) String() string { return v.value }
func (v *sameValue) Type() string   { return "string" }

// Set accepts a value that changes nothing, and docker's on-failure:N.
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

// idleFlags adds the flags of docker run that request the default behaviour, including
// flags for which only some values do. --restart=on-failure:N sets retries.
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

// carmas returns carma's name for a flag of docker run with the same meaning but another
// name.
func carmas(_ *pflag.FlagSet, name string) pflag.NormalizedName {
	f, _ := dockerflags.Named(name)
	if len(name) == 1 {
		f.As = ""
	}
	return pflag.NormalizedName(cmp.Or(f.As, name))
}
