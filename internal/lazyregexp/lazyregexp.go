// Package lazyregexp provides regular expressions that are compiled at their first use,
// not when a program starts: every command of carma, and every agent of a node, links all
// packages, and uses few of their expressions.
package lazyregexp

import (
	"regexp"
	"sync"
)

// New returns a function that returns the compiled expression. Its first call compiles
// the text, and panics if it is invalid. It is safe for concurrent use.
func New(text string) func() *regexp.Regexp {
	return sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(text) })
}
