// Package probe finds a task's model configuration. It runs the task's own program for
// two training steps on the CPU: unchanged, in the task's image, without GPU and network,
// with limits. A folder with carma's Python files is mounted and added to PYTHONPATH, so
// that Python loads them before the program. They record the network that the program
// builds, then end the program (package carma_probe in python/).
//
// The program is not trusted: it could print a forged record. That would only change the
// estimate of its own task's memory, which its owner may declare anyway. The record is
// bounded and checked like any untrusted input.
package probe
