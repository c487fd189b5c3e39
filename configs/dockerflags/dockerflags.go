// Package dockerflags says of each flag of docker run what carma does about it, and
// why. The command line and Compose files share it: a key of a service that means
// the same as a flag is treated the same, in the same words.
package dockerflags

import (
	"strings"

	"carma/internal/lazyregexp"
)

// Verdict says how carma treats a flag.
type Verdict int

// The verdicts.
const (
	// Taken: carma has it, with docker's meaning.
	Taken Verdict = iota
	// Idle: it asks for the default behaviour. It is accepted and does nothing.
	Idle
	// Left: the command line refuses it. In a Compose file it is left out with a
	// warning, because the service means the same without it.
	Left
	// Refused, in a Compose file too.
	Refused
)

// Flag is a flag of docker run.
type Flag struct {
	Name    string
	Letter  string // its short form, or empty
	Verdict Verdict
	// As is carma's own flag for it, or empty if it has the same name.
	As string
	// Same are the values that ask for the default behaviour: on the command line they
	// are accepted and do nothing. The verdict is for all other values.
	Same []string
	// Keys are the keys of a service in a Compose file that mean the same.
	Keys []string
	// Why says why it is idle or refused, and what to do instead. {flag} in it
	// stands for another flag, or for that one's key.
	Why string
}

// All returns the flags, in the order of docker run --help.
func All() []Flag { return all }

// Named finds a flag by its name or letter, without dashes.
func Named(name string) (Flag, bool) {
	for _, f := range all {
		if f.Name == name || f.Letter == name && name != "" {
			return f, true
		}
	}
	return Flag{}, false
}

// OfKey finds the flag that a key of a service means.
func OfKey(key string) (Flag, bool) {
	for _, f := range all {
		for _, k := range f.Keys {
			if k == key {
				return f, true
			}
		}
	}
	return Flag{}, false
}

var other = lazyregexp.New(`\{[a-z-]+\}`)

// ForFlags is Why for people who write flags.
func (f Flag) ForFlags() string {
	return other().ReplaceAllStringFunc(f.Why, func(name string) string { return "--" + strings.Trim(name, "{}") })
}

// ForKeys is Why for people who write a Compose file.
func (f Flag) ForKeys() string {
	return other().ReplaceAllStringFunc(f.Why, func(name string) string {
		if of, ok := Named(strings.Trim(name, "{}")); ok && len(of.Keys) > 0 {
			return of.Keys[0]
		}
		return "x-carma: {" + strings.Trim(name, "{}") + "}"
	})
}
