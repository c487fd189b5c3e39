// Package methods says what a way to estimate a training's GPU memory is, and
// has carma's own. A method answers for one GPU of the training, in bytes. Those
// that carma's is compared with are in estimator/rivals.
package methods
