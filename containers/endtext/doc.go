// Package endtext reads the end of a failed program's output and returns the failure that
// the output claims: GPU memory, host memory, a lost device, MPS, or the program itself.
//
// A [Claim] is the claim of one line. Its strength depends on the position of the words:
// they count at the beginning of an error, but not inside prose, quotes, a warning or a
// handled error. The package decides nothing: containers.Classify weighs claims against
// measurements.
//
// The rules are a table ([Rules]); each rule has a line that it must match and a line
// that it must not match. The folder testdata has complete outputs of failed programs.
package endtext
