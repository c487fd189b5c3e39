// Package command reads the command line of a task: how many GPUs it uses, in which
// processes, of which indexes; its model, batch size and settings; whether it is an
// inference server with a share of a GPU; its folder of checkpoints; and what hides its
// failure or its output.
//
// [Read] is the one reading. It returns facts with the words that say them and how
// certain they are. [Reading.Fit] compares them with the GPUs that a task asks for.
//
// The launchers, inference servers and names of arguments are tables: launchers.go,
// parallel.go, devices.go, folders.go. Sub-readers are estimator/shell, which splits the
// line into commands, estimator/arguments and estimator/servers. The package stands
// beside them and not in the daemon, because the command line reads the files that a
// command names, which the daemon must not open.
package command
