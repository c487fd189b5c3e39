// Package suggest finds the name that was probably meant by a mistyped name.
package suggest

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// Names returns at most n names, ordered by the number of edits from word, then by
// length, then alphabetically. It ignores case. If word is the beginning of a name, that
// counts as one edit. It always returns names, however different they are; the caller
// decides which to print.
func Names(word string, names []string, n int) []string {
	word = strings.ToLower(word)
	type candidate struct {
		name  string
		edits int
	}
	all := make([]candidate, 0, len(names))
	for _, name := range names {
		lower := strings.ToLower(name)
		edits := Distance(word, lower)
		if len(word) > 2 && strings.HasPrefix(lower, word) {
			edits = min(edits, 1)
		}
		all = append(all, candidate{name, edits})
	}
	slices.SortFunc(all, func(a, b candidate) int {
		return cmp.Or(cmp.Compare(a.edits, b.edits), cmp.Compare(len(a.name), len(b.name)), cmp.Compare(a.name, b.name))
	})
	var out []string
	for _, c := range all[:min(n, len(all))] {
		out = append(out, c.name)
	}
	return out
}

// Near returns the names that word may be a misspelling of, the likeliest first, or nil
// if none is similar.
func Near(word string, names []string) []string {
	limit := min(max(1, len(word)/3), 4) // with two of three letters changed it is another word
	var near []string
	for _, name := range Names(word, names, len(names)) {
		if d := Distance(word, name); d <= limit && d < max(len(word), len(name)) {
			near = append(near, name)
		}
	}
	return near
}

// OneOf refuses a word that is not in words. The error contains the nearest word and all
// words.
func OneOf(word string, words []string) error {
	if slices.Contains(words, word) {
		return nil
	}
	err := fmt.Errorf("%q is not one of %s", word, strings.Join(words, ", "))
	if near := Near(word, words); len(near) > 0 {
		err = fmt.Errorf("%w; nearest: %s", err, near[0])
	}
	return err
}

// longest is the largest length in bytes of a word, which bounds the work on untrusted
// input. None of carma's names is longer.
const longest = 128

// Distance counts insertions, deletions, substitutions and swaps of neighbours, in bytes
// (optimal string alignment, with only three rows of the table).
func Distance(a, b string) int {
	if len(a) > longest || len(b) > longest {
		return max(len(a), len(b))
	}
	var before, last, next [longest + 1]int
	for j := range len(b) + 1 {
		last[j] = j
	}
	for i := 1; i <= len(a); i++ {
		next[0] = i
		for j := 1; j <= len(b); j++ {
			cost := 1
			if a[i-1] == b[j-1] {
				cost = 0
			}
			next[j] = min(last[j]+1, next[j-1]+1, last[j-1]+cost)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				next[j] = min(next[j], before[j-2]+1)
			}
		}
		before, last = last, next
	}
	return last[len(b)]
}
