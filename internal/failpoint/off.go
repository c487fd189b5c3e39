//go:build !failpoints

package failpoint

// On reports whether the points are active.
const On = false

// Hit marks a point.
func Hit(string) {}

// Error marks a point at which a test may inject an error.
func Error(string) error { return nil }
