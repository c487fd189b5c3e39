// Command tool is the program inside the image of the driver suite; see
// containerstest.Proc for its arguments.
package main

import (
	"fmt"
	"os"
	"os/signal"
	"slices"
	"syscall"

	"carma/containers/containerstest"
)

func main() {
	term := make(chan struct{})
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGTERM)
	go func() {
		<-signals
		close(term)
	}()
	dir, _ := os.Getwd()
	p := containerstest.Proc{
		Args: os.Args[1:], Env: os.Environ(), Dir: dir,
		User:   fmt.Sprintf("%d:%d", os.Getuid(), os.Getgid()),
		Stdout: os.Stdout, Stderr: os.Stderr,
		Term: term, Kill: make(chan struct{}),
		ReadFile:  os.ReadFile,
		WriteFile: func(path string, data []byte) error { return os.WriteFile(path, data, 0o666) },
	}
	if slices.Contains(p.Args, "stubborn") {
		signal.Ignore(syscall.SIGTERM)
	}
	os.Exit(p.Run())
}
