// Package methods defines what a method is: a way to estimate a training's GPU
// memory. It answers for one GPU of the training, in bytes. The package has
// carma's own method; those it is compared with are in estimator/rivals.
package methods
