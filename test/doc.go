// Package test holds what spans packages: the end-to-end tests, behind the
// build tag e2e, and the demo. It has no code of its own.
//
// The tests run the carma binary as a user does, daemon and command line, on a
// real Docker engine, and look at the engine itself to see whether what carma
// says is so. make test sets up what they need:
//
//	TEST_CARMA    the binary; built here if not set
//	TEST_IMAGE    the image of the simulated task, carma/simtask:latest if not set
//	DOCKER_HOST   the engine, Docker's default if not set
//	TEST_SEED     repeats the random moments of an earlier run
//
// As root they also test what needs root: other users, a full disk, an engine
// of their own that is killed. Every test leaves the engine as it was.
package test
