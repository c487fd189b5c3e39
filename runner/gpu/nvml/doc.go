// Package nvml reads NVIDIA GPUs through the driver's management library.
//
// The library is loaded when a source is opened, so carma builds and runs on a
// machine without it. Everything goes through the interfaces of go-nvml: a test
// puts one of its simulated servers there.
//
// One goroutine makes all calls (worker.go), so a driver that hangs stops only that
// goroutine. Figures of the driver are checked: impossible ones are left out or
// bounded.
//
// docs/gpus.md lists what is read, and what is assumed if the driver cannot tell.
package nvml
