// Package explain says why a task cannot run, or does not run yet.
//
// An [Explainer] owns nothing. It answers whether a request can be met at all
// ([Explainer.Impossible]), with the nearest possible value if it cannot, and the decisive
// reason for which an unfinished task waits ([Explainer.Why]).
//
// It reads the ledger, the users, the breakers, the queue, the reservations and the
// placer, and changes nothing. The caller passes what holds all tasks at present
// ([Launching]). The texts of the reasons are in package words.
package explain
