// Package nvml reads NVIDIA GPUs through the driver's management library.
//
// The library is loaded when a source is opened, so carma builds and runs on a
// machine without it. Everything goes through the interfaces of go-nvml: a test
// puts one of its simulated servers there.
//
// All calls are made by one goroutine (worker.go): a driver that hangs takes
// that goroutine with it and nothing else. What the driver says is checked
// before it is passed on; figures that cannot be are left out or bounded.
//
// docs/gpus.md tells what is read, and what where the driver cannot tell.
package nvml
