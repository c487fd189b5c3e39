// Package lazyregexp has regular expressions that are compiled when they are first used,
// not when a program starts: every command of carma, and every agent of a node, starts
// with all packages, and uses few of their expressions.
package lazyregexp

import (
	"regexp"
	"sync"
)

// New returns a function that returns the expression of the text. Its first call
// compiles it, and panics if the text is none. It may be called by several goroutines.
func New(text string) func() *regexp.Regexp {
	return sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(text) })
}
