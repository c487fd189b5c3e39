// Package methods defines a method: a way to estimate a training's GPU memory, for one
// GPU, in bytes. The package has carma's own method; estimator/rivals has the methods
// that it is compared with.
package methods
