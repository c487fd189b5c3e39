// Package engine owns what the daemon knows about the health of its container engine: its
// last answer, since when it does not answer, and the calls that it refuses although it
// answers.
//
// It answers whether containers can be started and why not, repeats calls until the engine
// answers ([Health.Retry], [Health.Insist]), and gives each call a time limit ([Bounded]).
package engine
