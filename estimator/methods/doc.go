// Package methods defines a method: a way to estimate a training's memory on one GPU, in
// bytes. The package contains carma's own method; estimator/rivals contains the methods
// with which it is compared.
package methods
