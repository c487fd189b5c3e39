// Package correct corrects estimates of GPU memory by the memory use of earlier runs on
// this machine.
//
// A run that ended well is a measurement: the logarithm of its measured memory over its
// estimate. Such errors have three parts, which different sets of runs share:
//
//   - the machine's: all estimates of a group (a method, an environment, a family
//     of networks) are off by the same factor, because its software differs;
//   - the model's: the estimates of one model are off;
//   - the rest: two settings of one model differ.
//
// The shipped bound is the size of all three together before any measurement here.
// Measurements move the machine's part away from 0, and the model's part away from the
// machine's, by a degree that depends on their number (empirical Bayes: each is shrunk
// towards the more general part). The spreads are learned in the same way, so the bound
// narrows where estimates agree with runs, and widens where they do not.
//
// The package is pure: equal runs give equal corrections, in any order.
package correct
