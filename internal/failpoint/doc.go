// Package failpoint provides named points in the program at which a test may kill it,
// hang it or make it fail. They are at every step between the journal and the engine, in
// both directions.
//
// Without the build tag failpoints they do nothing and cost nothing. With it, the
// environment sets an action:
//
//	CARMA_FAILPOINT=NAME:ACTION[:N]
//
// The action happens when the point NAME is reached for the Nth time (default: the
// first). kill ends the process like kill -9. hang never returns. error makes [Error]
// return an error; [Hit] ignores it. CARMA_FAILPOINT_LOG names a file to which each point
// is written when it is first reached.
//
// [Points] lists all points in the source, so that no test can forget one.
package failpoint
