// Package observe enters observations of GPUs and machines in the ledger.
//
// An [Observer] owns nothing. It updates the inventory ([Observer.GPUsFound],
// [Observer.HostsFound]), faults and resets, and the use in samples ([Observer.Sampled]). It
// raises the grant of a task that exceeds it as far as the card has room
// ([Observer.GrowGrant]), and cuts grants that are larger than needed
// ([Observer.Shrink]).
//
// It changes the ledger, books grants with the users, and passes activity to the predictor
// and to the preempter, which stops tasks where memory is short. It decides GrantExceeded,
// and GrantChanged through the users. Memory is in bytes.
package observe
