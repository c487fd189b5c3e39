// Package command reads the command line of a task: the number of GPUs, their indexes and
// the processes; the model, batch size and settings; whether the program is an inference
// server that takes a share of a GPU; the folder for checkpoints; and pipelines that hide
// a failure.
//
// [Read] returns these facts, the words of the command line that state them, and their
// certainty. [Reading.Fit] compares them with the GPUs that a task requests.
//
// The launchers, inference servers and names of arguments are tables: launchers.go,
// parallel.go, devices.go, folders.go. The package uses estimator/shell, which splits the
// line into commands, estimator/arguments and estimator/servers. It is not part of the
// daemon, because reading a command line opens the files that the command names, and the
// daemon must not open them.
package command
