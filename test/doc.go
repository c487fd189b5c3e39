// Package test has the tests across packages, and the demo: the end-to-end tests
// (build tag e2e) and tests of the source itself. It has no code of its own.
//
// The end-to-end tests run the carma binary as a user does, daemon and command
// line, on a real Docker engine. They ask the engine itself whether carma tells
// the truth. make test sets up what they need:
//
//	TEST_CARMA    the binary; built here if not set
//	TEST_IMAGE    the image of the simulated task, carma/simtask:latest if not set
//	DOCKER_HOST   the engine, Docker's default if not set
//	TEST_SEED     repeats the random moments of an earlier run
//
// As root they also test what needs root: other users, a full disk, an engine
// that is killed. Every test leaves the engine as it was.
package test
