package interference

import "math"

// Busy is the share of time in which at least one kernel of the task runs when
// it is alone, whatever part of the GPU the kernel fills: what NVML calls GPU
// utilization, and what a time-sliced GPU hands out.
//
// It is at least SMACT, a mean over SMs, and at least DRAMA. Profiles do not
// tell it; it is taken as the cube root of the larger of the two. Where it was
// published (AEGIS: three solo profiles, and the means of three traces run with
// one task per GPU), that is 0.15 off at most and 0.06 on average: 0.75 at
// SMACT 0.42, where SMACT itself would be 0.33 off.
func (l Load) Busy() float64 { return math.Cbrt(max(share(l.SMACT), share(l.DRAMA))) }

// Gap is the share of time in which no kernel of the task runs when it goes at a
// speed. What is slowed down are its kernels, not what it does between them.
func (l Load) Gap(speed float64) float64 { return (1 - l.Busy()) * speed }
