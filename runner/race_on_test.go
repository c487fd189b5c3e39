//go:build race

package runner

// raceDetector reports whether the race detector is on. Time limits do not hold with it.
const raceDetector = true
