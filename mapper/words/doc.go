// Package words turns the mapper's reasons into sentences, for `why`, `ps`, the log and
// the errors of submissions. No decision depends on a sentence, so the words may change
// at any time. The journal contains codes and figures.
package words
