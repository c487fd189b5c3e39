package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"carma/runner/mps"
)

// driverFolders are the places of a driver's programs if the driver is mounted
// into the machine and not installed.
var driverFolders = []string{"/usr/local/nvidia/bin", "/usr/lib/nvidia/current", "/opt/nvidia/bin"}

// findDriverPrograms appends those folders to PATH.
func findDriverPrograms() {
	path := filepath.SplitList(os.Getenv("PATH"))
	for _, dir := range driverFolders {
		if exists(dir) && !slices.Contains(path, dir) {
			path = append(path, dir)
		}
	}
	_ = os.Setenv("PATH", strings.Join(path, string(filepath.ListSeparator)))
}

// onCard are the processes that NVML lists on a card, by PID. The value says whether a
// process is a client of an MPS server.
type onCard map[int]bool

// clients are the processes seen on the card during a run, without MPS servers.
type clients struct {
	seen   onCard
	failed error // error of the last reading, or nil if it succeeded
	none   bool  // there is no card to read
}

// watchClients reads the card's processes until result is called. Whether a run
// was one of MPS follows from the driver's list, not from what carma meant to
// start.
func (d *daemon) watchClients(ctx context.Context) (result func() clients) {
	ctx, cancel := context.WithCancel(ctx)
	out := make(chan clients, 1)
	go func() {
		all := clients{seen: onCard{}, none: d.card == nil}
		for !all.none && ctx.Err() == nil {
			now, err := listClients(d.card.device.UUID)
			if all.failed = err; err == nil {
				all.add(now)
			}
			select {
			case <-ctx.Done():
			case <-time.After(sampleEvery):
			}
		}
		out <- all
	}()
	return func() clients { cancel(); return <-out }
}

// add adds a reading. A process may be listed before it has met its server. Once
// it was a client, it counts as one.
func (c *clients) add(now onCard) {
	for pid, client := range now {
		if known, ok := c.seen[pid]; (!ok || !known) && !isServer(pid) {
			c.seen[pid] = client
		}
	}
}

// isServer reports whether a process is an MPS server.
func isServer(pid int) bool {
	name, _ := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "comm")) // the kernel cuts it at 15 bytes
	return strings.HasPrefix(string(name), "nvidia-cuda-mps")
}

// notMPS begins the verdict on a run without any MPS client.
const notMPS = "not MPS:"

// verdict returns a text about the real mode of the run, or "" if all of this number of tasks
// were clients of MPS.
func (c *clients) verdict(tasks int) string {
	var with, without int
	for _, client := range c.seen {
		if client {
			with++
		} else {
			without++
		}
	}
	switch {
	case c.failed != nil:
		return fmt.Sprintf("not known whether by MPS: %v", c.failed)
	case with == 0:
		return fmt.Sprintf(notMPS+" none of %d processes on the GPU was a client", without)
	case without > 0:
		return fmt.Sprintf("not MPS alone: %d of %d processes on the GPU were no clients", without, with+without)
	case with < tasks:
		return fmt.Sprintf("only %d clients of MPS were seen, of %d tasks", with, tasks)
	}
	return ""
}

// startMPS starts an MPS control daemon for the suite. Python programs started from now
// on are its clients. why says why there is none.
func (s *session) startMPS(ctx context.Context) (end func(), why string) {
	end = func() {}
	if why := s.noMPS(); why != "" {
		return end, why
	}
	dir := filepath.Join(s.work, "pairs-mps")
	c := &mps.Control{Pipe: filepath.Join(dir, "pipe"), Log: filepath.Join(dir, "log"), GPUs: []string{s.card.device.UUID}}
	stop := func() {
		s.env = nil
		late, cancel := context.WithTimeout(context.WithoutCancel(ctx), 30*time.Second)
		defer cancel()
		if err := c.Quit(late); err != nil {
			s.say("pairs: %v", err)
		}
		for _, name := range []string{"control.log", "server.log"} {
			text, _ := os.ReadFile(filepath.Join(c.Log, name))
			fmt.Fprintf(s.file, "--- MPS, %s\n%s--- end of it\n", name, text[max(0, len(text)-mostLog):])
		}
	}
	if err := c.Start(ctx); err != nil {
		stop()
		return end, err.Error()
	}
	s.env = []string{"CUDA_MPS_PIPE_DIRECTORY=" + c.Pipe}
	return stop, ""
}
