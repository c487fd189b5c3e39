// Package limiter owns the limits of the GPU memory of tasks on this machine: by the
// driver for the container's control group, and by the variables of frameworks. Package
// limits has the mechanisms, package sharing the limits of MPS.
//
// A [Limiter] answers whether the driver can limit, and in which tiers a task on a GPU is
// limited. An [Attempt] parks the container of an attempt, has the driver limit it to its
// bounds, and returns the variables for its frameworks.
package limiter
