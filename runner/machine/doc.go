// Package machine owns what the daemon knows of the memory and the processors of its
// machine, beside the GPUs.
//
// [Bounds] are the shares of the machine that tasks and helpers of suites may use: they
// check what a submission requests, set the limits of a container and say how much all
// together may allocate. [Memory] reads the memory that the containers use. The mapper
// decides who gets which share.
package machine
