// Package api defines the protocol on carma's unix socket: the request and answer types,
// the paths, and the client that the command line uses. The server side is in package
// runner; its OpenAPI document is generated from these types and served at /openapi.json.
//
// All times are the daemon's: on a simulated server that runs N times faster than the
// clock, they are simulated times. Info.Now is the daemon's current time.
package api
