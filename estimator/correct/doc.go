// Package correct corrects estimates of GPU memory by what earlier runs on this
// machine have used.
//
// A run that ended well is a measurement: the logarithm of its measured memory
// over its estimate. Such errors have three parts, which are told apart by whose
// runs they are from:
//
//   - the machine's: all estimates of a group (a method, an environment, a family
//     of networks) are off by the same factor, as its software is another one;
//   - the model's: the estimates of one model are off;
//   - the rest: two settings of one model differ.
//
// The shipped bound says how large all three are together before anything was
// measured here. What was measured moves the machine's part from 0, as far as it
// is believed, and the model's from the machine's (empirical Bayes: each is shrunk
// towards the wider one). The spreads are learned in the same way, so the bound
// narrows where estimates agree with runs, and widens where they do not.
//
// The package is pure: equal runs give equal corrections, in any order.
package correct
