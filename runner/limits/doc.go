// Package limits bounds the GPU memory of a task in tiers: a limit that the
// NVIDIA driver keeps for the container's control group ([Tool], [Keeper]), and
// variables that make frameworks bound themselves ([Growth], [Fractions]). Limits of the
// Multi-Process Service are in package mps.
//
// It knows no engine and no scheduler: the runner says which process, which
// GPUs and how much.
package limits
