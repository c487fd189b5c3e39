// Package request has what every request to the daemon has: the [Caller] who makes it, and
// the [Error] by which it is refused. It decides nothing: package rights says what a
// caller may do.
package request
