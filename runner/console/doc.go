// Package console connects users with the programs in running containers.
//
// A [Registry] owns the open consoles, one for each running container. A [Console] is
// always connected with its program, so that no prompt is lost, and passes output to the
// terminals that are attached ([Console.Serve]) and their input to the program. It answers
// which program can be reached, and restores a broken connection. A terminal that takes no
// output for a while is disconnected, so that it cannot keep the program waiting.
package console
