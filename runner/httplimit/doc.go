// Package httplimit bounds what requests to the daemon take of it: connections of each user
// and in all ([LimitConnections]), requests that are handled at a time
// ([RequestLimiter]), and the values of a request and the mistakes in it ([LimitRequests]).
// What exceeds a bound is refused with the reason, or waits for its turn. Root has places of
// its own.
package httplimit
