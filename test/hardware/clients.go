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

// driverFolders are where a driver's programs may be that is mounted into the
// machine and not installed.
var driverFolders = []string{"/usr/local/nvidia/bin", "/usr/lib/nvidia/current", "/opt/nvidia/bin"}

// findDriverPrograms adds those folders to PATH, behind what is there.
func findDriverPrograms() {
	path := filepath.SplitList(os.Getenv("PATH"))
	for _, dir := range driverFolders {
		if exists(dir) && !slices.Contains(path, dir) {
			path = append(path, dir)
		}
	}
	_ = os.Setenv("PATH", strings.Join(path, string(filepath.ListSeparator)))
}

// onCard are the processes that NVML lists on a card, by PID: whether each is a
// client of an MPS server.
type onCard map[int]bool

// clients are the processes seen on the card during a run, except MPS servers.
type clients struct {
	seen   onCard
	failed error // of the last reading; nil: there was one
	none   bool  // no card is read
}

// watchClients looks at the card's processes until result is called. It is by
// the driver's list, not by what carma meant to start, that a run is one of MPS.
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

// add adds a reading. A process may be listed before it has met its server; one
// that was a client once is one.
func (c *clients) add(now onCard) {
	for pid, client := range now {
		if known, ok := c.seen[pid]; (!ok || !known) && !isServer(pid) {
			c.seen[pid] = client
		}
	}
}

// isServer reports whether a process is an MPS server.
func isServer(pid int) bool {
	name, _ := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "comm")) // cut at 15 bytes
	return strings.HasPrefix(string(name), "nvidia-cuda-mps")
}

// notMPS begins the verdict on a run without any client.
const notMPS = "not MPS:"

// verdict is empty where so many tasks were all clients of MPS, else what the
// run was in truth.
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

// startMPS starts an MPS control daemon of the suite's own and makes what Python
// runs from now on its client. why is why there is none.
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
