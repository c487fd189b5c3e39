// Package doctor checks everything the daemon depends on, and proves by containers of its
// own what it says about GPUs.
//
// A [Doctor] asks the engine, the journal, the monitor and the clock, and gets what only
// the daemon knows as [Facts]. A [Prover] starts a container on each GPU to prove its
// limits and its suspending, and calibrates the estimates of memory.
package doctor
