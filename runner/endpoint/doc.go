// Package endpoint turns the routes of package api into the requests that the daemon
// answers.
//
// An [Endpoint] joins a route, the [Rule] of the rights that it needs, and the function
// that answers. [New] makes the API of them, which checks each rule before a body is read.
// [Guard] makes the handler of requests over TLS, which identifies a user of the cluster
// and checks the user's rights there.
package endpoint
