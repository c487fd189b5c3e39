//go:build !race

package report

// raceDetector reports whether the race detector is on. Time limits do not hold with it.
const raceDetector = false
