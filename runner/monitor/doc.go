// Package monitor reads the GPUs again and again and owns the observations: the last
// samples, the activity over a window, the memory curve of each running attempt, and the
// GPUs that cannot be read or are broken.
//
// It answers how much memory an attempt has used and whether it ever touched its GPUs. It
// reports the changes since the last sample that was accepted, and decides nothing.
package monitor
