// Package words makes sentences of the mapper's reasons: for `why`, `ps`, the
// log and the errors of submissions. Nothing is ever decided by them, so they
// may be worded anew at any time; the journal holds codes and figures.
package words
