package rules

import (
	"carma/internal/suggest"
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"
)

func oneOf(what, word string, words []string) error {
	if slices.Contains(words, word) {
		return nil
	}
	if near := suggest.Near(word, words); len(near) > 0 {
		return fmt.Errorf("unknown %s %q; did you mean %s?", what, word, near[0])
	}
	return fmt.Errorf("unknown %s %q; it is one of %s", what, word, strings.Join(words, ", "))
}

// Among returns a check that accepts words.
func Among(what string, words []string) func(string) error {
	return func(word string) error { return oneOf(what, word, words) }
}

// Within returns a check that refuses a number outside of least to most. off describes
// the meaning of 0.
func Within(least, most float64, off string) func(float64) error {
	return func(v float64) error {
		if v >= least && v <= most {
			return nil
		}
		return fmt.Errorf("%v is not between %v and %v; nearest: %v; %s", v, least, most, min(max(v, least), most), off)
	}
}

// AtLeast returns a check that refuses values below least. text has a verb for the value.
func AtLeast[T cmp.Ordered](least T, text string) func(T) error {
	return func(v T) error {
		if v < least {
			return fmt.Errorf(text, v)
		}
		return nil
	}
}

// NotNegative refuses negative durations.
var NotNegative = AtLeast(time.Duration(0), "%s is negative; write for example 10s")

// OrNone returns a check that also accepts the zero value.
func OrNone[T comparable](check func(T) error) func(T) error {
	return func(v T) error {
		var none T
		if v == none {
			return nil
		}
		return check(v)
	}
}
