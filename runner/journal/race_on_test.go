//go:build race

package journal

// raced: with the race detector SQLite takes many times as long, and most tests
// here have one goroutine. They look at less then; make test runs all of it without.
const raced = true
