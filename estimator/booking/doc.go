// Package booking decides how much GPU memory is allocated to a task.
//
// [Predictor.Estimate] has these steps; the function of each step is in parentheses. The
// first of steps 1 to 4 with an estimate counts:
//
//  1. the figure that the user declares (Catalogue.Estimate);
//  2. the measurement of a workload or model, moved to this environment (here);
//  3. the model's network (networkOf), its step on the allocator, and the bound
//     (ask, package methods);
//  4. a few figures of an unknown model (few);
//  5. the uncorrected estimate is stored, so that runs can measure its error (plainly);
//  6. earlier runs of the program at other batch sizes correct it (corrected), or else
//     runs of this and other models on this machine (asHere).
package booking
