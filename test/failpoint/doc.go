// Package failpoint has named points in the program at which a test may kill
// it, hang it or make it fail. They are at every step between the journal and
// the engine, in both directions.
//
// Without the build tag failpoints they cost nothing and do nothing. With it,
// the environment says what happens:
//
//	CARMA_FAILPOINT=NAME:ACTION[:N]
//
// at the Nth time (the first) that the point NAME is reached: kill ends the
// process as kill -9 does, hang never returns, error makes [Error] return one
// (and [Hit] do nothing). CARMA_FAILPOINT_LOG names a file to which each point
// is written when it is reached first.
//
// [Points] lists all points from the source, so that no test can forget one.
package failpoint
