// Package dockerflags lists carma's treatment of each flag of docker run, and the reason.
// The command line and Compose files share the list: a key of a service that means the
// same as a flag is treated the same, in the same words.
package dockerflags

import (
	"strings"

	"carma/internal/lazyregexp"
)

// Verdict is carma's treatment of a flag.
type Verdict int

// The verdicts.
const (
	// Taken means that carma supports the flag, with docker's meaning.
	Taken Verdict = iota
	// Idle means that the flag requests the default behaviour. It is accepted and has no
	// effect.
	Idle
	// Left means that the command line refuses the flag. In a Compose file it is ignored
	// with a warning, because the service works the same without it.
	Left
	// Refused means that the command line and Compose files refuse the flag.
	Refused
)

// Flag is a flag of docker run.
type Flag struct {
	Name    string
	Letter  string // its short form, or empty
	Verdict Verdict
	// As is carma's name for the flag, or empty if it is the same.
	As string
	// Same lists the values that request the default behaviour. On the command line they are
	// accepted and have no effect. The verdict is for all other values.
	Same []string
	// Keys lists the keys of a service in a Compose file that mean the same.
	Keys []string
	// Why is the reason why the flag is idle or refused, and what to do instead. {flag} in
	// it stands for another flag, or for that flag's key.
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

// OfKey returns the flag that means the same as a key of a service.
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

// ForFlags returns Why, worded for users of flags.
func (f Flag) ForFlags() string {
	return other().ReplaceAllStringFunc(f.Why, func(name string) string { return "--" + strings.Trim(name, "{}") })
}

// ForKeys returns Why, worded for authors of a Compose file.
func (f Flag) ForKeys() string {
	return other().ReplaceAllStringFunc(f.Why, func(name string) string {
		if of, ok := Named(strings.Trim(name, "{}")); ok && len(of.Keys) > 0 {
			return of.Keys[0]
		}
		return "x-carma: {" + strings.Trim(name, "{}") + "}"
	})
}
