// Package probe finds a task's model configuration by running its own program
// for two training steps on the CPU: unchanged, in the task's image, without
// GPU and network, with limits. A folder of Python files of ours is mounted
// and PYTHONPATH names it, so that Python loads them before the program; they
// record what the program builds and end it (package carma_probe in python/).
//
// The program is not trusted: it could print a forged record. That would only be
// an estimate of its own task's memory, which its owner may declare anyway. The
// record is bounded and checked like any foreign input.
package probe
