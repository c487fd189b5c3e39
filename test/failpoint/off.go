//go:build !failpoints

package failpoint

// On tells whether the points do anything.
const On = false

// Hit marks a point.
func Hit(string) {}

// Error marks a point at which an error may be put in.
func Error(string) error { return nil }
