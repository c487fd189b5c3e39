package interference

import "math"

// Busy returns the share of time in which at least one kernel of the task runs when the
// task is alone, regardless of the part of the GPU that the kernel fills. It corresponds
// to NVML's GPU utilization, and to the time that a time-sliced GPU divides.
//
// It is at least SMACT, a mean over SMs, and at least DRAMA. Profiles do not contain it;
// it is estimated as the cube root of the larger of the two. In published data (AEGIS:
// three solo profiles, and the means of three traces run with one task per GPU) the error
// is at most 0.15 and 0.06 on average: 0.75 at SMACT 0.42, where SMACT itself would be
// off by 0.33.
func (l Load) Busy() float64 { return math.Cbrt(max(share(l.SMACT), share(l.DRAMA))) }

// Gap returns the share of time in which no kernel of the task runs, at a given speed.
// Sharing slows down only the task's kernels, not its work between them.
func (l Load) Gap(speed float64) float64 { return (1 - l.Busy()) * speed }
