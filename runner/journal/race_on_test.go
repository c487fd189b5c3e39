//go:build race

package journal

// raced reports whether the race detector is on. SQLite is then many times slower, and most
// tests here have one goroutine, so they test fewer cases. make test runs all cases without the
// race detector.
const raced = true
