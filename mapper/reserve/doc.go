// Package reserve holds GPUs and host memory back for later use.
//
// [Reservations] owns the reservations for users at set times, and the head reservation:
// GPUs, or the host memory of a machine, for the first task in queue order that does not
// fit and whose aging is over, or for a critical task on several GPUs. It answers whether
// a task may use a GPU beside them ([Reservations.Against]), how much memory of it is
// withheld, which machine has host memory and processors for a task
// ([Reservations.HostFor]), and which tasks may backfill reserved GPUs.
//
// It reads the ledger, the expected run times and the order of the queue. It decides
// nothing: the placer chooses the GPUs of the head reservation again in each scheduling
// cycle, and the preempter suspends what backfills. Instants are on the scheduler's clock.
package reserve
