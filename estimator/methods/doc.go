// Package methods holds the ways to estimate a training's GPU memory from its
// model configuration: carma's own and those it is compared with, each as its
// source defines it. A method answers for one GPU of the training, in bytes.
package methods
