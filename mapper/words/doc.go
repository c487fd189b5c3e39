// Package words makes sentences of the mapper's reasons, for `why`, `ps`, the log
// and the errors of submissions. No decision depends on a sentence, so the words
// may change at any time. The journal has codes and figures.
package words
