// Package trial runs the containers in which the daemon tries something, for carma doctor
// or as the engine's canary.
//
// They belong to no attempt: their labels name task 0, which does not exist. [Trials]
// names them and answers which of them are in use, so that a sweep keeps these and removes
// what a killed daemon left.
package trial
