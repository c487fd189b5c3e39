// Pause is the first process of a pod in the test cluster. It waits until a signal ends it.
package main

import (
	"os"
	"os/signal"
	"syscall"
)

func main() {
	end, orphan := make(chan os.Signal, 1), make(chan os.Signal, 1)
	signal.Notify(end, syscall.SIGINT, syscall.SIGTERM)
	signal.Notify(orphan, syscall.SIGCHLD)
	for {
		select {
		case <-end:
			return
		case <-orphan: // child of a pod whose containers share their processes
			for {
				if pid, err := syscall.Wait4(-1, nil, syscall.WNOHANG, nil); pid <= 0 || err != nil {
					break
				}
			}
		}
	}
}
