//go:build race

package report

// raceDetector: bounds of time do not hold with it.
const raceDetector = true
