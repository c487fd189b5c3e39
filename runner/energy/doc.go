// Package energy owns the energy accounts: the joules of each running attempt, the joules
// and the GPU-seconds of each user, and the joules of GPUs without tasks.
//
// It answers how much energy an attempt and a user have used. The caller passes each
// sample of the GPUs and each start and end of a container, and calls [Accounts.Store], so that
// the sums grow over restarts.
package energy
