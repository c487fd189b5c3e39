// Package limits bounds the GPU memory of a task in tiers: a limit that the NVIDIA driver
// enforces for the container's control group ([Tool], [Keeper]), and variables that make
// frameworks limit their own use ([Growth], [Fractions]). Limits of the Multi-Process
// Service are in package mps.
//
// The package depends on no engine and no scheduler: the runner passes the process, the
// GPUs and the amounts.
package limits
