//go:build race

package runner

// raceDetector: bounds of time do not hold with it.
const raceDetector = true
